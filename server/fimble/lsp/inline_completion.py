"""``textDocument/inlineCompletion``: one answer for each request, the newest one wins.

A newer request for a document, or a change to it, ends the older request: its work at the
engine is cancelled and it is answered with an empty list, which every editor takes well
(``ContentModified`` makes some show an error). A request that the editor cancels itself gets
the protocol's error for that.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable

from lsprotocol import types

from fimble.assist.completion import Suggestion
from fimble.assist.policy import refusal
from fimble.errors import FimbleError
from fimble.lsp.convert import document_key, offset_of, range_of
from fimble.lsp.engine_host import EngineHost
from fimble.lsp.settings import Settings
from fimble.lsp.status import StatusLine
from fimble.lsp.text_sync import OpenDocuments
from fimble_context.document import Document

__all__ = ["InlineCompletions"]

logger = logging.getLogger(__name__)


class InlineCompletions:
    """Answers inline completion requests. ``settings`` gives those of the moment."""

    def __init__(
        self,
        documents: OpenDocuments,
        host: EngineHost,
        status: StatusLine,
        settings: Callable[[], Settings],
    ) -> None:
        self._documents = documents
        self._host = host
        self._status = status
        self._settings = settings
        # Two windows may show the same file, and each has its "untitled:Untitled-1".
        self._window = uuid.uuid4().hex[:8]
        self._under_way: dict[str, asyncio.Task[Suggestion]] = {}

    async def answer(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """The suggestions for a position: one, or none."""
        uri = params.text_document.uri
        self.supersede(uri)
        document = self._documents.get(uri)
        refused = refusal(document, self._settings().completion)
        if refused is not None or document is None:
            logger.debug("no completion: %s", refused.name if refused else "closed")
            return types.InlineCompletionList([])
        encoding = self._documents.encoding
        offset = offset_of(document, params.position, encoding)
        suggestion = await self._newest(uri, document, offset)
        if suggestion is None or not suggestion.text:
            return types.InlineCompletionList([])
        span = range_of(document, suggestion.start, suggestion.end, encoding)
        return types.InlineCompletionList([types.InlineCompletionItem(suggestion.text, range=span)])

    def supersede(self, uri: str) -> None:
        """Ends the request under way for a document: its answer would be of no use."""
        task = self._under_way.pop(document_key(uri), None)
        if task is not None:
            task.cancel()

    def supersede_all(self) -> None:
        """Ends every request under way."""
        for task in self._under_way.values():
            task.cancel()
        self._under_way.clear()

    async def _newest(self, uri: str, document: Document, offset: int) -> Suggestion | None:
        """The suggestion; None if it was superseded or the engine failed."""
        key = document_key(uri)
        task = asyncio.create_task(
            self._host.completions.complete(
                document, offset, self._settings().completion, name=f"{self._window}:{key}"
            )
        )
        self._under_way[key] = task
        try:
            with self._status.busy():
                # Not awaited itself: a superseded task must not look like a request that
                # the editor cancelled.
                await asyncio.wait({task})
        finally:
            if self._under_way.get(key) is task:
                del self._under_way[key]
            # If this request was cancelled, so is its work; a task that is done stays so.
            task.cancel()
        if task.cancelled():
            return None
        return self._outcome(task)

    def _outcome(self, task: asyncio.Task[Suggestion]) -> Suggestion | None:
        try:
            suggestion = task.result()
        except FimbleError as error:
            self._host.failed(error)
            return None
        self._host.worked(suggestion.model, suggestion.provider)
        usage, timings = suggestion.usage, suggestion.timings
        logger.info(
            "completion: %d characters, prompt %d tokens (%d reused), answer %d tokens, "
            "queued %.0f ms, prefill %.0f ms, decode %.0f ms",
            len(suggestion.text),
            usage.prompt_tokens,
            usage.reused_tokens,
            usage.completion_tokens,
            timings.queued_ms,
            timings.prefill_ms,
            timings.decode_ms,
        )
        return suggestion
