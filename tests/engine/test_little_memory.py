"""Too little memory for what was wanted: less is tried, and the user is told what it became."""

from __future__ import annotations

import json
import logging
import queue
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from fimble.engine.base import ModelInfo
from fimble.engine.client import EngineEvent, LocalEngine
from fimble.engine.host import ModelHost
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.engine.scheduler import Done, Event, Job, Scheduler
from fimble.engine.wire import model_info_to_json
from fimble.errors import FimbleError, LoadFailed, RequestRejected
from tests.support.limited_memory import LimitedMemoryRuntime
from tests.support.tiny import make_tiny_package
from tests.support.waiting import PATIENCE

PROMPT = [10, 20, 30, 40, 50, 60, 70, 80]


class Engine:
    """The real host and scheduler in this process."""

    def __init__(self, package: Path, slots: int = 2) -> None:
        metrics = Metrics()
        self.host = ModelHost(EngineOptions(model=str(package), slots=slots), metrics)
        self.scheduler = Scheduler(self.host, metrics)

    def start(self, prompt: list[int], document: str = "", **fields: object) -> queue.Queue[Event]:
        events: queue.Queue[Event] = queue.Queue()
        request = CompletionRequest(
            prompt,
            **{"max_tokens": 4, "document": document, **fields},  # type: ignore[arg-type]
        )
        self.scheduler.submit(Job("", request, events.put))
        return events

    def ask(self, prompt: list[int], document: str = "") -> CompletionChunk:
        return finished(self.start(prompt, document))

    @property
    def window(self) -> int:
        assert self.host.loaded is not None
        return self.host.loaded.info.window


def finished(events: queue.Queue[Event]) -> CompletionChunk:
    """The last chunk with the whole text; raises the job's error."""
    text, last = "", CompletionChunk("")
    while True:
        event = events.get(timeout=PATIENCE)
        if isinstance(event, FimbleError):
            raise event
        if isinstance(event, Done):
            return replace(last, text=text)
        text, last = text + event.text, event


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> LimitedMemoryRuntime:
    return LimitedMemoryRuntime(10**6).install(monkeypatch)


@pytest.fixture
def engine(tiny: Path, runtime: LimitedMemoryRuntime) -> Iterator[Engine]:
    """Loads nothing yet."""
    engine = Engine(tiny)
    yield engine
    engine.scheduler.close()


# --- the window --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fits", "window", "tried"),
    [(4096, 4096, [4096]), (4095, 2048, [4096, 2048]), (1100, 1024, [4096, 2048, 1024])],
)
def test_the_window_is_lowered_until_it_fits(
    tmp_path: Path, runtime: LimitedMemoryRuntime, fits: int, window: int, tried: list[int]
) -> None:
    engine = Engine(make_tiny_package(tmp_path / "large", context_length=4096))
    runtime.tokens = fits
    engine.ask(PROMPT)
    assert engine.window == window
    engine.scheduler.close()
    assert [each for each in runtime.asked if each >= 512] == tried


def test_the_first_slot_is_what_was_reserved(engine: Engine, runtime: LimitedMemoryRuntime) -> None:
    runtime.tokens = 2048
    engine.ask(PROMPT)
    engine.ask([*PROMPT, 90])
    assert runtime.asked.count(2048) == 1
    assert runtime.held == 2048


