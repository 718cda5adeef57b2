"""Why there are no completions, for the status line, where there are none on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fimble.lsp.status import StatusLine
from fimble.lsp.suggestions import Suggestions

__all__ = ["Silence"]


class Silence:
    """Keeps the status line right about completions that are switched off or snoozed."""

    def __init__(
        self, status: StatusLine, suggestions: Suggestions, *, enabled: Callable[[], bool]
    ) -> None:
        self._status = status
        self._suggestions = suggestions
        self._enabled = enabled
        self._waking: asyncio.TimerHandle | None = None

    def show(self) -> None:
        """Says it as it is now, and says it again when a snooze ends."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        snoozed = self._suggestions.snoozed
        if snoozed:
            loop = asyncio.get_running_loop()
            self._waking = loop.call_later(self._suggestions.snooze_seconds, self.show)
        if not self._enabled():
            self._status.silent("completion.enabled is false.")
        else:
            self._status.silent("Completions are snoozed." if snoozed else "")
