"""Between the protocol's terms and ours: positions, ranges and URIs.

Editors count columns in units of the encoding that was negotiated; everything below this
package counts code points. Nothing else converts.
"""

from __future__ import annotations

from lsprotocol import types

from fimble import system
from fimble_context.syntax import Document, Encoding

__all__ = ["document_key", "document_path", "encoding_of", "offset_of", "range_of", "span_of"]

_ENCODINGS: dict[str, Encoding] = {"utf-8": "utf-8", "utf-16": "utf-16", "utf-32": "utf-32"}


def encoding_of(kind: types.PositionEncodingKind | str | None) -> Encoding:
    """The encoding that was negotiated; UTF-16 where nothing was."""
    name = kind.value if isinstance(kind, types.PositionEncodingKind) else kind
    return _ENCODINGS.get(name or "utf-16", "utf-16")


def offset_of(document: Document, position: types.Position, encoding: Encoding) -> int:
    """Code points before ``position``; a position outside the text is clamped into it."""
    return document.offset_at(position.line, position.character, encoding)


def span_of(document: Document, span: types.Range, encoding: Encoding) -> tuple[int, int]:
    """Start and end offset of a range, clamped, in order even if the client's are not."""
    start = offset_of(document, span.start, encoding)
    end = offset_of(document, span.end, encoding)
    return (start, end) if start <= end else (end, start)


def range_of(document: Document, start: int, end: int, encoding: Encoding) -> types.Range:
    """The range between two offsets in code points."""
    return types.Range(
        _position_of(document, start, encoding), _position_of(document, end, encoding)
    )


def _position_of(document: Document, offset: int, encoding: Encoding) -> types.Position:
    position = document.position_at(offset, encoding)
    return types.Position(position.line, position.column)


def document_path(uri: str, *platform: str) -> str:
    """The path that a ``file:`` URI names; empty for ``untitled:`` and other schemes.

    ``platform`` is passed on to ``system.path_from_uri``; without it, it is this one's.
    """
    path = system.path_from_uri(uri, *platform)
    return "" if path is None else str(path)


def document_key(uri: str, *platform: str) -> str:
    """What tells documents apart: the path, since one file's URI can be written in many ways.

    Documents that are no files are told apart by their URI.
    """
    return document_path(uri, *platform) or uri
