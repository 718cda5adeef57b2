"""Whose turn it is when several clients ask one engine: none waits for another one's queue, and
no chat for all that is typed.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fimble.engine.host import ModelHost
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CLIENT_HEADER, CompletionChunk, CompletionRequest
from fimble.engine.scheduler import (
    CLIENT_LIMIT,
    Done,
    Event,
    Job,
    Scheduler,
    TooManyRequests,
)
from tests.engine.process import RunningEngine, running_engine
from tests.support.slow import make_slow_package
from tests.support.tiny import make_tiny_package
from tests.support.waiting import PATIENCE, until

# --- the order, exactly: the real scheduler and model in this process ----------------------


class Turns:
    """``ended`` has the names of jobs in the order in which they were answered, ``last`` what
    was said last to each. The model is loaded.
    """

    def __init__(self, package: Path, slots: int = 2) -> None:
        metrics = Metrics()
        options = EngineOptions(model=str(package), slots=slots)
        self._scheduler = Scheduler(ModelHost(options, metrics), metrics)
        self.jobs: list[Job] = []
        self.ended: list[str] = []
        self.last: dict[str, CompletionChunk] = {}
        loaded = queue.Queue[Event]()
        self._scheduler.submit(Job("", None, loaded.put))
        assert isinstance(loaded.get(timeout=PATIENCE), Done)

    def ask(self, name: str, **fields: Any) -> Job:
        """``name`` begins with the client's letter."""

        def deliver(event: Event) -> None:
            if isinstance(event, Done):
                self.ended.append(name)
            elif isinstance(event, CompletionChunk):
                self.last[name] = event

        fields = {"max_tokens": 2, "document": name, **fields}
        prompt = fields.pop("prompt", [len(self.jobs) + 5] * 4)
        job = Job("", CompletionRequest(prompt, **fields), deliver)
        job.client = name[0]
        self.jobs.append(job)
        return job

    def play(self) -> list[str]:
        """All jobs at once, which a scheduler takes in only while nothing is decided."""
        with self._scheduler._change:
            for job in self.jobs:
                self._scheduler.submit(job)
        until(lambda: len(self.ended) == len(self.jobs))
        return self.ended

    def close(self) -> None:
        self._scheduler.close()


@pytest.fixture
def turns(tiny: Path) -> Iterator[Turns]:
    turns = Turns(tiny)
    yield turns
    turns.close()


def test_clients_take_turns_however_much_one_of_them_asks(turns: Turns) -> None:
    for name in ("a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1"):
        turns.ask(name)
    assert turns.play() == ["a1", "b1", "c1", "a2", "b2", "a3", "a4", "a5"]


def test_what_is_typed_goes_before_every_clients_warm_up_and_chat(turns: Turns) -> None:
    turns.ask("a-chat", priority="chat", max_tokens=9)
    turns.ask("b-warm-up", priority="warmup")
    turns.ask("b-chat", priority="chat")
    turns.ask("c1")
    turns.ask("b1")
    turns.ask("c2")
    assert turns.play() == ["c1", "b1", "c2", "b-warm-up", "a-chat", "b-chat"]


def test_what_has_begun_is_ended_before_another_clients_turn(turns: Turns) -> None:
    """Were they mixed, token by token, each would take the other's slot."""
    turns.ask("a1", max_tokens=200, temperature=1.0, seed=1, top_k=50)
    turns.ask("b1")
    assert turns.play() == ["a1", "b1"]


@pytest.mark.parametrize("priority", ["completion", "warmup"])
def test_a_chat_goes_on_by_one_step_after_each_more_urgent_request(
    turns: Turns, priority: str
) -> None:
    """A slice of its prompt and three tokens are four steps, which four others wait for."""
    turns.ask("d-chat", priority="chat", max_tokens=3)
    typed = [f"{client}{number}" for number in (1, 2) for client in "abc"]
    for name in typed:
        turns.ask(name, priority=priority)
    assert turns.play() == [*typed[:4], "d-chat", *typed[4:]]


def test_a_long_prompt_of_a_chat_is_computed_slice_by_slice_in_between_and_once(
    turns: Turns,
) -> None:
    """70 tokens are three slices on a processor."""
    turns.ask("d-chat", priority="chat", max_tokens=2, prompt=[(n * 7) % 300 for n in range(70)])
    typed = [f"{client}{number}" for number in (1, 2) for client in "abc"]
    for name in typed:
        turns.ask(name)
    assert turns.play() == [*typed[:5], "d-chat", *typed[5:]]
    usage = turns.last["d-chat"].usage
    assert usage is not None and usage.completion_tokens == 2
    assert "recomputed_tokens" not in turns.last["d-chat"].extra


