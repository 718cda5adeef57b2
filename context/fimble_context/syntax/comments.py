"""Comments, strings and documentation: where code is not code, and what it says.

Works from ``strings.scm``; the marks that comments begin and end with are the only thing
known of languages.
"""

from __future__ import annotations

import re
from typing import Literal

from tree_sitter import Node

from fimble_context.syntax.captures import captured, node_text
from fimble_context.syntax.document import Document

__all__ = ["documentation", "text_kind"]

_LONGEST_DOC = 120
_OPENING = re.compile(r"^\s*(?:///?!?|//!|/\*[*!]?|\*(?!/)|#+(?!!)|--+(?:\[=*\[)?|<!--)?\s*")
_CLOSING = re.compile(r"\s*(?:\*+/|-->|\]=*\])?\s*$")
_MARKUP = re.compile(r"</?[a-zA-Z][^>]*>")
_QUOTES = re.compile(r"^[a-zA-Z]*(\"\"\"|'''|\"|')|(\"\"\"|'''|\"|')$")
_TRANSPARENT = frozenset({"attribute_item"})  # stands between an item and its comment


def text_kind(document: Document, offset: int) -> Literal["code", "comment", "string"]:
    """Whether text typed at ``offset`` is code, or part of a comment or a string.

    The quotes of a string are its edges: before the first and after the last is code. After
    the last character of a line comment is still comment.
    """
    at = document.byte_of(offset)
    smallest: tuple[int, str] | None = None
    for name, node in captured(document, "strings", offset, offset):
        inside = node.start_byte < at < node.end_byte
        if not inside and at in node.byte_range:
            inside = _includes_its_edge(name, node_text(document, node), at == node.end_byte)
        size = node.end_byte - node.start_byte
        if inside and (smallest is None or size < smallest[0]):
            smallest = size, name
    if smallest is None or smallest[1] == "interpolation":
        return "code"
    return "comment" if smallest[1] == "comment" else "string"


def _includes_its_edge(name: str, text: str, at_end: bool) -> bool:
    if name == "comment":
        return at_end and not text.endswith(("*/", "-->", "]]", "\n", "\r"))
    # Some grammars count the brackets to the interpolation, some do not.
    return name == "interpolation" and not text.endswith((")", "}"))


def documentation(document: Document, node: Node, docstring: Node | None) -> str:
    """The first line that documents a definition: of its docstring, or of comments above it."""
    if docstring is not None:
        return _first_line(_QUOTES.sub("", node_text(document, docstring)))
    first = node
    while (comment := _comment_above(document, first)) is not None:
        first = comment
    if first is node:
        return ""
    start = document.offset_of_byte(first.start_byte)
    text = document.text[start : document.offset_of_byte(node.start_byte)]
    return _first_line(text)


def _first_line(text: str) -> str:
    for line in text.splitlines():
        if line.startswith("#!"):
            continue
        cleaned = _MARKUP.sub("", _CLOSING.sub("", _OPENING.sub("", line))).strip()
        if any(character.isalnum() for character in cleaned):
            return cleaned[:_LONGEST_DOC]
    return ""


def _comment_above(document: Document, node: Node) -> Node | None:
    """The comment (or attribute) on the line just above ``node``, alone on its lines."""
    above = node.prev_sibling
    parent = node.parent
    while above is None and parent is not None and parent.start_byte == node.start_byte:
        # The first member's comment may stand before the body that holds the member.
        above, parent = parent.prev_sibling, parent.parent
    if above is None or not ("comment" in above.type or above.type in _TRANSPARENT):
        return None
    end = above.end_point
    last_row = end.row - (end.column == 0)  # some grammars let a comment end the line
    line = document.line_of(document.offset_of_byte(above.start_byte))
    indent = document.text[document.line_start(line) : document.offset_of_byte(above.start_byte)]
    return above if last_row + 1 >= node.start_point.row and not indent.strip() else None
