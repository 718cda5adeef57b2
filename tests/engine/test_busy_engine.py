"""A real engine while it works: cancelling, replacing, preempting, answering others."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.engine.process import RunningEngine, running_engine, until
from tests.support.slow import make_slow_package

#: Would take ten seconds or more, and never repeats itself.
LONG: dict[str, Any] = {"max_tokens": 4000, "temperature": 1.0, "seed": 1, "top_k": 50}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    package = make_slow_package(tmp_path_factory.mktemp("packages") / "slow")
    with running_engine(tmp_path_factory.mktemp("home"), package) as engine:
        yield engine


def generated(engine: RunningEngine) -> float:
    return engine.metric("fimble_generated_tokens_total")


def tokens_for(engine: RunningEngine, seconds: float) -> int:
    """About as many tokens as take that long here: enough to act meanwhile."""
    (model,) = engine.health()["models"]
    return min(3500, max(100, int(seconds * model["decode_tokens_per_s"])))


def is_idle(engine: RunningEngine) -> bool:
    health = engine.health()
    return health["waiting"] == 0 and not any(slot["busy"] for slot in health["slots"])


def post_and_leave_open(engine: RunningEngine, body: dict[str, Any]) -> socket.socket:
    """Sends a completion request and returns the connection without reading the answer."""
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{engine.address.port}\r\n"
        f"Authorization: Bearer {engine.address.secret}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", engine.address.port))
    connection.sendall(head.encode() + content)
    return connection


def test_a_dropped_stream_stops_the_generation(engine: RunningEngine) -> None:
    before = generated(engine)
    body = {"prompt": "def", **LONG, "stream": True}
    with engine.http.stream("POST", "/v1/completions", json=body) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")
    until(lambda: is_idle(engine))
    assert 0 < generated(engine) - before < 1000
    assert engine.metric('fimble_requests_total{end="cancelled"}') >= 1


def test_a_dropped_connection_stops_an_answer_that_is_not_streamed(engine: RunningEngine) -> None:
    before = generated(engine)
    cancelled = engine.metric('fimble_requests_total{end="cancelled"}')
    connection = post_and_leave_open(engine, {"prompt": "class", **LONG})
    until(lambda: generated(engine) > before)
    connection.close()
    until(lambda: is_idle(engine))
    assert generated(engine) - before < 3900
    assert engine.metric('fimble_requests_total{end="cancelled"}') == cancelled + 1


def test_a_dropped_connection_stops_a_prefill_between_slices(engine: RunningEngine) -> None:
    before = engine.metric("fimble_prompt_tokens_computed_total")
    prompt = [(number * 7) % 300 for number in range(3900)]
    connection = post_and_leave_open(engine, {"prompt": prompt, "max_tokens": 1})
    until(lambda: engine.metric("fimble_prompt_tokens_computed_total") > before)
    connection.close()
    until(lambda: is_idle(engine))
    computed = engine.metric("fimble_prompt_tokens_computed_total") - before
    assert 0 < computed < 3900
    # What was computed is there for the next one.
    usage = engine.complete(prompt[: int(computed) + 32], max_tokens=1)["usage"]
    assert usage["reused_tokens"] >= computed


def test_the_newest_completion_of_a_document_replaces_the_older(engine: RunningEngine) -> None:
    with ThreadPoolExecutor() as pool:
        older = pool.submit(engine.complete, "import", document="file:///a.py", **LONG)
        until(lambda: engine.health()["waiting"] == 1)
        newer = engine.complete("import x", max_tokens=3, document="file:///a.py")
        answer = older.result()
    assert answer["choices"][0]["finish_reason"] == "cancelled"
    assert newer["usage"]["completion_tokens"] == 3


def test_another_document_replaces_nothing(engine: RunningEngine) -> None:
    body = {**LONG, "max_tokens": 100}
    with ThreadPoolExecutor() as pool:
        answers = [
            pool.submit(engine.complete, f"x = {name}", document=name, **body) for name in "abc"
        ]
        counts = [answer.result()["usage"]["completion_tokens"] for answer in answers]
    assert counts == [100] * 3


def test_a_completion_goes_before_a_chat_which_goes_on_correctly(engine: RunningEngine) -> None:
    body: dict[str, Any] = {
        **LONG,
        "messages": [{"role": "user", "content": "hello"}],
        "max_tokens": tokens_for(engine, 1.0),
    }
    # The first time the prompt is computed in one slice, afterwards only its last token:
    # the same numbers up to rounding, but not the same draws. So compare like with like.
    engine.http.post("/v1/chat/completions", json=body)
    alone = engine.http.post("/v1/chat/completions", json=body).json()
    order: list[str] = []

    def chat() -> Any:
        answer = engine.http.post("/v1/chat/completions", json=body).json()
        order.append("chat")
        return answer

    with ThreadPoolExecutor() as pool:
        before = generated(engine)
        chatting = pool.submit(chat)
        until(lambda: generated(engine) > before)
        completion = engine.complete("return", max_tokens=5)
        order.append("completion")
        interrupted = chatting.result()
    assert order == ["completion", "chat"]
    assert completion["usage"]["completion_tokens"] == 5
    assert interrupted["choices"] == alone["choices"]
    # It kept its slot: two are enough for both.
    assert "recomputed_tokens" not in interrupted["extra"]


def test_warm_up_waits_for_completions_and_goes_before_chat(engine: RunningEngine) -> None:
    order: list[str] = []
    lock = threading.Lock()

    def ask(priority: str, tokens: int) -> None:
        engine.complete(f"{priority}", **{**LONG, "max_tokens": tokens}, priority=priority)
        with lock:
            order.append(priority)

    with ThreadPoolExecutor() as pool:
        before = generated(engine)
        futures = [pool.submit(ask, "chat", tokens_for(engine, 1.5))]
        until(lambda: generated(engine) > before)
        futures.append(pool.submit(ask, "warmup", tokens_for(engine, 0.5)))
        until(lambda: engine.health()["waiting"] == 2)
        futures.append(pool.submit(ask, "completion", 50))
        for future in futures:
            future.result()
    assert order == ["completion", "warmup", "chat"]


def test_health_answers_while_the_model_works(engine: RunningEngine) -> None:
    count = tokens_for(engine, 1.5)
    with ThreadPoolExecutor() as pool:
        before = generated(engine)
        answer = pool.submit(engine.complete, "while", **{**LONG, "max_tokens": count})
        until(lambda: generated(engine) > before)
        answered_while_busy = 0
        while not answer.done():
            health = engine.health()
            answered_while_busy += any(slot["busy"] for slot in health["slots"])
        answer.result()
    assert answered_while_busy >= 5


def test_tokenize_does_not_wait_for_the_model(engine: RunningEngine) -> None:
    count = tokens_for(engine, 1.5)
    with ThreadPoolExecutor() as pool:
        before = generated(engine)
        answer = pool.submit(engine.complete, "for", **{**LONG, "max_tokens": count})
        until(lambda: generated(engine) > before)
        counts = engine.http.post("/tokenize", json={"texts": ["def"]}).json()["counts"]
        assert not answer.done()
        answer.result()
    assert counts == [1]
