"""The soak in short form: nothing piles up from round to round."""

from __future__ import annotations

from pathlib import Path

import psutil

from fimble import system
from fimble.bench.soak import growth, run_soak
from fimble.engine.options import EngineOptions
from fimble.models.store import Store
from tests.support.tiny import make_tiny_package

#: What a process may hold more of for a while: connections that are kept, threads of a pool.
_LEEWAY = 10


async def test_rounds_of_typing_leave_every_process_as_it_was(tmp_path: Path) -> None:
    package = Store().find(str(make_tiny_package(tmp_path / "tiny")))
    samples = await run_soak(package, editors=1, bursts=6, pause=0.0, goes_on=lambda done: done < 6)
    assert set(samples) == {"engine", "window 1"}
    for process in samples.values():
        grown = growth(process, settled=2)
        assert grown["handles"] <= _LEEWAY and grown["threads"] <= _LEEWAY, process
        assert grown["bytes"] < 32 << 20, process
        assert process[-1].slots <= EngineOptions().slots


def test_handles_are_counted_in_each_systems_way() -> None:
    class Process:
        num_fds = staticmethod(lambda: 3)
        num_handles = staticmethod(lambda: 5)

    process: psutil.Process = Process()  # type: ignore[assignment]
    assert system.open_handles(process, "linux") == 3
    assert system.open_handles(process, "win32") == 5
