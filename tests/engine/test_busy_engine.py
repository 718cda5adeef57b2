"""A real engine while it works: cancelling, replacing, preempting, answering others."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.engine.process import RunningEngine, running_engine
from tests.support.slow import make_slow_package
from tests.support.waiting import until

#: Takes ten seconds here, which nothing waits for, and never repeats itself.
LONG: dict[str, Any] = {"max_tokens": 4000, "temperature": 1.0, "seed": 1, "top_k": 50}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    package = make_slow_package(tmp_path_factory.mktemp("packages") / "slow")
    with running_engine(tmp_path_factory.mktemp("home"), package) as engine:
        yield engine


def generated(engine: RunningEngine) -> float:
    return engine.metric("fimble_generated_tokens_total")


def cancelled(engine: RunningEngine) -> float:
    return engine.metric('fimble_requests_total{end="cancelled"}')


@contextlib.contextmanager
def at_work(engine: RunningEngine, priority: str = "completion") -> Iterator[None]:
    """While the block runs, and it may take long, the model writes an answer."""
    before = generated(engine)
    connection = post_and_leave_open(engine, {"prompt": "while", **LONG, "priority": priority})
    try:
        until(lambda: generated(engine) > before)
        yield
        assert not is_idle(engine), "the answer was done before its time"
    finally:
        connection.close()
        until(lambda: is_idle(engine))


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
    before, stopped = generated(engine), cancelled(engine)
    body = {"prompt": "def", **LONG, "stream": True}
    with engine.http.stream("POST", "/v1/completions", json=body) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")
    until(lambda: is_idle(engine))
    assert 0 < generated(engine) - before < 4000
    assert cancelled(engine) == stopped + 1


def test_a_dropped_connection_stops_an_answer_that_is_not_streamed(engine: RunningEngine) -> None:
    before = generated(engine)
    stopped = cancelled(engine)
    connection = post_and_leave_open(engine, {"prompt": "class", **LONG})
    until(lambda: generated(engine) > before)
    connection.close()
    until(lambda: is_idle(engine))
    assert generated(engine) - before < 4000
    assert cancelled(engine) == stopped + 1


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


class Streamed:
    """A long answer that is read as it comes; each piece is a token."""

    def __init__(self, engine: RunningEngine, path: str, **body: Any) -> None:
        self._engine = engine
        self._path = path
        self._body = {**LONG, **body, "stream": True}
        self.pieces: list[str] = []

    def __enter__(self) -> Streamed:
        self._stack = contextlib.ExitStack()
        request = self._engine.http.stream("POST", self._path, json=self._body)
        self._lines = self._stack.enter_context(request).iter_lines()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def read(self, count: int) -> None:
        """Until there are so many pieces, without an end in between."""
        while len(self.pieces) < count:
            line = next(line for line in self._lines if line)
            assert line != "data: [DONE]", "the answer was done before its time"
            event = json.loads(line.removeprefix("data: "))
            # It kept its slot: two are enough for both.
            assert "recomputed_tokens" not in event["extra"]
            (choice,) = event["choices"]
            self.pieces.append(choice["delta"]["content"] if "delta" in choice else choice["text"])


def chat(engine: RunningEngine) -> Streamed:
    messages = [{"role": "user", "content": "hello"}]
    return Streamed(engine, "/v1/chat/completions", messages=messages)


def test_a_completion_goes_before_a_chat_which_goes_on_correctly(engine: RunningEngine) -> None:
    # The first time the prompt is computed in one slice, afterwards only its last token:
    # the same numbers up to rounding, but not the same draws. So compare like with like.
    with chat(engine) as first:
        first.read(1)
    until(lambda: is_idle(engine))
    with chat(engine) as interrupted:
        interrupted.read(20)
        completion = engine.complete("return", max_tokens=5)
        (tokens,) = [slot["tokens"] for slot in engine.health()["slots"] if slot["busy"]]
        interrupted.read(tokens + 20)
    until(lambda: is_idle(engine))
    with chat(engine) as alone:
        alone.read(tokens + 20)
    until(lambda: is_idle(engine))
    assert completion["usage"]["completion_tokens"] == 5
    assert interrupted.pieces == alone.pieces


def test_a_warm_up_waits_for_completions_and_goes_before_a_chat(engine: RunningEngine) -> None:
    warm_up = {"prompt": "class", "priority": "warmup"}
    with chat(engine) as chatting:
        chatting.read(1)
        with Streamed(engine, "/v1/completions", **warm_up) as warming:
            warming.read(20)
            assert engine.health()["waiting"] == 2, "the chat was answered first"
            assert engine.complete("return", max_tokens=5)["usage"]["completion_tokens"] == 5
            assert engine.health()["waiting"] == 2, "the warm-up was done first"
    until(lambda: is_idle(engine))


def test_health_answers_while_the_model_works(engine: RunningEngine) -> None:
    with at_work(engine):
        for _ in range(10):
            assert any(slot["busy"] for slot in engine.health()["slots"])


def test_tokenize_does_not_wait_for_the_model(engine: RunningEngine) -> None:
    with at_work(engine):
        counts = engine.http.post("/tokenize", json={"texts": ["def"]}).json()["counts"]
    assert counts == [1]
