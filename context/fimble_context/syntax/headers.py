"""Headers: the text of a definition up to its body, cut out and written short.

Knows nodes and text; what kind of definition it is makes no difference here.
"""

from __future__ import annotations

import re
import textwrap

from tree_sitter import Node

from fimble_context.syntax.document import Document

__all__ = ["body_start", "header"]

_LONGEST_HEADER = 400
_KEYWORD = re.compile(r"[a-z]+\s*(?=\{)")
_OPEN = re.compile(r"([(\[])\s+")
_CLOSE = re.compile(r",?\s+([)\]])")


def header(document: Document, outer: Node, node: Node, body: Node | None) -> str:
    """The text of a definition up to its body, on one line where that keeps its meaning.

    ``outer`` may begin with decorators and the like, which keep lines of their own.
    """
    language = document.syntax_language
    start = document.offset_of_byte(node.start_byte)
    before = _plain(document.text[document.offset_of_byte(outer.start_byte) : start])
    if body is not None:
        text = _plain(document.text[start : _header_end(document, body)]).rstrip()
    else:
        end = document.offset_of_byte(node.end_byte)
        text = _plain(document.text[start:end]).rstrip()
        text = _first_lines(text, " ..." if language and language.elision else "")
    text = _joined(text, language.comment if language else "")
    lines = [*filter(None, map(str.strip, before.splitlines())), text]
    return ("\n" if "\n" in before else " ").join(lines)


def body_start(document: Document, body: Node) -> int:
    """Where a body starts: behind a keyword that the grammar counts to it (Go's interface)."""
    start, end = document.offset_of_byte(body.start_byte), document.offset_of_byte(body.end_byte)
    keyword = _KEYWORD.match(document.text, start, end)
    return keyword.end() if keyword else start


def _header_end(document: Document, body: Node) -> int:
    """Where a header ends: at the body, or at comments or broken text in front of it."""
    first = body
    while (above := first.prev_sibling) is not None and (above.is_error or "comment" in above.type):
        first = above
    if first is not body:
        return document.offset_of_byte(first.start_byte)
    return body_start(document, body)


def _first_lines(text: str, dots: str) -> str:
    """A definition without a body: its first line and ``dots`` for the rest."""
    first, newline, _ = text.partition("\n")
    if not newline:
        return text
    # A parameter list goes on; a value need not be shown.
    if first.count("(") > first.count(")") and "=" not in first:
        return text
    return first.rstrip() + dots


def _joined(text: str, comment: str) -> str:
    if "\n" not in text:
        return text[:_LONGEST_HEADER]
    if comment and re.search(rf"(?:^|\s){re.escape(comment)}", text):
        return textwrap.dedent(" " * 80 + text).strip()[:_LONGEST_HEADER]
    joined = " ".join(text.split())
    return _CLOSE.sub(r"\1", _OPEN.sub(r"\1", joined))[:_LONGEST_HEADER]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
