"""``textDocument/completion``: the suggestion as an item, for editors without inline ones.

Registered only where the editor lacks ``textDocument/inlineCompletion``. Editors filter items
by the word that is being typed, so an item replaces that word and begins with it.
"""

from __future__ import annotations

import logging

from lsprotocol import types

from fimble.lsp.convert import offset_of, range_of
from fimble.lsp.offers import Offers
from fimble.lsp.statistics import SessionStatistics
from fimble.lsp.suggestions import Suggestions, ViewOf
from fimble.lsp.text_sync import OpenDocuments

__all__ = ["OPTIONS", "Completions"]

logger = logging.getLogger(__name__)

OPTIONS = types.CompletionOptions(trigger_characters=list(" .([{,=:>"))
_LONGEST_LABEL = 80


class Completions:
    """Answers completion requests: one item, or none; to be asked again with the next key."""

    def __init__(
        self,
        documents: OpenDocuments,
        suggestions: Suggestions,
        offers: Offers,
        view_of: ViewOf,
        statistics: SessionStatistics,
    ) -> None:
        self._statistics = statistics
        self._documents = documents
        self._suggestions = suggestions
        self._offers = offers
        self._view_of = view_of

    async def answer(self, params: types.CompletionParams) -> types.CompletionList:
        """The list for a position."""
        asked_at = self._statistics.now()
        nothing = types.CompletionList(is_incomplete=True, items=[])
        uri = params.text_document.uri
        document, view = self._documents.get(uri), self._view_of(uri)
        encoding = self._documents.encoding
        offset = None if document is None else offset_of(document, params.position, encoding)
        refused = self._suggestions.refused(uri, offset)
        if refused is not None or document is None or view is None or offset is None:
            logger.debug("no completion: %s", refused.name if refused else "closed")
            return nothing
        word = _word_before(document.text, offset)
        suggestion = await self._suggestions.suggest(
            uri, view.document, view.inside(offset), invoked=False
        )
        if suggestion is None or not suggestion.text:
            return nothing
        text = word + suggestion.text
        start = offset - len(word)
        offer = self._offers.add(uri, text, start)
        self._statistics.answered(uri, [offer], suggestion, asked_at)
        label = text.strip().splitlines()[0][:_LONGEST_LABEL]
        item = types.CompletionItem(
            label,
            kind=types.CompletionItemKind.Snippet,
            detail="fimble",
            documentation=text if "\n" in text else None,
            filter_text=text.lstrip().splitlines()[0] if word else None,
            insert_text_mode=types.InsertTextMode.AsIs,
            text_edit=types.TextEdit(range_of(document, start, offset, encoding), text),
            command=offer.command,
        )
        return types.CompletionList(is_incomplete=True, items=[item])


def _word_before(text: str, offset: int) -> str:
    start = offset
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:offset]
