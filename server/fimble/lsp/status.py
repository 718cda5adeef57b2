"""``fimble/status``: what the server is doing, for the editor's status line.

Parameters: ``{"state", "message", "model", "provider"}``, all strings; sent when one of
them changed. States: ``starting`` (the engine), ``loading`` (the model), ``ready``,
``busy`` (at least one completion is being made), ``error`` and ``disabled``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

__all__ = ["METHOD", "State", "StatusLine"]

METHOD = "fimble/status"

State = Literal["starting", "loading", "ready", "busy", "error", "disabled"]


@dataclass(frozen=True, slots=True)
class _Shown:
    state: State
    message: str = ""
    model: str = ""
    provider: str = ""


class StatusLine:
    """Sends the status when it changes. ``notify`` gets the method and its parameters."""

    def __init__(self, notify: Callable[[str, dict[str, Any]], None]) -> None:
        self._notify = notify
        self._engine = _Shown("starting")
        self._silent = ""
        self._working = 0
        self._sent: _Shown | None = None

    def engine(self, state: State, message: str = "") -> None:
        """The engine's state, apart from whether it is at work just now."""
        self._engine = replace(self._engine, state=state, message=message)
        self._send()

    def ready(self, model: str, provider: str) -> None:
        """The model is loaded."""
        self._engine = _Shown("ready", "", model, provider)
        self._send()

    def silent(self, why: str) -> None:
        """Why there are no completions at all just now; empty where there are."""
        self._silent = why
        self._send()

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """A completion is being made while the block runs."""
        self._working += 1
        self._send()
        try:
            yield
        finally:
            self._working -= 1
            self._send()

    def _send(self) -> None:
        shown = self._engine
        if self._silent:
            shown = replace(shown, state="disabled", message=self._silent)
        elif shown.state == "ready" and self._working:
            shown = replace(shown, state="busy")
        if shown != self._sent:
            self._sent = shown
            self._notify(METHOD, asdict(shown))
