"""Messages to the user (``window/showMessage``): each distinct cause is told once.

Completions are asked for on every keystroke; what is wrong stays wrong, and saying so once
is enough. When things work again, the next failure is news; but a model that gives nonsense now
and then is told of once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from lsprotocol import types

from fimble.controls import without_controls
from fimble.errors import FimbleError, ModelMisbehaved

__all__ = ["Messages"]

logger = logging.getLogger(__name__)


class Messages:
    """``show`` sends a message to the editor."""

    def __init__(self, show: Callable[[types.ShowMessageParams], None]) -> None:
        self._show = show
        self._told: set[str] = set()
        # What an answer that works does not take back.
        self._lasting: set[str] = set()

    def error(self, error: FimbleError) -> None:
        """Tells of a failure, unless it was told before."""
        lasting = isinstance(error, ModelMisbehaved)
        self._tell(types.MessageType.Error, f"fimble: {error}", lasting=lasting)

    def warning(self, text: str) -> None:
        """Tells of something that the user should know, unless it was told before."""
        self._tell(types.MessageType.Warning, f"fimble: {text}")

    def notice(self, text: str) -> None:
        """Tells of something in any case: the caller knows that it is news."""
        self._send(types.MessageType.Warning, f"fimble: {text}")

    def recovered(self) -> None:
        """Things work: any failure from now on is worth telling again."""
        self._told.clear()

    def start_over(self) -> None:
        """With another model everything is worth telling."""
        self._told.clear()
        self._lasting.clear()

    def _tell(self, kind: types.MessageType, text: str, *, lasting: bool = False) -> None:
        # "… again in 3 s" and "… in 2 s" are one cause.
        cause = re.sub(r"\d+", "#", text)
        if cause in self._told | self._lasting:
            return
        (self._lasting if lasting else self._told).add(cause)
        self._send(kind, text)

    def _send(self, kind: types.MessageType, text: str) -> None:
        # Names of files, and what a server or a setting said, may be in it.
        text = without_controls(text)
        logger.warning("told the user: %s", text)
        self._show(types.ShowMessageParams(kind, text))
