"""The engine of a command, and what is said on standard error while it is waited for."""

from __future__ import annotations

from fimble.cli.output import say
from fimble.engine.base import Engine
from fimble.engine.client import EngineEvent
from fimble.engine.connect import connect
from fimble.engine.remote.choice import Purpose

__all__ = ["engine_for", "say_engine_event"]


def engine_for(purpose: Purpose, model: str, provider: str) -> Engine:
    """The one that the user has chosen for ``purpose``, and this machine's where the command
    names a model or what computes. Raises SettingsError.
    """
    here = bool(model or provider)
    return connect(purpose, model, say_engine_event, provider=provider, remote=not here)


def say_engine_event(event: EngineEvent) -> None:
    """For an engine's ``on_event``: why it takes a while, and what is not as it should be."""
    if event.kind in ("starting", "loading", "stage", "notice"):
        say(event.message)
