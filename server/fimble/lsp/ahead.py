"""The next suggestion, made before anybody asks: after accepting, a pause, or a moved cursor.

What is made lies in the memory of suggestions; nothing is sent to the editor. A failure is no
news here: whoever asks will hear of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from fimble.errors import FimbleError
from fimble.lsp.suggestions import Suggestions, ViewOf
from fimble.lsp.text_sync import DocumentListener, OpenDocuments
from fimble_context.syntax import Document, Edit

__all__ = ["Ahead"]

logger = logging.getLogger(__name__)

#: Seconds without a change that make a pause.
PAUSE_SECONDS = 0.5


class Ahead(DocumentListener):
    """One place at a time: the newest one is the likeliest."""

    def __init__(self, documents: OpenDocuments, suggestions: Suggestions, view_of: ViewOf) -> None:
        self._documents = documents
        self._suggestions = suggestions
        self._view_of = view_of
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        """A pause from now on means that the user thinks about what comes next."""
        if edits:
            cursor = edits[-1].start + len(edits[-1].text)
            self.prepare(uri, cursor, after=PAUSE_SECONDS)

    def closed(self, uri: str) -> None:
        self.stop()

    def cursor_moved(self, uri: str, offset: int) -> None:
        """The cursor is at ``offset`` of the editor's text, without a change."""
        document = self._documents.get(uri)
        if document is not None and _is_likely(document, offset):
            self.prepare(uri, offset, after=PAUSE_SECONDS)

    def prepare(self, uri: str, offset: int, *, after: float = 0.0) -> None:
        """Makes the suggestion for a place in ``after`` seconds, unless something comes up."""
        self.stop()
        if self._suggestions.settings.ahead:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(after, self._begin, uri, offset)

    def stop(self) -> None:
        """What was not begun yet is not made."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begin(self, uri: str, offset: int) -> None:
        task = asyncio.create_task(self._prepare(uri, offset))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _prepare(self, uri: str, offset: int) -> None:
        suggestions = self._suggestions
        if suggestions.is_under_way(uri) or suggestions.refused(uri, offset) is not None:
            return
        view = self._view_of(uri)
        if view is None or not suggestions.engine_works:
            return
        try:
            await suggestions.service.prepare(
                view.document,
                view.inside(offset),
                suggestions.settings,
                name=suggestions.name_of(uri),
            )
        except FimbleError as error:
            logger.info("nothing was prepared: %s", type(error).__name__)


def _is_likely(document: Document, offset: int) -> bool:
    """Whether a user who goes there will probably write: at a line's end, nothing behind it."""
    line = document.line_of(offset)
    return not document.text[offset : document.line_end(line)].strip()
