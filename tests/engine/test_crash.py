"""Native code that crashes in an engine: one message with the cause, and no word of what was asked.

Real engines, which are sent the signals that such a crash is. Their logs, their folder and what
the user is told are looked through for what was planted in the prompts.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from fimble import system
from fimble.engine import control
from fimble.engine.address import read_address
from fimble.engine.client import EngineEvent, LocalEngine
from fimble.engine.crash import crash_cause
from fimble.engine.launcher import log_path
from fimble.engine.protocol import CompletionRequest
from fimble.errors import EngineUnavailable
from tests.engine.test_faults import text_of, until_it_computes_a_prompt
from tests.support.slow import make_slow_package
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="a process cannot be sent an access violation"
)

PLANTED = "PLANTED7Q2X9"
CRASHES = {
    "SIGSEGV": "a segmentation fault in native code",
    "SIGABRT": "native code that gave up",
    "SIGBUS": "a bus error in native code",
    "SIGILL": "an instruction that this processor does not have",
}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_slow_package(tmp_path_factory.mktemp("packages") / "slow")


@pytest.fixture
def events() -> list[EngineEvent]:
    return []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
async def engine(slow: Path, events: list[EngineEvent], home: Path) -> AsyncIterator[LocalEngine]:
    engine = LocalEngine(model=str(slow), on_event=events.append)
    yield engine
    await engine.aclose()
    await asyncio.to_thread(control.stop)


@pytest.mark.parametrize("name", CRASHES)
async def test_a_crash_is_told_with_its_cause_and_holds_nothing_of_the_prompt(
    name: str, engine: LocalEngine, events: list[EngineEvent], home: Path
) -> None:
    await engine.load()
    prompt = f"api_key = '{PLANTED}'\n" * 100
    request = CompletionRequest(prompt, max_tokens=4000, document=f"file:///{PLANTED}.py")
    asking = asyncio.create_task(text_of(engine, request))
    await until_it_computes_a_prompt()
    address = read_address()
    assert address is not None
    os.kill(address.pid, getattr(signal, name))
    with pytest.raises(EngineUnavailable) as caught:
        await asking
    await eventually(lambda: not system.is_alive(address.pid))
    (told,) = [event for event in events if event.kind == "died"]
    assert CRASHES[name] in told.message and str(log_path()) in told.next_step
    log = log_path().read_text(encoding="utf-8")
    assert "Fatal Python error" in log and "scheduler.py" in log
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert not [path for path in kept if PLANTED.encode() in path.read_bytes()]
    assert not [path for path in kept if path.name.startswith("core")]
    assert PLANTED not in f"{told}{caught.value}"
    # The next one is another, which has not crashed.
    assert await text_of(engine, CompletionRequest("def", max_tokens=3))
    again = read_address()
    assert again is not None and crash_cause(log_path(), again.port) == ""


async def test_an_engine_leaves_no_image_of_its_memory(engine: LocalEngine) -> None:
    await engine.load()
    address = read_address()
    assert address is not None
    process = psutil.Process(address.pid)
    if not hasattr(process, "rlimit"):
        pytest.skip("this system does not tell of another process's limits")
    assert process.rlimit(getattr(psutil, "RLIMIT_CORE"))[0] == 0  # noqa: B009 - Linux has it


LISTENS = "2026-01-01 INFO fimble.engine.process: listening on 127.0.0.1:4242\n"
LOGS = {
    "Windows": (f"{LISTENS}Windows fatal exception: access violation\n\nThread", "an access"),
    "an earlier engine": (f"Fatal Python error: Segmentation fault\n{LISTENS}", ""),
    "another engine": ("listening on 127.0.0.1:1\nFatal Python error: Aborted\n" + LISTENS, ""),
    "words that are no cause": (f"{LISTENS}Fatal Python error: the user's text\n", ""),
    "within a line": (f"{LISTENS}said: Fatal Python error: Aborted\n", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("text", "cause"), LOGS.values(), ids=LOGS)
def test_only_known_causes_are_taken_from_a_log(text: str, cause: str, tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_bytes(text.replace("\n", os.linesep).encode())
    assert crash_cause(log, 4242).startswith(cause) and bool(crash_cause(log, 4242)) == bool(cause)
    assert crash_cause(tmp_path / "none.log", 4242) == ""
