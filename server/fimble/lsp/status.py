"""``fimble/status``: what the server is doing, for the editor's status line.

Parameters: ``{"state", "message", "model", "provider", "budget", "remote"}``, sent when one of
them changed. All are strings but ``budget``: null, or the tokens of a prompt and an answer, and
between which bounds the prompt's are (``{"prompt", "answer", "floor", "ceiling"}``). ``remote``
names the other machines that code and questions are sent to; it is empty where there are none.

States: ``starting`` (the engine), ``loading`` (the model), ``ready``, ``busy`` (at least one
completion is being made), ``error`` and ``disabled``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fimble.assist.budget import Budget

__all__ = ["METHOD", "State", "StatusLine"]

METHOD = "fimble/status"

State = Literal["starting", "loading", "ready", "busy", "error", "disabled"]


@dataclass(frozen=True, slots=True)
class _Shown:
    state: State
    message: str = ""
    model: str = ""
    provider: str = ""
    budget: dict[str, int] | None = None
    remote: str = ""


class StatusLine:
    """Sends the status when it changes. ``notify`` gets the method and its parameters."""

    def __init__(self, notify: Callable[[str, dict[str, Any]], None]) -> None:
        self._notify = notify
        self._engine = _Shown("starting")
        self._silent = ""
        self._budget: dict[str, int] | None = None
        self._working = 0
        self._remote = ""
        self._sent: _Shown | None = None

    def engine(self, state: State, message: str = "") -> None:
        """The engine's state, apart from whether it is at work just now."""
        self._engine = replace(self._engine, state=state, message=message)
        self._send()

    def ready(
        self, model: str, provider: str, budget: Budget | None = None, message: str = ""
    ) -> None:
        """The model is loaded; ``budget`` is how long prompts and answers are here, if new.

        ``message`` is what a user should know of how it completes.
        """
        if budget is not None:
            self._budget = _shown_budget(budget)
        self._engine = _Shown("ready", message, model, provider)
        self._send()

    def show_budget(self, budget: Budget) -> None:
        """Prompts and answers are so long from now on."""
        self._budget = _shown_budget(budget)
        self._send()

    def sent_to(self, hosts: Sequence[str]) -> None:
        """Text goes to these machines from now on."""
        self._remote = ", ".join(hosts)
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
        shown = replace(self._engine, budget=self._budget, remote=self._remote)
        if self._silent:
            shown = replace(shown, state="disabled", message=self._silent)
        elif shown.state == "ready" and self._working:
            shown = replace(shown, state="busy")
        if shown != self._sent:
            self._sent = shown
            self._notify(METHOD, asdict(shown))


def _shown_budget(budget: Budget) -> dict[str, int]:
    return {
        "prompt": budget.prompt,
        "answer": budget.answer,
        "floor": budget.floor,
        "ceiling": budget.ceiling,
    }
