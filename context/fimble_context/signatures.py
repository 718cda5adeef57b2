"""Signatures: a definition without its body, written short.

``header`` cuts one out of the text; ``render`` writes a symbol with its documentation and,
for a class or the like, its members' headers. The result reads as code of the language, with
``\\n`` line ends; it need not compile.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tree_sitter import Node

from fimble_context.document import Document
from fimble_context.languages import Language

if TYPE_CHECKING:
    from fimble_context.symbols import Symbol

__all__ = ["body_start", "header", "render", "render_all"]

_LONGEST_HEADER = 400
_MOST_MEMBERS = 60
_KEYWORD = re.compile(r"[a-z]+\s*(?=\{)")
_OPEN = re.compile(r"([(\[])\s+")
_CLOSE = re.compile(r",?\s+([)\]])")
_MEMBERLESS = frozenset({"function", "method", "constructor", "macro"})


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


def render(symbol: Symbol, language: Language, *, indent: str = "") -> str:
    """A symbol's signature with documentation, and the members of a class; ends with a newline."""
    doc = f"{indent}{language.comment} {symbol.doc}\n" if symbol.doc and language.comment else ""
    text = textwrap.indent(symbol.signature, indent)
    members = _members(symbol, language, indent + "    ")
    if language.id == "python":
        return _render_python(symbol, text, members, indent)
    if symbol.body_start is None:
        return f"{doc}{text}\n"
    tail = symbol.tail if language.closing == "}" else ""
    if tail[:1].isalnum():
        tail = f" {tail}"
    if not members:
        return f"{doc}{text}{language.elision}{tail}\n"
    opening = " {" if language.closing == "}" else ""
    closing = f"{indent}{language.closing}{tail}\n" if language.closing else ""
    return f"{doc}{text}{opening}\n{members}{closing}"


def _render_python(symbol: Symbol, text: str, members: str, indent: str) -> str:
    doc = f'{indent}    """{symbol.doc}"""\n' if symbol.doc and symbol.body_start else ""
    if symbol.body_start is None:
        return f"{text}\n"
    if members:
        return f"{text}\n{doc}{members}"
    return f"{text}\n{doc}{indent}    ...\n" if doc else f"{text} ...\n"


def _members(symbol: Symbol, language: Language, indent: str) -> str:
    if symbol.kind in _MEMBERLESS:
        return ""
    return render_all(symbol.children, language, indent=indent, most=_MOST_MEMBERS)


def render_all(
    symbols: Iterable[Symbol], language: Language, *, indent: str = "", most: int | None = None
) -> str:
    """Several symbols, at most ``most`` of them.

    One that shares its text with the one before is left out, since "int a, b;" defines two
    names in one piece of text.
    """
    shown: list[Symbol] = []
    for symbol in symbols:
        if not shown or (symbol.start, symbol.end) != (shown[-1].start, shown[-1].end):
            shown.append(symbol)
    more = f"{indent}...\n" if most is not None and len(shown) > most else ""
    return "".join(render(symbol, language, indent=indent) for symbol in shown[:most]) + more
