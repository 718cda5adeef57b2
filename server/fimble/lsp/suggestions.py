"""Suggestions for places in open documents: whoever asks, the newest request wins.

What ``textDocument/inlineCompletion`` and ``textDocument/completion`` have in common. A newer
request for a document, or a change to it, ends the older request, which is then answered
with nothing; the work at the engine goes on only if it still fits what was typed.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

from fimble.assist.completion import CompletionService, Suggestion
from fimble.assist.policy import Refusal, refusal
from fimble.assist.settings import CompletionSettings
from fimble.errors import FimbleError
from fimble.lsp.convert import document_key
from fimble.lsp.debounce import Debounce
from fimble.lsp.engine_host import EngineHost
from fimble.lsp.settings import Settings
from fimble.lsp.status import StatusLine
from fimble.lsp.text_sync import DocumentListener
from fimble.lsp.views import View
from fimble_context.syntax import Document, Edit
from fimble_context.workspace import Policy

__all__ = ["Suggestions", "ViewOf"]

logger = logging.getLogger(__name__)


class ViewOf(Protocol):
    """Gives the view of an open document; None for one that is not open."""

    def __call__(self, uri: str) -> View | None: ...


class Suggestions(DocumentListener):
    """Makes suggestions. ``settings`` gives those of the moment, ``files`` the file policy."""

    def __init__(
        self,
        host: EngineHost,
        status: StatusLine,
        settings: Callable[[], Settings],
        files: Callable[[], Policy | None],
        view_of: ViewOf,
    ) -> None:
        self._host = host
        self._status = status
        self._settings = settings
        self._files = files
        self._view_of = view_of
        self._debounce = Debounce()
        # Two windows may show the same file, and each has its "untitled:Untitled-1".
        self._window = uuid.uuid4().hex[:8]
        self._under_way: dict[str, asyncio.Task[Suggestion]] = {}
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._snoozed_until = 0.0

    # --- asking --------------------------------------------------------------------------

    def refused(self, uri: str, offset: int | None, *, invoked: bool = False) -> Refusal | None:
        """Why there is no suggestion at ``offset`` of the editor's text; None if there may be."""
        view = self._view_of(uri)
        here = None if view is None or offset is None else view.inside(offset)
        return refusal(
            None if view is None else view.document,
            self.settings,
            files=self._files(),
            offset=None if invoked else here,
            snoozed=self.snoozed,
        )

    async def suggest(
        self,
        uri: str,
        document: Document,
        offset: int,
        *,
        invoked: bool,
        on_more: Callable[[], None] | None = None,
    ) -> Suggestion | None:
        """The suggestion for a place; None if it was superseded or the engine failed.

        ``document`` is what completions see (see ``View``), and so is ``offset``. Where it is
        the first line of what is being made, ``on_more`` is called once all of it is there,
        unless the document was changed or another suggestion asked for meanwhile.
        """
        key = document_key(uri)
        self._supersede(key, document, offset)
        task = asyncio.create_task(self._work(key, document, offset, invoked))
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
        suggestion = self._outcome(task)
        if on_more is not None and suggestion is not None and suggestion.growing:
            work = self._follow(key, document, offset, suggestion, on_more)
            self._followed[key] = asyncio.create_task(work)
        return suggestion

    def name_of(self, uri: str) -> str:
        """The document's name at the engine."""
        return f"{self._window}:{document_key(uri)}"

    @property
    def service(self) -> CompletionService:
        """The completions of the model of the moment."""
        return self._host.completions

    @property
    def settings(self) -> CompletionSettings:
        """The settings of the moment."""
        return self._settings().completion

    @property
    def engine_works(self) -> bool:
        """Whether the engine has answered, and has not failed since."""
        return self._host.works

    # --- snoozing ------------------------------------------------------------------------

    @property
    def snoozed(self) -> bool:
        """Whether the user wants to be left alone for now."""
        return self.snooze_seconds > 0

    @property
    def snooze_seconds(self) -> float:
        """How long the user still wants that; 0 if not at all."""
        return max(0.0, self._snoozed_until - time.monotonic())

    def snooze(self, minutes: float) -> None:
        """No suggestions for so long; 0 ends it."""
        self._snoozed_until = time.monotonic() + 60 * minutes if minutes > 0 else 0.0
        if self.snoozed:
            self.supersede_all()

    # --- what happens to documents -------------------------------------------------------

    def opened(self, uri: str, document: Document) -> None:
        self._supersede(document_key(uri), None, 0)

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        self._debounce.typed()
        key = document_key(uri)
        view = self._view_of(uri) if self._may_go_on(key) else None
        if view is None or not edits:
            self._supersede(key, None, 0)
            return
        cursor = edits[-1].start + len(edits[-1].text)
        self._supersede(key, view.document, view.inside(cursor))

    def closed(self, uri: str) -> None:
        self._supersede(document_key(uri), None, 0)
        self.service.forget(self.name_of(uri))

    def supersede_all(self) -> None:
        """Ends every request under way, and all work for them."""
        for task in self._under_way.values():
            task.cancel()
        self._under_way.clear()
        for following in self._followed.values():
            following.cancel()
        self._followed.clear()
        self.service.end_all()

    # --- the work ------------------------------------------------------------------------

    def is_under_way(self, uri: str) -> bool:
        """Whether somebody waits for a suggestion in this document."""
        return document_key(uri) in self._under_way

    def _may_go_on(self, key: str) -> bool:
        return self.service.is_at_work(f"{self._window}:{key}")

    def _supersede(self, key: str, document: Document | None, offset: int) -> None:
        """Ends the request under way for a document; its work too, unless it fits ``offset``."""
        name = f"{self._window}:{key}"
        if document is None:
            self.service.end(name)
        else:
            self.service.keep(document, offset, self.settings, name=name)
        for task in (self._under_way.pop(key, None), self._followed.pop(key, None)):
            if task is not None:
                task.cancel()

    async def _work(self, key: str, document: Document, offset: int, invoked: bool) -> Suggestion:
        service, settings = self.service, self.settings
        name = f"{self._window}:{key}"
        if not invoked and not service.at_hand(document, offset, settings, name=name):
            await asyncio.sleep(self._debounce.delay())
        started = time.monotonic()
        suggestion = await service.complete(
            document, offset, settings, name=name, invoked=invoked, hurried=not invoked
        )
        if not suggestion.remembered:
            self._debounce.answered(time.monotonic() - started)
        return suggestion

    async def _follow(
        self,
        key: str,
        document: Document,
        offset: int,
        shown: Suggestion,
        on_more: Callable[[], None],
    ) -> None:
        """Waits for all of what is being made. It is remembered: no model is asked."""
        name = f"{self._window}:{key}"
        try:
            whole = await self.service.complete(document, offset, self.settings, name=name)
        except FimbleError as error:
            logger.info("the rest of a suggestion did not come: %s", type(error).__name__)
            return
        if whole.remembered and len(whole.text) > len(shown.text):
            on_more()

    def _outcome(self, task: asyncio.Task[Suggestion]) -> Suggestion | None:
        try:
            suggestion = task.result()
        except FimbleError as error:
            self._host.failed(error)
            return None
        if suggestion.remembered:
            logger.debug("completion: %d characters, remembered", len(suggestion.text))
            return suggestion
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
