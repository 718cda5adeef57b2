"""Runs a language's queries over a document's tree. Knows nodes; knows no meaning of them.

Everything here is empty for a document without a tree or a language without that query, so
callers need no other case for plain text. Nodes more than 500 deep are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from tree_sitter import Node, QueryCursor

from fimble_context.syntax.document import Document
from fimble_context.syntax.languages import QueryName, query

__all__ = [
    "Match",
    "captured",
    "children_from",
    "matches",
    "matches_of",
    "node_text",
    "path_to",
    "span",
    "with_fields",
]

Match: TypeAlias = tuple[int, dict[str, list[Node]]]
"""The index of the pattern within its query, and the nodes by capture name."""

# Bounds the work that one pathological text can cause; far above what real code needs.
_MATCH_LIMIT = 100_000
# tree-sitter finds a node's parent and siblings from the root down, so deep ones cost most.
_DEEPEST = 500


def matches(
    document: Document, name: QueryName, start: int | None = None, end: int | None = None
) -> list[Match]:
    """Matches of a query that touch the code points ``start`` to ``end`` (default: all)."""
    cursor, root = _cursor(document, name, start, end)
    return cursor.matches(root) if cursor is not None and root is not None else []


def captured(
    document: Document, name: QueryName, start: int | None = None, end: int | None = None
) -> Iterator[tuple[str, Node]]:
    """Captured nodes with their capture names, in no particular order."""
    cursor, root = _cursor(document, name, start, end)
    if cursor is None or root is None:
        return
    for capture, nodes in cursor.captures(root).items():
        for node in nodes:
            yield capture, node


def matches_of(document: Document, nodes: Iterable[tuple[Node, int]]) -> list[Match]:
    """Matches of the definitions query that begin at each node or so many levels below it."""
    cursor, _ = _cursor(document, "definitions", None, None)
    found: list[Match] = []
    if cursor is not None:
        for node, depth in nodes:
            cursor.set_max_start_depth(depth)
            found += cursor.matches(node)
    return found


def with_fields(captures: dict[str, list[Node]], node: Node) -> dict[str, list[Node]]:
    """A match's captures; without a name, with ``name`` and ``body`` from the node's fields."""
    if "name" in captures or "declarator" in captures:
        return captures
    fields = {field: node.child_by_field_name(field) for field in ("name", "body")}
    return {
        **{field: [child] for field, child in fields.items() if child is not None},
        **captures,
    }


def children_from(node: Node, byte: int) -> Iterator[Node]:
    """The named children of ``node`` that end after ``byte``, in order, found without a list."""
    # Not first_named_child_for_byte: where there is none, it gives a node that crashes.
    cursor = node.walk()
    if cursor.goto_first_child_for_byte(byte) is None:
        return
    while True:
        child = cursor.node
        if child is not None and child.is_named:
            yield child
        if not cursor.goto_next_sibling():
            return


def path_to(document: Document, offset: int) -> list[Node]:
    """The nodes from below the root down to those that hold or end at ``offset``."""
    tree = document.tree
    if tree is None:
        return []
    at = document.byte_of(offset)
    found: dict[int, Node] = {}
    for byte in (at, max(0, at - 1)):
        cursor = tree.walk()
        for _ in range(_DEEPEST):
            if cursor.goto_first_child_for_byte(byte) is None:
                break
            node = cursor.node
            if node is None or node.start_byte > byte:
                break
            found[node.id] = node
    return list(found.values())


def _cursor(
    document: Document, name: QueryName, start: int | None, end: int | None
) -> tuple[QueryCursor | None, Node | None]:
    language = document.syntax_language
    tree = document.tree
    compiled = query(language, name) if language else None
    if tree is None or compiled is None:
        return None, None
    cursor = QueryCursor(compiled, match_limit=_MATCH_LIMIT)
    cursor.set_max_start_depth(_DEEPEST)
    if start is not None or end is not None:
        first = document.byte_of(start or 0)
        last = document.byte_of(len(document.text) if end is None else end)
        # A range of no bytes would mean no limit; the byte before lets a node end at it.
        cursor.set_byte_range(max(0, first - 1), last + 1)
    return cursor, tree.root_node


def span(document: Document, node: Node) -> tuple[int, int]:
    """The code points that a node covers."""
    return document.offset_of_byte(node.start_byte), document.offset_of_byte(node.end_byte)


def node_text(document: Document, node: Node) -> str:
    """The text of a node, with the document's own line ends."""
    start, end = span(document, node)
    return document.text[start:end]
