"""``textDocument/inlineCompletion``: one answer for each request, the newest one wins.

A request that a newer one, or a change, has superseded is answered with an empty list, which
every editor takes well (``ContentModified`` makes some show an error). A request that the
editor cancels itself gets the protocol's error for that.

A slow model's suggestion is the first line of a block at first. An editor that says so with the
experimental capability ``{"fimble": {"suggestionGrew": true}}`` is told in the notification
``fimble/suggestionGrew`` ``{uri, position}`` when all of it is there: asked again, automatically
and at the same position, the server gives it without a call of the model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from lsprotocol import types

from fimble.assist.completion import Suggestion
from fimble.lsp.abilities import is_experimental
from fimble.lsp.convert import offset_of, range_of, span_of
from fimble.lsp.offers import Offers
from fimble.lsp.statistics import SessionStatistics
from fimble.lsp.suggestions import Suggestions, ViewOf
from fimble.lsp.text_sync import OpenDocuments
from fimble_context.syntax import Document, Edit

__all__ = ["InlineCompletions"]

logger = logging.getLogger(__name__)

GREW = "fimble/suggestionGrew"
_NOTHING = types.InlineCompletionList([])


class InlineCompletions:
    """Answers inline completion requests."""

    def __init__(
        self,
        documents: OpenDocuments,
        suggestions: Suggestions,
        offers: Offers,
        view_of: ViewOf,
        statistics: SessionStatistics,
        notify: Callable[[str, dict[str, Any]], None],
    ) -> None:
        """``notify`` sends a notification: its method and parameters."""
        self._notify = notify
        self._grows = False
        self._statistics = statistics
        self._documents = documents
        self._suggestions = suggestions
        self._offers = offers
        self._view_of = view_of

    def initialize(self, capabilities: types.ClientCapabilities) -> None:
        """What the editor says of itself."""
        self._grows = is_experimental(capabilities, "suggestionGrew")

    async def answer(self, params: types.InlineCompletionParams) -> types.InlineCompletionList:
        """The suggestions for a position: several only if the user asked for them."""
        asked_at = self._statistics.now()
        uri = params.text_document.uri
        invoked = params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked
        document, view = self._documents.get(uri), self._view_of(uri)
        encoding = self._documents.encoding
        offset = None if document is None else offset_of(document, params.position, encoding)
        refused = self._suggestions.refused(uri, offset, invoked=invoked)
        if refused is not None or document is None or view is None or offset is None:
            logger.debug("no completion: %s", refused.name if refused else "closed")
            return _NOTHING
        selected = params.context.selected_completion_info
        if selected is not None:
            return await self._continue_selected(uri, document, selected, invoked, asked_at)
        suggestion = await self._suggestions.suggest(
            uri,
            view.document,
            view.inside(offset),
            invoked=invoked,
            on_more=(lambda: self._tell_more(params)) if self._grows else None,
        )
        if suggestion is None:
            return _NOTHING
        start, end = view.outside(suggestion.start), view.outside(suggestion.end)
        span = range_of(document, start, end, encoding)
        return self._items(uri, suggestion, "", start, span, asked_at)

    async def _continue_selected(
        self,
        uri: str,
        document: Document,
        selected: types.SelectedCompletionInfo,
        invoked: bool,
        asked_at: float,
    ) -> types.InlineCompletionList:
        """What goes on behind the item selected in the editor's list, and begins with it."""
        start, end = span_of(document, selected.range, self._documents.encoding)
        span = range_of(document, start, end, self._documents.encoding)
        view = self._view_of(uri)
        assert view is not None
        chosen = view.document.copy()
        chosen.apply(Edit(view.inside(start), view.inside(end), selected.text))
        suggestion = await self._suggestions.suggest(
            uri, chosen, view.inside(start) + len(selected.text), invoked=invoked
        )
        if suggestion is None:
            return _NOTHING
        return self._items(uri, suggestion, selected.text, start, span, asked_at)

    def _tell_more(self, params: types.InlineCompletionParams) -> None:
        position = params.position
        place = {"line": position.line, "character": position.character}
        self._notify(GREW, {"uri": params.text_document.uri, "position": place})

    def _items(
        self,
        uri: str,
        suggestion: Suggestion,
        chosen: str,
        start: int,
        span: types.Range,
        asked_at: float,
    ) -> types.InlineCompletionList:
        offers = [self._offers.add(uri, chosen + text, start) for text in suggestion.texts]
        self._statistics.answered(uri, offers, suggestion, asked_at)
        return types.InlineCompletionList(
            [
                types.InlineCompletionItem(
                    offer.text,
                    # The editor filters by what stands in the range, which is not what we
                    # continue.
                    filter_text=offer.text if chosen else None,
                    range=span,
                    command=offer.command,
                )
                for offer in offers
            ]
        )
