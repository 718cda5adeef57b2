"""The machine runs short of memory: a real engine gives back what it can spare, and no more.

Only how much is free is made up: nothing while a file is there, plenty where it is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner

from fimble.cli.app import cli
from fimble.engine import memory_pressure
from fimble.engine.address import read_address
from fimble.engine.client import EngineEvent, LocalEngine
from fimble.engine.host import ModelHost
from fimble.engine.launcher import find_running
from fimble.engine.protocol import CompletionRequest
from fimble.engine.scheduler import Scheduler
from fimble.models.device_memory import DeviceMemory
from tests.engine.process import RunningEngine
from tests.support.slow import make_slow_package
from tests.support.waiting import until

#: An engine whose system says what the test wants, and that waits for no pause in typing.
ENGINE = """
import sys
from pathlib import Path
from fimble.engine import memory_pressure, process
from fimble.models.device_memory import DeviceMemory

def made_up_memory(provider):
    return DeviceMemory(0 if Path(sys.argv[1]).exists() else 8 << 30, 16 << 30, "in this test")

memory_pressure.free_memory = made_up_memory
memory_pressure.LOOK_SECONDS = 0.02
memory_pressure.CACHES_AFTER_SECONDS = 0.0
memory_pressure.MODELS_AFTER_SECONDS = float(sys.argv[2])
sys.exit(process.main(sys.argv[3:]))
"""
NEVER = 1e9
PROMPT = [(number * 7) % 300 for number in range(200)]


@contextlib.contextmanager
def engine_short_of_memory(
    home: Path, package: Path, short: Path, models_after: float
) -> Iterator[RunningEngine]:
    """Its package is loaded; ``short`` is the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIMBLE_HOME", str(home))
        command = [sys.executable, "-c", ENGINE, str(short), str(models_after)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, env=dict(os.environ))
        try:
            until(lambda: find_running() is not None or process.poll() is not None)
            address = read_address()
            assert address is not None, process.communicate()[1].decode()
            engine = RunningEngine(address, home)
            loaded = engine.http.post("/load", json={"model": str(package)})
            assert loaded.status_code == 200, loaded.text
            yield engine
            engine.http.close()
        finally:
            process.kill()
            _, log = process.communicate()
            (home / "said").write_bytes(log)


@pytest.fixture
def short(tmp_path: Path) -> Path:
    return tmp_path / "short"


def status(engine: RunningEngine) -> str:
    """What `fimble engine status` prints."""
    environ = {"FIMBLE_HOME": str(engine.home)}
    return CliRunner().invoke(cli, ["engine", "status"], env=environ).output


def usage(engine: RunningEngine) -> dict[str, int]:
    answer: dict[str, int] = engine.complete(PROMPT, max_tokens=2)["usage"]
    return answer


def test_idle_slots_go_first_and_their_prompts_are_computed_again(
    tiny: Path, tmp_path: Path, short: Path
) -> None:
    with engine_short_of_memory(tmp_path / "home", tiny, short, NEVER) as engine:
        assert usage(engine)["reused_tokens"] == 0
        assert usage(engine)["computed_tokens"] == 1
        short.touch()
        until(lambda: engine.health()["freed"] == {"slots": 1, "models": 0})
        assert engine.health()["slots"] == []
        assert "1 idle slots and 0 idle models were freed" in status(engine)
        short.unlink()
        assert usage(engine)["computed_tokens"] == len(PROMPT)
        assert usage(engine)["computed_tokens"] == 1
        assert engine.metric("fimble_model_loads_total") == 1
    said = (tmp_path / "home" / "said").read_text(encoding="utf-8")
    assert "0 MiB are free in this test: idle slots are freed" in said
    assert "models are unloaded" not in said


