"""Whole pieces of syntax: the one around a selection, and where text may be cut.

Works from ``blocks.scm``. For plain text, lines take the place of syntax.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Node

from fimble_context.syntax.captures import captured, children_from
from fimble_context.syntax.document import Document

__all__ = [
    "CutPoint",
    "Span",
    "cut_points",
    "enclosing_node",
    "enclosing_statements",
    "error_count",
]


@dataclass(frozen=True, slots=True)
class Span:
    """Code points ``start`` to ``end`` (exclusive)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CutPoint:
    """A place where text may begin or end without breaking a statement.

    ``depth`` counts the blocks around it: the smaller, the better a place to cut.
    """

    offset: int
    depth: int


def enclosing_node(document: Document, start: int, end: int) -> Span:
    """The smallest whole node that contains a selection, white space at its ends ignored."""
    start, end = _trimmed(document, start, end)
    tree = document.tree
    if tree is None:
        return _lines(document, start, end)
    node = tree.root_node.named_descendant_for_byte_range(
        document.byte_of(start), document.byte_of(end)
    )
    return _span(document, node or tree.root_node)


def enclosing_statements(document: Document, start: int, end: int) -> Span:
    """The smallest run of whole statements (members, items of a file) around a selection.

    Comments directly above the first are not part of it. Lines, where there is no tree.
    """
    start, end = _trimmed(document, start, end)
    if document.tree is None:
        return _lines(document, start, end)
    first, last = document.byte_of(start), document.byte_of(end)
    blocks = [
        node
        for name, node in captured(document, "blocks", start, end)
        if name == "block"
        and node.start_byte <= first
        and last <= node.end_byte
        and not (node.parent is not None and node.parent.type == "interpolation")
    ]
    for block in sorted(blocks, key=lambda node: node.end_byte - node.start_byte):
        touched = [
            child
            for child in block.named_children
            if child.end_byte >= first and child.start_byte <= last
        ]
        inside = [
            child for child in touched if child.end_byte > first and child.start_byte < last
        ] or touched[:1]
        if inside and inside[0].start_byte <= first and last <= inside[-1].end_byte:
            return Span(_span(document, inside[0]).start, _span(document, inside[-1]).end)
    return enclosing_node(document, start, end)


def cut_points(document: Document, start: int, end: int) -> list[CutPoint]:
    """Where the text from ``start`` to ``end`` may be cut, in order.

    Each is the beginning of a line that starts a statement or member (with the comments
    directly above it), or the end of a block's last one. Line starts, where there is no tree.
    """
    if document.tree is None:
        first, last = document.line_of(start), document.line_of(end)
        offsets = (document.line_start(line) for line in range(first, last + 1))
        return [CutPoint(offset, 0) for offset in offsets if start <= offset <= end]
    blocks = [node for name, node in captured(document, "blocks", start, end) if name == "block"]
    blocks.sort(key=lambda node: (node.start_byte, -node.end_byte))
    found: dict[int, int] = {}
    around: list[Node] = []
    for block in blocks:
        while around and around[-1].end_byte <= block.start_byte:
            around.pop()
        # A block that is all of another (a file of one section) is no deeper than that.
        depth = len(around)
        if around and around[-1].byte_range == block.byte_range:
            depth -= 1
        else:
            around.append(block)
        for offset in _cuts_of(document, block, start, end):
            found[offset] = min(depth, found.get(offset, depth))
    return [CutPoint(offset, found[offset]) for offset in sorted(found)]


def error_count(document: Document, start: int = 0, end: int | None = None) -> int:
    """How many nodes in a range are errors or missing; looks only where there are any.

    To see whether an edit makes a text parse worse: count before it and, on a copy, after it.
    """
    tree = document.tree
    if tree is None:
        return 0
    first = document.byte_of(start)
    last = len(document.source) if end is None else document.byte_of(end)
    count = 0
    stack = [tree.root_node]
    while stack:
        node = stack.pop()
        if not node.has_error or node.end_byte < first or node.start_byte > last:
            continue
        count += node.is_error or node.is_missing
        stack.extend(node.children)
    return count


def _cuts_of(document: Document, block: Node, start: int, end: int) -> Iterator[int]:
    first, last = document.byte_of(start), document.byte_of(end)
    previous: Node | None = None
    for child in children_from(block, first):
        if child.start_byte > last:
            return
        if not (previous is not None and _documents(previous, child)):
            offset = _line_start_before(document, child)
            if offset is not None and start <= offset <= end:
                yield offset
        previous = child
    if previous is not None:
        line = document.line_of(document.offset_of_byte(previous.end_byte))
        after = document.line_start(line + 1)
        if start <= after <= end:
            yield after


def _documents(above: Node, node: Node) -> bool:
    return "comment" in above.type and above.end_point.row + 1 >= node.start_point.row


def _line_start_before(document: Document, node: Node) -> int | None:
    """The start of the line that ``node`` begins, None where something else is before it."""
    offset = document.offset_of_byte(node.start_byte)
    line_start = document.line_start(document.line_of(offset))
    return line_start if not document.text[line_start:offset].strip() else None


def _trimmed(document: Document, start: int, end: int) -> tuple[int, int]:
    text = document.text[start:end]
    if not text.strip():
        return start, start
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())


def _lines(document: Document, start: int, end: int) -> Span:
    first, last = document.line_of(start), document.line_of(end)
    return Span(document.line_start(first), document.line_end(last))


def _span(document: Document, node: Node) -> Span:
    return Span(document.offset_of_byte(node.start_byte), document.offset_of_byte(node.end_byte))
