"""Engines that are killed or hang, at each stage of their work: real processes, no fakes.

Whoever waits is told so in one error, and the next request is answered by a new engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import psutil
import pytest

from fimble import system
from fimble.engine import control, watchdog
from fimble.engine.address import read_address
from fimble.engine.client import EngineEvent, LocalEngine
from fimble.engine.protocol import CompletionRequest
from fimble.errors import EngineError, EngineUnavailable
from tests.support.slow import make_slow_package
from tests.support.waiting import eventually

LONG_ANSWER = CompletionRequest("def", max_tokens=4000, temperature=1.0, seed=1)
LONG_PROMPT = CompletionRequest("x = 1\n" * 500, max_tokens=1)
SHORT = CompletionRequest("def", max_tokens=3)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_package(tmp_path_factory.mktemp("packages") / "slow")


@pytest.fixture
def events() -> list[EngineEvent]:
    return []


@asynccontextmanager
async def engine_of(package: Path, events: list[EngineEvent]) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(model=str(package), on_event=events.append)
    yield engine
    await engine.aclose()
    await asyncio.to_thread(control.stop)


@pytest.fixture
async def engine(
    slow: Path, events: list[EngineEvent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalEngine]:
    """One whose work takes long enough to be caught at it."""
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    async with engine_of(slow, events) as engine:
        yield engine


@pytest.fixture
async def quick_engine(
    tiny: Path, events: list[EngineEvent], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalEngine]:
    """One that loads at once."""
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    async with engine_of(tiny, events) as engine:
        yield engine


@pytest.fixture
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hanging engine is not waited for as long as outside of tests."""
    monkeypatch.setattr(watchdog, "_INTERVAL_SECONDS", 0.3)
    monkeypatch.setattr(watchdog, "STOPPED_SECONDS", 1.0)


def process() -> psutil.Process:
    address = read_address()
    assert address is not None
    return psutil.Process(address.pid)


async def text_of(engine: LocalEngine, request: CompletionRequest) -> str:
    return "".join([chunk.text async for chunk in engine.complete(request)])


def died(events: list[EngineEvent]) -> list[str]:
    return [event.message for event in events if event.kind == "died"]


async def until_it_computes_a_prompt() -> None:
    def tokens() -> int:
        status = control.status()
        return 0 if status is None else max((slot["tokens"] for slot in status.slots), default=0)

    while await asyncio.to_thread(tokens) == 0:
        await asyncio.sleep(0.01)


# --- killed ------------------------------------------------------------------------------


async def test_killed_before_it_has_loaded_a_model(
    quick_engine: LocalEngine, events: list[EngineEvent]
) -> None:
    def kill_once(event: EngineEvent) -> None:
        events.append(event)
        if event.kind == "loading" and not died(events):
            process().kill()

    quick_engine._on_event = kill_once
    with pytest.raises(EngineUnavailable, match="ended") as caught:
        await quick_engine.load()
    assert "starts it again" in caught.value.next_step
    assert await text_of(quick_engine, SHORT)
    assert len(died(events)) == 1


async def test_killed_while_it_computes_a_prompt(
    engine: LocalEngine, events: list[EngineEvent]
) -> None:
    await engine.load()
    answer = asyncio.create_task(text_of(engine, LONG_PROMPT))
    await until_it_computes_a_prompt()
    process().kill()
    with pytest.raises(EngineUnavailable):
        await answer
    assert await text_of(engine, SHORT)
    assert len(died(events)) == 1


async def test_killed_while_several_wait_it_is_told_once(
    engine: LocalEngine, events: list[EngineEvent]
) -> None:
    await engine.load()
    answers = [asyncio.create_task(text_of(engine, LONG_ANSWER)) for _ in range(3)]
    await until_it_computes_a_prompt()
    process().kill()
    problems = await asyncio.gather(*answers, return_exceptions=True)
    assert all(isinstance(problem, EngineError) for problem in problems)
    assert await text_of(engine, SHORT)
    assert len(died(events)) == 1


