"""``fimble/apply``: code of a chat's answer as an edit, judged as a code action's is.

``{uri, range?, version?, text}`` gives ``{edit, about, notes}``: a workspace edit with the smallest
change, for the editor to apply, in the form that a code action's has: versioned and annotated, and
to be confirmed, as the editor can and the settings say. ``range`` and ``version`` are those that a
block of the answer came with; without a range, as blocks for files that were not open have none, it
is the whole document. Code that is a definition of several takes its place alone. A document that
has moved on is refused, as is code that breaks its syntax or would take away what it does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from fimble.errors import EditRefused, FimbleError
from fimble.lsp.chat_params import failure, object_of, range_from_json
from fimble.lsp.convert import span_of
from fimble.lsp.text_sync import OpenDocuments

if TYPE_CHECKING:
    from fimble.assist.edit.service import EditOutcome
    from fimble_context.syntax import Document

__all__ = ["Apply", "Converter", "Placer"]

#: ``EditService.apply``: a document, a span in code points, code.
Placer = Callable[["Document", int, int, str], "EditOutcome"]
#: ``EditHost.changes``: the outcome for a document as the editor takes it.
Converter = Callable[[str, "Document", "int | None", "EditOutcome"], types.WorkspaceEdit]


class Apply:
    """Answers ``fimble/apply``."""

    def __init__(self, documents: OpenDocuments, place: Placer, convert: Converter) -> None:
        self._documents = documents
        self._place = place
        self._convert = convert

    def answer(self, params: Any) -> dict[str, Any]:
        """The edit. Raises JsonRpcException, with the refusal's name in its data."""
        given = object_of(params)
        uri, text = given.get("uri"), given.get("text")
        if not isinstance(uri, str) or not isinstance(text, str):
            raise JsonRpcInvalidParams("uri and text must be strings.")
        span = given.get("range")
        span = None if span is None else range_from_json(span, "range")
        try:
            return self._edit(uri, span, given.get("version"), text)
        except FimbleError as error:
            raise failure(error) from error

    def _edit(self, uri: str, span: types.Range | None, version: Any, text: str) -> dict[str, Any]:
        document = self._documents.get(uri)
        if document is None:
            raise EditRefused("The document is not open.", next_step="Open it.", name="closed")
        if version is not None and version != document.version:
            raise EditRefused(
                "The document was edited since the answer was made.",
                next_step="Ask again.",
                name="moved",
            )
        start, end = 0, len(document.text)
        if span is not None:
            start, end = span_of(document, span, self._documents.encoding)
        outcome = self._place(document, start, end, text)
        edit = self._convert(uri, document, document.version, outcome)
        return {"edit": edit, "about": outcome.about, "notes": list(outcome.notes)}