def test_the_user_is_told_what_it_became_and_how_to_have_more(
    engine: Engine, runtime: LimitedMemoryRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    runtime.tokens = 1500
    with caplog.at_level(logging.WARNING):
        engine.ask(PROMPT)
    assert engine.host.loaded is not None
    notice = engine.host.loaded.info.notice
    assert "2,048" in notice and "1,024" in notice and "Close other programs" in notice
    assert notice in caplog.text


async def test_the_client_hears_of_it_when_the_model_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    info = ModelInfo("m", 1024, "DML", True, False, notice="There was not enough memory.")
    events: list[EngineEvent] = []
    client = LocalEngine(on_event=events.append)

    async def connect(progress: object) -> httpx.AsyncClient:
        """In place of an engine process, which would find all the memory it wants."""
        health = httpx.Response(200, json={"state": "idle", "models": []})
        return httpx.AsyncClient(
            base_url="http://engine", transport=httpx.MockTransport(lambda request: health)
        )

    async def post(*question: object) -> object:
        return model_info_to_json(info)

    monkeypatch.setattr(client, "_connect", connect)
    monkeypatch.setattr(client, "_post", post)
    assert await client.load() == info
    assert [event.kind for event in events] == ["loading", "ready", "notice"]
    assert events[-1].message == info.notice


async def test_the_client_tells_what_answers_say_of_the_model_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two models that take each other's place say it again at every turn."""
    said = iter(["a for b.", "b for a.", "a for b.", ""])

    def answer(request: httpx.Request) -> httpx.Response:
        extra = {"notice": notice} if (notice := next(said)) else {}
        piece = {"choices": [{"index": 0, "text": "x", "finish_reason": "stop"}], "extra": extra}
        return httpx.Response(200, text=f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n")

    events: list[EngineEvent] = []
    client = LocalEngine(on_event=events.append)
    http = httpx.AsyncClient(base_url="http://engine", transport=httpx.MockTransport(answer))

    async def connect(*_: object) -> httpx.AsyncClient:
        return http

    async def load(*_: object) -> ModelInfo:
        return ModelInfo("m", 1024, "CPU", True, False)

    monkeypatch.setattr(client, "_connect", connect)
    monkeypatch.setattr(client, "load", load)
    for _ in range(4):
        assert [chunk.text async for chunk in client.complete(CompletionRequest("a"))] == ["x"]
    assert [(each.kind, each.message) for each in events] == [
        ("notice", "a for b."),
        ("notice", "b for a."),
    ]
    await http.aclose()


def test_where_all_fits_there_is_nothing_to_tell(engine: Engine) -> None:
    engine.ask(PROMPT)
    assert engine.host.loaded is not None
    assert engine.host.loaded.info.notice == ""


def test_a_prompt_for_the_former_window_is_refused_with_the_new_one(
    engine: Engine, runtime: LimitedMemoryRuntime
) -> None:
    runtime.tokens = 1100
    with pytest.raises(RequestRejected, match="window of 1024"):
        engine.ask([each % 300 for each in range(1500)])


def test_answers_do_not_depend_on_the_window(
    tiny: Path, engine: Engine, runtime: LimitedMemoryRuntime
) -> None:
    runtime.tokens = 1100
    small = engine.ask(PROMPT).text
    runtime.tokens = 10**6
    whole = Engine(tiny)
    assert whole.ask(PROMPT).text == small
    whole.scheduler.close()


def test_none_at_all_is_a_load_error_with_advice(
    engine: Engine, runtime: LimitedMemoryRuntime
) -> None:
    runtime.tokens = 1023
    with pytest.raises(LoadFailed, match="no memory to work with it") as caught:
        engine.ask(PROMPT)
    assert "Close other programs" in caught.value.next_step
    assert engine.host.loaded is None
    # And once there is, it loads.
    runtime.tokens = 10**6
    events: queue.Queue[Event] = queue.Queue()
    engine.scheduler.submit(Job("", None, events.put))
    assert isinstance(events.get(timeout=PATIENCE), Done)
    assert engine.window == 2048


# --- slots -------------------------------------------------------------------------------


def test_a_second_slot_that_does_not_fit_is_done_without(
    engine: Engine, runtime: LimitedMemoryRuntime
) -> None:
    runtime.tokens = 3000
    first = engine.ask(PROMPT, "a")
    other = [200, 201, 202, 203, 204, 205]
    engine.ask(other, "b")
    assert engine.window == 2048, "the window is worth more than a slot"
    assert engine.ask(PROMPT, "a").text == first.text
    engine.ask(other, "b")
    assert runtime.asked.count(2048) == 3, "it is not tried again"
    assert runtime.held == 2048


def test_a_chat_that_loses_its_slot_to_little_memory_goes_on(
    tiny: Path, engine: Engine, runtime: LimitedMemoryRuntime
) -> None:
    runtime.tokens = 3000
    alone = finished(engine.start(PROMPT, priority="chat", max_tokens=300)).text
    chat = engine.start(PROMPT, priority="chat", max_tokens=300)
    first = chat.get(timeout=PATIENCE)
    assert isinstance(first, CompletionChunk)
    engine.ask([200, 201, 202, 203, 204, 205], "b")
    assert first.text + finished(chat).text == alone


def test_memory_that_goes_away_while_it_runs_lowers_the_window(
    tiny: Path, runtime: LimitedMemoryRuntime
) -> None:
    engine = Engine(tiny, slots=1)
    text = engine.ask(PROMPT).text
    loaded = engine.host.loaded
    assert loaded is not None and loaded.pool is not None
    for slot in loaded.pool.slots:
        slot.drop()  # as after a failure of the runtime
    runtime.tokens = 1024
    assert engine.ask(PROMPT).text == text
    assert engine.window == 1024
    engine.scheduler.close()


def test_other_failures_lower_nothing(engine: Engine, runtime: LimitedMemoryRuntime) -> None:
    runtime.tokens, runtime.says = 1000, "something quite different"
    with pytest.raises(LoadFailed, match="something quite different"):
        engine.ask(PROMPT)
    assert [each for each in runtime.asked if each >= 512] == [2048]