async def test_no_process_is_left_of_one_that_was_killed(quick_engine: LocalEngine) -> None:
    await quick_engine.load()
    first = process()
    first.kill()
    await eventually(lambda: not system.is_alive(first.pid))
    assert await text_of(quick_engine, SHORT)
    second = process()
    assert second.pid != first.pid
    await asyncio.to_thread(control.stop)
    await eventually(lambda: not system.is_alive(second.pid))
    assert read_address() is None


# --- hung --------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_patience")
async def test_hung_while_it_answers_it_is_ended_and_replaced(
    engine: LocalEngine, events: list[EngineEvent]
) -> None:
    answer = engine.complete(LONG_ANSWER)
    await anext(answer)
    hung = process()
    hung.suspend()
    with pytest.raises(EngineUnavailable):
        async for _ in answer:
            pass
    assert not system.is_alive(hung.pid)
    assert await text_of(engine, SHORT)
    (message,) = died(events)
    assert "hung and was ended" in message


@pytest.mark.usefixtures("short_patience")
async def test_hung_between_requests_it_is_ended_and_replaced(
    quick_engine: LocalEngine, events: list[EngineEvent]
) -> None:
    await quick_engine.load()
    hung = process()
    hung.suspend()
    with pytest.raises(EngineUnavailable):
        await text_of(quick_engine, SHORT)
    assert not system.is_alive(hung.pid)
    assert await text_of(quick_engine, SHORT)
    assert len(died(events)) == 1


@pytest.mark.usefixtures("short_patience")
async def test_suspended_for_a_moment_it_goes_on(
    quick_engine: LocalEngine, events: list[EngineEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "STOPPED_SECONDS", 300.0)
    request = CompletionRequest("def", max_tokens=20)
    before = await text_of(quick_engine, request)
    process().suspend()
    answer = asyncio.create_task(text_of(quick_engine, request))
    looked_at = await counted_looks(monkeypatch, 2)
    process().resume()
    assert await answer == before
    assert looked_at >= 2 and not died(events)


async def counted_looks(monkeypatch: pytest.MonkeyPatch, wanted: int) -> int:
    """Waits until the watchdog has looked so often at a silent engine."""
    looks = 0
    real = watchdog.Watchdog._hangs

    def counted(self: watchdog.Watchdog, silent: float) -> bool:
        nonlocal looks
        looks += 1
        return real(self, silent)

    monkeypatch.setattr(watchdog.Watchdog, "_hangs", counted)
    await eventually(lambda: looks >= wanted)
    return looks


async def test_busy_without_a_word_is_not_hung_but_idle_without_one_is(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A load may hold the interpreter for minutes: silent for long, but at work. And Windows
    # does not tell of a process that it was stopped.
    monkeypatch.setattr(psutil.Process, "status", lambda _self: psutil.STATUS_SLEEPING)
    monkeypatch.setattr(watchdog, "SILENT_SECONDS", 0.0)
    answer = engine.complete(LONG_ANSWER)
    await anext(answer)
    dog = engine._watchdog
    assert dog is not None
    dog._note_work()
    for _ in range(30):
        await anext(answer)
    assert not dog._hangs(silent=0.1)
    process().suspend()
    dog._note_work()
    assert dog._hangs(silent=0.1)
    process().resume()
    await answer.aclose()


async def test_a_machine_that_slept_is_given_its_time_again(
    engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some systems' clocks go on while they sleep; the engine holds its interpreter meanwhile."""
    asleep = 0.0
    silences: list[float] = []

    async def silent(self: watchdog.Watchdog) -> bool:
        return False

    def looked(self: watchdog.Watchdog, silence: float) -> bool:
        silences.append(silence)
        return False

    monkeypatch.setattr(watchdog, "_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(watchdog, "monotonic", lambda: monotonic() + asleep)
    monkeypatch.setattr(watchdog.Watchdog, "_answers", silent)
    monkeypatch.setattr(watchdog.Watchdog, "_hangs", looked)
    await engine.load()
    dog = engine._watchdog
    assert dog is not None
    with dog.waiting():
        await eventually(lambda: silences)
        asleep = 100_000.0
        before = len(silences)
        await eventually(lambda: len(silences) > before + 1)
    assert max(silences) < 100_000.0
