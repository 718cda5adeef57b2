"""Waiting for what a test is about: for the event itself, and no longer than for ever.

The bound is there so that a test fails instead of hanging. It is far beyond what anything
takes on a slow and loaded machine, and no test may depend on it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["PATIENCE", "eventually", "until"]

#: Seconds.
PATIENCE = 300.0


def until(condition: Callable[[], object], *, patience: float = PATIENCE) -> None:
    """Waits until something observable is so; fails when it never is."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.02)


async def eventually(condition: Callable[[], object], *, patience: float = PATIENCE) -> None:
    """``until`` for what happens on this event loop."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        await asyncio.sleep(0.005)
