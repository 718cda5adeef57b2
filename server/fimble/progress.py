"""How long-running work reports how far it is. Knows nothing of terminals or editors.

A worker calls the function it was given; the command line draws a bar from it, the
language server sends work-done progress, tests collect the events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["Progress", "ProgressEvent", "Unit", "ignore_progress"]

Unit = Literal["bytes", "tensors", "tokens", "steps"]


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """``done`` of ``total`` units of one stage; ``total`` is None while it is unknown.

    A stage begins with its first event and ends with the one where ``done == total``.
    """

    stage: str
    done: int
    total: int | None
    unit: Unit


Progress = Callable[[ProgressEvent], None]


def ignore_progress(event: ProgressEvent) -> None:
    """The progress function for callers that do not show any."""
