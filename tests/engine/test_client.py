"""The local engine as the language server uses it: started on demand, restarted, cancelled."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fimble import system
from fimble.engine import client, control
from fimble.engine.address import read_address
from fimble.engine.client import EngineEvent, LocalEngine, model_reference
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import ChatMessage, CompletionRequest, Control, Text
from fimble.errors import (
    EngineError,
    EngineUnavailable,
    LoadFailed,
    ModelNotFound,
    RequestRejected,
)
from fimble.progress import ProgressEvent
from tests.support.slow import make_slow_package
from tests.support.waiting import eventually, until

PROMPT = (Control("fim_prefix"), Text("def f("), Control("fim_suffix"), Control("fim_middle"))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_package(tmp_path_factory.mktemp("packages") / "slow")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    # A proxy must never see what is meant for loopback.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")


class Seen:
    """The events of an engine, by kind, apart from the stages of a load that took long."""

    def __init__(self) -> None:
        self.events: list[EngineEvent] = []

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events if event.kind != "stage"]


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
async def engine(tiny: Path, seen: Seen) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(model=str(tiny), on_event=seen.events.append)
    yield engine
    await engine.aclose()
    await asyncio.to_thread(control.stop)


async def test_a_chat_goes_on_where_its_last_turn_ended(engine: LocalEngine) -> None:
    said = (ChatMessage("system", "Be brief. " * 20), ChatMessage("user", "Hi"))
    first = [each async for each in engine.complete(chat(*said))]
    answer = "".join(chunk.text for chunk in first)
    more = (*said, ChatMessage("assistant", answer), ChatMessage("user", "And <|im_end|>?"))
    second = [each async for each in engine.complete(chat(*more))]
    usage = second[-1].usage
    before = first[-1].usage
    assert answer and usage and before
    assert usage.reused_tokens >= before.prompt_tokens


def chat(*messages: ChatMessage) -> CompletionRequest:
    return CompletionRequest("", max_tokens=8, priority="chat", messages=messages)


async def text_of(engine: LocalEngine, request: CompletionRequest) -> str:
    return "".join([chunk.text async for chunk in engine.complete(request)])


def crash() -> None:
    """Ends the engine as a native crash would."""
    address = read_address()
    assert address is not None
    process = psutil.Process(address.pid)
    process.kill()
    until(lambda: not system.is_alive(address.pid))


async def test_it_starts_loads_and_completes(engine: LocalEngine, seen: Seen) -> None:
    steps: list[ProgressEvent] = []

    def on_progress(step: ProgressEvent) -> None:
        assert threading.current_thread() is threading.main_thread()
        steps.append(step)

    info = await engine.load(on_progress)
    assert (info.name, info.window, info.fim, info.continuation) == ("tiny", 2048, True, True)
    assert [(step.stage, step.done) for step in steps] == [
        ("start engine", 0),
        ("start engine", 1),
        ("load model", 0),
        ("load model", 1),
    ]
    chunks = [chunk async for chunk in engine.complete(CompletionRequest(PROMPT, max_tokens=9))]
    last = chunks[-1]
    assert last.finish_reason == "length" and last.usage is not None
    assert last.usage.prompt_tokens == last.usage.computed_tokens > 4
    assert last.usage.completion_tokens == 9
    assert last.timings is not None and last.timings.decode_ms > 0
    assert (last.model, last.provider) == ("tiny", "CPU")
    assert all(chunk.finish_reason is None for chunk in chunks[:-1])
    assert await engine.count_tokens(["", "def", "<|fim_middle|>"]) == [0, 1, 12]
    assert await engine.model_info() == info
    assert seen.kinds == ["starting", "loading", "ready"]


async def test_two_windows_share_one_engine_and_its_state(engine: LocalEngine, tiny: Path) -> None:
    await text_of(engine, CompletionRequest(PROMPT))
    second = Seen()
    other = LocalEngine(model=str(tiny), on_event=second.events.append)
    chunks = [chunk async for chunk in other.complete(CompletionRequest(PROMPT))]
    assert chunks[-1].usage is not None and chunks[-1].usage.computed_tokens == 1
    assert second.kinds == ["ready"], "nothing was started or loaded for it"
    await other.aclose()


async def test_requests_at_once_start_one_engine(engine: LocalEngine, seen: Seen) -> None:
    requests = [CompletionRequest(PROMPT, max_tokens=4) for _ in range(5)]
    texts = await asyncio.gather(*[text_of(engine, request) for request in requests])
    assert len(set(texts)) == 1
    assert seen.kinds == ["starting", "loading", "ready"]


def slots() -> list[dict[str, Any]]:
    status = control.status()
    assert status is not None
    return status.slots


def is_busy() -> bool:
    return any(slot["busy"] for slot in slots())


def tokens_held() -> list[int]:
    return [slot["tokens"] for slot in slots()]


async def test_closing_the_answer_cancels_it_at_the_engine(slow: Path) -> None:
    engine = LocalEngine(model=str(slow))
    answer = engine.complete(CompletionRequest("def", max_tokens=4000, temperature=1.0, seed=1))
    async for _ in answer:
        break
    await answer.aclose()
    await eventually(lambda: not is_busy())
    assert max(tokens_held()) < 4000
    # Cancelling the task does the same.
    again = CompletionRequest("class", max_tokens=4000, temperature=1.0, seed=2)
    task = asyncio.create_task(text_of(engine, again))
    await eventually(is_busy)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not is_busy())
    assert max(tokens_held()) < 4000
    assert len(await text_of(engine, CompletionRequest("if", max_tokens=3))) > 0
    await engine.aclose()
    await asyncio.to_thread(control.stop)


# --- it dies -----------------------------------------------------------------------------


async def test_after_a_crash_the_next_request_works(engine: LocalEngine, seen: Seen) -> None:
    before = await text_of(engine, CompletionRequest(PROMPT))
    crash()
    assert await text_of(engine, CompletionRequest(PROMPT)) == before
    assert seen.kinds == ["starting", "loading", "ready", "died", "starting", "loading", "ready"]


async def test_a_crash_in_the_middle_of_an_answer_is_an_engine_error(
    slow: Path, seen: Seen
) -> None:
    engine = LocalEngine(model=str(slow), on_event=seen.events.append)
    answer = engine.complete(CompletionRequest("def", max_tokens=4000, temperature=1.0, seed=1))
    await anext(answer)
    crash()
    with pytest.raises(EngineError) as caught:
        async for _ in answer:
            pass
    assert caught.value.message and caught.value.next_step
    assert await text_of(engine, CompletionRequest("def", max_tokens=3))
    assert seen.kinds.count("died") == 1
    await engine.aclose()
    await asyncio.to_thread(control.stop)


async def test_repeated_crashes_back_off(
    engine: LocalEngine, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pauses too long to be over by themselves while this runs, and a clock that can be set.
    monkeypatch.setattr(client, "_FIRST_PAUSE", 3000.0)
    monkeypatch.setattr(client, "_LONGEST_PAUSE", 3000.0)
    ahead = 0.0
    monkeypatch.setattr(client, "monotonic", lambda: time.monotonic() + ahead)
    await engine.model_info()
    crash()
    await engine.model_info()
    crash()
    for _ in range(3):
        with pytest.raises(EngineUnavailable, match="repeatedly") as caught:
            await engine.model_info()
        assert "log" in caught.value.next_step
    assert seen.kinds.count("died") == 2
    ahead = 3000.0
    await engine.model_info()


async def test_an_engine_that_was_stopped_is_started_again_without_alarm(
    engine: LocalEngine, seen: Seen
) -> None:
    await text_of(engine, CompletionRequest(PROMPT))
    await asyncio.to_thread(control.stop)
    await text_of(engine, CompletionRequest(PROMPT))
    assert "died" not in seen.kinds


async def test_an_engine_that_cannot_start_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    (tmp_path / "uvicorn.py").write_text("raise SystemExit('no uvicorn today')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    engine = LocalEngine(on_event=seen.events.append)
    with pytest.raises(EngineUnavailable, match="no uvicorn today"):
        await engine.model_info()
    assert seen.kinds == ["starting", "failed"]


# --- it refuses --------------------------------------------------------------------------


async def test_errors_keep_their_kind_and_next_step(engine: LocalEngine, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="window of 2048") as rejected:
        await text_of(engine, CompletionRequest([7] * 3000))
    assert "Shorten" in rejected.value.next_step
    with pytest.raises(ModelNotFound, match="no-such"):
        await text_of(engine, CompletionRequest("a", model="no-such"))
    unknown = LocalEngine(model="no-such-model")
    with pytest.raises(ModelNotFound, match="no-such-model"):
        await unknown.model_info()
    await unknown.aclose()
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "genai_config.json").write_text("{}")
    broken = LocalEngine(model=str(tmp_path / "p"))
    with pytest.raises(LoadFailed, match=r"model\.context_length is missing"):
        await broken.model_info()
    await broken.aclose()


def test_paths_are_made_absolute_and_names_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_reference("qwen2.5-coder-0.5b") == "qwen2.5-coder-0.5b"
    assert model_reference("") == ""
    assert Path(model_reference("./models/x")).is_absolute()
    assert Path(model_reference("models/x")).is_absolute()
    assert "~" not in model_reference("~/x")


async def test_a_smaller_context_is_what_the_model_reports(tiny: Path) -> None:
    engine = LocalEngine(model=str(tiny), options=EngineOptions(context_tokens=256))
    assert (await engine.model_info()).window == 256
    await engine.aclose()
    await asyncio.to_thread(control.stop)