async def test_then_the_idle_model_goes_and_is_back_for_the_next_request_told_once(
    tiny: Path, tmp_path: Path, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[EngineEvent] = []
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    with engine_short_of_memory(tmp_path / "home", tiny, short, 0.0) as engine:
        window = LocalEngine(model=str(tiny), on_event=events.append)
        answers = [await text_of(window)]
        for times in (1, 2):
            short.touch()
            until(lambda: engine.health()["state"] == "idle")
            assert engine.health()["freed"] == {"slots": times, "models": times}
            short.unlink()
            answers.append(await text_of(window))
        assert engine.metric("fimble_model_loads_total") == 3
        await window.aclose()
    assert answers[0] and len(set(answers)) == 1
    (notice,) = [event.message for event in events if event.kind == "notice"]
    assert "ran short of memory" in notice


async def text_of(engine: LocalEngine) -> str:
    request = CompletionRequest(PROMPT, max_tokens=5)
    return "".join([chunk.text async for chunk in engine.complete(request)])


def test_nothing_is_taken_from_whoever_is_answered(tmp_path: Path, short: Path) -> None:
    package = make_slow_package(tmp_path / "slow")
    body: dict[str, Any] = {"prompt": PROMPT, "max_tokens": 60, "stream": True, "seed": 1}
    with engine_short_of_memory(tmp_path / "home", package, short, 0.0) as engine:
        with engine.http.stream("POST", "/v1/completions", json=body) as response:
            lines = filter(None, response.iter_lines())
            next(lines)
            short.touch()
            rest = list(lines)
        last = json.loads(rest[-2].removeprefix("data: "))
        assert rest[-1] == "data: [DONE]" and last["choices"][0]["finish_reason"] != "cancelled"
        assert "recomputed_tokens" not in last["extra"]
        until(lambda: engine.health()["state"] == "idle")


# --- a GPU: this machine's is a fake, and so are the models in it ----------------------------


class FakeGpuMachine:
    """A machine with a fake GPU, on which ``providers`` each have an idle model with a KV cache.

    ``free`` is what the GPU and the system have, by provider, in bytes. The watch ends when it
    has looked once; ``waited`` is for how long before, in seconds, and ``freed`` what it wanted.
    """

    def __init__(self, providers: list[str], free: dict[str, int]) -> None:
        self.models = [SimpleNamespace(provider=each, holds_caches=True) for each in providers]
        self.idle_seconds = 1e9
        self._free = free
        self.waited: list[float] = []
        self.freed: list[str] = []

    def free_memory(self, provider: str) -> DeviceMemory:
        return DeviceMemory(self._free[provider], 16 << 30, f"of the fake {provider}")

    def free_when_idle(self, what: str) -> None:
        self.freed.append(what)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        if len(self.waited) > 1:
            raise asyncio.CancelledError

    async def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(memory_pressure, "free_memory", self.free_memory)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)
        with pytest.raises(asyncio.CancelledError):
            await memory_pressure.watch_memory(cast(ModelHost, self), cast(Scheduler, self))


PLENTY, SHORT = 8 << 30, memory_pressure.LEAST_BYTES - 1


@pytest.mark.parametrize(
    ("providers", "free", "freed"),
    [
        (["AMDGPU"], {"AMDGPU": SHORT}, ["slots"]),
        (["AMDGPU"], {"AMDGPU": PLENTY}, []),
        # The one in which there is least counts, wherever the other model is.
        (["CPU", "AMDGPU"], {"CPU": PLENTY, "AMDGPU": SHORT}, ["slots"]),
        (["AMDGPU", "CPU"], {"CPU": SHORT, "AMDGPU": PLENTY}, ["slots"]),
    ],
)
async def test_a_gpus_own_memory_counts_and_is_asked_for_seldom(
    providers: list[str],
    free: dict[str, int],
    freed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = FakeGpuMachine(providers, free)
    await machine.watch(monkeypatch)
    assert machine.freed == freed
    assert machine.waited == [memory_pressure.LOOK_AT_GPU_SECONDS] * 2


async def test_a_model_in_a_gpu_goes_when_its_caches_have_gone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = FakeGpuMachine(["AMDGPU"], {"AMDGPU": SHORT})
    machine.models[0].holds_caches = False
    await machine.watch(monkeypatch)
    assert machine.freed == ["models"]
    assert "are free of the fake AMDGPU: models are unloaded" in caplog.text


async def test_where_no_model_is_in_a_gpu_it_is_looked_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = FakeGpuMachine(["CPU"], {"CPU": SHORT})
    await machine.watch(monkeypatch)
    assert machine.freed == ["slots"]
    assert machine.waited == [memory_pressure.LOOK_SECONDS] * 2
