"""The documents that the editor has open, as it sees them.

The one copy of each text: pygls's own workspace keeps none (see ``protocol``), since it
splits the whole text on every change. Knows no files on disk.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from fimble.lsp.convert import document_key, document_path, span_of
from fimble_context.syntax import Document, Edit, Encoding

__all__ = ["DocumentListener", "OpenDocuments"]

logger = logging.getLogger(__name__)


class DocumentListener:
    """Hears what happens to open documents, after it happened. Nothing, unless overridden."""

    def opened(self, uri: str, document: Document) -> None:
        """The document is open, perhaps again with another text."""

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        """``edits`` were applied in this order, each to the text the one before left."""

    def closed(self, uri: str) -> None:
        """The document is no longer open."""


@dataclass
class OpenDocuments:
    """Open documents by URI. ``listeners`` hear of every document whose text changed.

    Set ``encoding`` before the first document is opened.
    """

    encoding: Encoding = "utf-16"
    listeners: list[DocumentListener] = field(default_factory=list)
    _by_key: dict[str, Document] = field(default_factory=dict)

    def get(self, uri: str) -> Document | None:
        """The open document, or None."""
        return self._by_key.get(document_key(uri))

    def all(self) -> list[Document]:
        """Every open document."""
        return list(self._by_key.values())

    def open(self, item: types.TextDocumentItem) -> None:
        """``textDocument/didOpen``. Opening again replaces the text."""
        key = document_key(item.uri)
        if key in self._by_key:
            logger.warning("a document that is open was opened again")
        document = Document(
            item.text,
            path=document_path(item.uri),
            language=str(item.language_id),
            version=item.version,
        )
        self._by_key[key] = document
        for listener in self.listeners:
            listener.opened(item.uri, document)

    def change(
        self,
        identifier: types.VersionedTextDocumentIdentifier,
        changes: Sequence[types.TextDocumentContentChangeEvent],
    ) -> None:
        """``textDocument/didChange``: each change applies to the text the one before left.

        A version that does not grow is logged, and its changes are applied all the same:
        messages come in order, so it is the numbering that is wrong, and leaving an edit
        out would leave us with another text than the editor has.
        """
        document = self.get(identifier.uri)
        if document is None:
            logger.warning("a change to a document that is not open was ignored")
            return
        if identifier.version <= document.version:
            logger.warning(
                "out of order: version %d of a document came after version %d",
                identifier.version,
                document.version,
            )
        edits = [self._apply(document, change) for change in changes]
        document.version = identifier.version
        for listener in self.listeners:
            listener.changed(identifier.uri, document, edits)

    def close(self, identifier: types.TextDocumentIdentifier) -> None:
        """``textDocument/didClose``."""
        if self._by_key.pop(document_key(identifier.uri), None) is None:
            logger.warning("a document that is not open was closed")
        for listener in self.listeners:
            listener.closed(identifier.uri)

    def _apply(self, document: Document, change: types.TextDocumentContentChangeEvent) -> Edit:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = span_of(document, change.range, self.encoding)
        else:
            start, end = 0, len(document.text)
        edit = Edit(start, end, change.text)
        document.apply(edit)
        return edit