def test_where_there_is_one_slot_nobody_computes_a_prompt_again_for_a_chat(tiny: Path) -> None:
    turns = Turns(tiny, slots=1)
    turns.ask("d-chat", priority="chat", max_tokens=3)
    typed = [f"a{number}" for number in range(6)]
    for name in typed:
        turns.ask(name)
    assert turns.play() == [*typed, "d-chat"]
    turns.close()


def test_a_chat_whose_model_is_not_loaded_keeps_nobody_waiting(turns: Turns, tiny: Path) -> None:
    other = make_tiny_package(tiny.parent / "other-of-chat", seed=3)
    turns.ask("d-chat", priority="chat").model = str(other)
    for number in range(4):
        turns.ask(f"a{number}")
    assert turns.play() == ["a0", "a1", "a2", "a3", "d-chat"]


def test_a_clients_share_of_the_queue_ends_and_others_have_theirs(turns: Turns) -> None:
    for number in range(CLIENT_LIMIT):
        turns.ask(f"a{number}")
    turns.ask("b1")
    one_more = turns.ask("a-more")
    with pytest.raises(TooManyRequests, match=f"{CLIENT_LIMIT} of them of this client"):
        turns.play()
    turns.jobs.remove(one_more)
    until(lambda: len(turns.ended) == len(turns.jobs))
    assert turns.ended[1] == "b1"


# --- the same on an engine of its own ------------------------------------------------------


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    package = make_slow_package(tmp_path_factory.mktemp("packages") / "slow")
    with running_engine(tmp_path_factory.mktemp("home"), package) as engine:
        yield engine


def post(engine: RunningEngine, client: str, body: dict[str, Any]) -> socket.socket:
    """Sends a completion request and returns the connection without reading the answer."""
    content = json.dumps(body).encode()
    head = (
        f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:{engine.address.port}\r\n"
        f"Authorization: Bearer {engine.address.secret}\r\n{CLIENT_HEADER}: {client}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", engine.address.port))
    connection.sendall(head.encode() + content)
    return connection


@contextlib.contextmanager
def flood(engine: RunningEngine, client: str, priority: str) -> Iterator[None]:
    """While the block runs, the client waits for as many answers as it may, each of a while."""
    body = {"max_tokens": 300, "temperature": 1.0, "top_k": 50, "priority": priority}
    before = answered(engine)
    with contextlib.ExitStack() as stack:
        for number in range(CLIENT_LIMIT):
            asked = {**body, "prompt": f"x = {number}", "document": str(number), "seed": number}
            stack.enter_context(contextlib.closing(post(engine, client, asked)))
        until(lambda: engine.health()["waiting"] + answered(engine) - before >= CLIENT_LIMIT)
        yield
    # Its client has gone: what it waited for is dropped, what it held is free.
    until(lambda: is_idle(engine.health()))


def is_idle(health: dict[str, Any]) -> bool:
    return health["waiting"] == 0 and not any(slot["busy"] for slot in health["slots"])


def answered(engine: RunningEngine) -> float:
    return sum(engine.metric(f'fimble_requests_total{{end="{end}"}}') for end in ("stop", "length"))


@pytest.mark.parametrize("priority", ["completion", "chat"])
def test_a_client_that_floods_the_engine_starves_nobody_and_leaves_nothing(
    engine: RunningEngine, priority: str
) -> None:
    with flood(engine, "flood", priority), engine.client(**{CLIENT_HEADER: "typist"}) as typist:
        before = answered(engine)
        for number in range(2):
            body = {"prompt": f"y = {number}", "max_tokens": 2}
            answer = typist.post("/v1/completions", json=body)
            assert answer.status_code == 200, answer.text
        # Behind all of them it would have seen them all.
        assert answered(engine) - before < CLIENT_LIMIT - 4
    assert engine.complete("z", max_tokens=2)["usage"]["completion_tokens"] == 2


def test_a_chat_is_answered_though_completions_always_wait(engine: RunningEngine) -> None:
    """It takes five steps or six, for which so many others end; behind all it would see all."""
    with flood(engine, "typist", "completion"), engine.client(**{CLIENT_HEADER: "chat"}) as chat:
        before = answered(engine)
        body = {"prompt": "y = 1", "max_tokens": 4, "priority": "chat"}
        answer = chat.post("/v1/completions", json=body)
        assert answer.status_code == 200, answer.text
        assert answered(engine) - before < CLIENT_LIMIT - 4
