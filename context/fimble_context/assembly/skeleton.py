"""The part of a file above the text near the cursor, in short.

Imports, the headers of what encloses the cursor, and the signatures of what stands beside
those, each with its own indentation, so that the pieces, in order, read as the file with its
bodies left out. Costs by what is near the cursor's ancestors, not by the length of the file.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from tree_sitter import Node

from fimble_context.syntax.captures import captured, path_to, span
from fimble_context.syntax.document import Document
from fimble_context.syntax.scopes import enclosing_scopes
from fimble_context.syntax.signatures import render_all
from fimble_context.syntax.spans import cut_points
from fimble_context.syntax.symbols import symbols_of

__all__ = ["Piece", "Rank", "cut_to_syntax", "pieces"]

_IMPORTS_WITHIN = 20_000  # characters from the start of the file
_LONGEST_PIECE = 2_000


class Rank(IntEnum):
    """Why a piece is there; the smaller, the more it is wanted."""

    HEADER = 0
    IMPORT = 1
    OPENING = 2
    SIBLING = 3


@dataclass(frozen=True, slots=True)
class Header:
    """The text of a definition up to its body, which starts at ``body_start``."""

    end: int
    body_start: int
    text: str
    brace: bool

    def above(self, start: int) -> str:
        """This header for a prefix that begins at ``start``, within the body or at it."""
        return f"{self.text} {{\n" if self.brace and start > self.body_start else f"{self.text}\n"


@dataclass(frozen=True, slots=True)
class Piece:
    """A short form of the code points ``start`` to ``end``; whole lines with ``\\n`` ends.

    ``header`` alone stands for it where the prefix begins within the body.
    """

    start: int
    end: int
    text: str
    rank: Rank
    header: Header | None = None

    def above(self, start: int) -> Piece | None:
        """This piece for a prefix that begins at ``start``; None where it would repeat it.

        It is no longer than the whole piece.
        """
        if self.end <= start:
            return self
        if self.header is None or self.header.end > start:
            return None
        rank = min(self.rank, Rank.OPENING)
        return Piece(self.start, self.header.end, self.header.above(start), rank)


def pieces(document: Document, offset: int, most: int = 150) -> list[Piece]:
    """Pieces that could stand for text before ``offset``, in the order of the text.

    Of what stands side by side, the nearest ``most``.
    """
    tree = document.tree
    if tree is None:
        return []
    around = [tree.root_node, *path_to(document, offset)]
    found = [*_headers(document, offset), *_imports(document, around, offset)]
    blocks = {
        node.id for name, node in captured(document, "blocks", offset, offset) if name == "block"
    }
    starts = {piece.start for piece in found}
    for parent in around:
        if parent.id in blocks:
            siblings = _siblings(document, parent, offset, most)
            found += (piece for piece in siblings if piece.start not in starts)
    return sorted(found, key=lambda piece: (piece.start, piece.end))


def cut_to_syntax(document: Document, start: int, offset: int) -> int:
    """The best place from ``start`` on for the text near ``offset`` to begin at.

    That is where a statement begins that is as far out as any in the first tenth of the text;
    ``start`` itself where none begins there.
    """
    within = cut_points(document, start, start + (offset - start) // 10)
    best = min(within, key=lambda cut: (cut.depth, cut.offset), default=None)
    return best.offset if best else start


def _headers(document: Document, offset: int) -> Iterator[Piece]:
    for scope in enclosing_scopes(document, offset):
        header = _header(document, scope.start, scope.body_start, scope.header)
        # What encloses the cursor never ends above the prefix.
        text = header.above(scope.body_end)
        yield Piece(scope.start, max(offset, scope.end) + 1, text, Rank.HEADER, header)


def _header(document: Document, start: int, body_start: int, text: str) -> Header:
    end = start + len(document.text[start:body_start].rstrip())
    brace = document.text.startswith("{", body_start)
    return Header(end, body_start, textwrap.indent(text, _indent(document, start)), brace)


def _imports(document: Document, around: list[Node], offset: int) -> Iterator[Piece]:
    """The imports that hold at ``offset``: those directly in what is around it."""
    inside = {node.id for node in around}
    seen: set[int] = set()
    for name, node in captured(document, "imports", 0, min(offset, _IMPORTS_WITHIN)):
        if name not in ("import", "package"):
            continue
        statement = node
        while (parent := statement.parent) is not None and "import" in parent.type:
            statement = parent  # one of a group
        if parent is None or parent.id not in inside or statement.id in seen:
            continue
        seen.add(statement.id)
        start, end = span(document, statement)
        line_start = document.line_start(document.line_of(start))
        text = document.text[line_start:end].rstrip()
        if end <= offset and len(text) <= _LONGEST_PIECE:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            yield Piece(start, end, f"{text}\n", Rank.IMPORT)


def _siblings(document: Document, parent: Node, offset: int, most: int) -> Iterator[Piece]:
    """The signatures of the ``most`` last things in ``parent`` before ``offset``."""
    language = document.syntax_language
    assert language is not None  # there is a tree
    at = document.byte_of(offset)
    before = [child for child in parent.named_children if child.end_byte <= at]
    for symbol in symbols_of(document, before[-most:]):
        text = render_all([symbol], language, indent=_indent(document, symbol.start))
        if len(text) > _LONGEST_PIECE:
            continue
        header = None
        if symbol.body_start is not None:
            header = _header(document, symbol.start, symbol.body_start, symbol.signature)
        yield Piece(symbol.start, symbol.end, text, Rank.SIBLING, header)


def _indent(document: Document, offset: int) -> str:
    line_start = document.line_start(document.line_of(offset))
    text = document.text[line_start:offset]
    return text[: len(text) - len(text.lstrip())]
