"""What a command says on standard error while it waits for the engine."""

from __future__ import annotations

from fimble.cli.output import say
from fimble.engine.client import EngineEvent

__all__ = ["say_engine_event"]


def say_engine_event(event: EngineEvent) -> None:
    """For ``LocalEngine(on_event=…)``: why it takes a while, and what is not as it should be."""
    if event.kind in ("starting", "loading", "stage", "notice"):
        say(event.message)
