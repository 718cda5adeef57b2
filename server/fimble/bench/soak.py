"""Typing for long: whether memory, open files, threads and slots of all processes stay flat.

Rounds of typing over one engine, the document closed and opened in between; after each round
every process is looked at. The first rounds fill caches, so growth is counted from a later one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from fimble import system
from fimble.bench.fimble_editor import own_home
from fimble.bench.load import typed_by, windows
from fimble.engine import control
from fimble.errors import EngineUnavailable
from fimble.models.store import Package

__all__ = ["Sample", "growth", "run_soak"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One process after a round. ``slots`` is 0 for what is no engine."""

    seconds: float
    bytes: int
    handles: int
    threads: int
    slots: int = 0


async def run_soak(
    package: Package,
    *,
    editors: int,
    bursts: int,
    pause: float,
    goes_on: Callable[[int], bool],
) -> dict[str, list[Sample]]:
    """Samples by process ("engine", "window 1", …), one a round; ``goes_on`` is asked before
    each round with the number of those that are done.

    Raises FimbleError where that does not start, or an answer was lost.
    """
    samples: dict[str, list[Sample]] = {}
    messages: list[str] = []
    begun = time.monotonic()
    with own_home():
        async with windows(package, editors, messages) as opened:
            done = 0
            while goes_on(done):
                typists = (typed_by(editor, place, bursts, pause) for editor, place in opened)
                clients = await asyncio.gather(*typists)
                if messages or any(client.lost or client.doubled for client in clients):
                    raise EngineUnavailable(f"Answers were lost in round {done + 1}: {messages}.")
                done += 1
                seconds = time.monotonic() - begun
                samples.setdefault("engine", []).append(_engine_sample(seconds))
                for number, (editor, _) in enumerate(opened, 1):
                    window = _sample(seconds, psutil.Process(editor.server_pid))
                    samples.setdefault(f"window {number}", []).append(window)
                    editor.close()
    return samples


def growth(samples: list[Sample], settled: int) -> dict[str, Any]:
    """How much more there was at the end than after round ``settled`` (from 1)."""
    first, last = asdict(samples[settled - 1]), asdict(samples[-1])
    return {name: last[name] - first[name] for name in first}


def _engine_sample(seconds: float) -> Sample:
    status = control.status()
    if status is None:
        raise EngineUnavailable("The engine ended while it was used.")
    return _sample(seconds, psutil.Process(status.pid), len(status.slots))


def _sample(seconds: float, process: psutil.Process, slots: int = 0) -> Sample:
    return Sample(
        seconds=round(seconds, 1),
        bytes=int(process.memory_full_info().uss),
        handles=system.open_handles(process),
        threads=process.num_threads(),
        slots=slots,
    )
