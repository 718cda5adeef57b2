"""Pieces of files that make sense by themselves: whole definitions, whole statements.

A chunk begins and ends at a line, has ``\\n`` line ends and ends with one. Knows documents
and what is known of a file (facts); chooses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fimble_context.index.facts import Fact
from fimble_context.syntax.document import Document
from fimble_context.syntax.languages import Language
from fimble_context.syntax.signatures import render_all
from fimble_context.syntax.spans import Span, cut_points, enclosing_statements
from fimble_context.syntax.symbols import CONTAINERS, Symbol, symbols_at

__all__ = [
    "chunk_around",
    "enclosing_headers",
    "fact_chunk",
    "plain",
    "signature_of",
    "still_there",
]

_CALLABLE = frozenset({"function", "method", "constructor"})
_WITH_NEIGHBOURS = 600  # code points of statements that are no definition
_WORD = re.compile(r"\w+")


def plain(text: str) -> str:
    """Text with ``\\n`` line ends that ends with one, without blank lines at its ends."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return "".join(f"{line}\n" for line in lines)


def chunk_around(document: Document, start: int, end: int, most: int) -> Span:
    """The largest definition around a region of at most ``most`` code points, in whole lines.

    Where even the innermost is longer, or there is none, the whole statements around the
    region and their nearest neighbours. A region that is longer itself is cut.
    """
    text = document.text[start:end]
    if text.strip():
        start, end = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    end = min(max(start, end), start + most)
    for symbol in symbols_at(document, start):
        if symbol.end >= end and symbol.end - symbol.start <= most:
            return _lines(document, symbol.start, symbol.end)
    inner = enclosing_statements(document, start, end)
    if inner.end - inner.start > most or inner.start > start:
        inner = Span(start, end)
    spare = max(0, min(most, _WITH_NEIGHBOURS) - (inner.end - inner.start)) // 2
    around = _lines(document, inner.start, inner.end)
    first = max(0, inner.start - spare)
    last = min(len(document.text), inner.end + spare)
    cuts = [cut.offset for cut in cut_points(document, first, last)]
    return Span(
        min((cut for cut in cuts if cut <= around.start), default=around.start),
        max((cut for cut in cuts if cut >= around.end), default=around.end),
    )


def enclosing_headers(document: Document, start: int) -> str:
    """The header lines of the classes and the like around ``start``, outermost first."""
    around = [symbol for symbol in symbols_at(document, start) if symbol.start < start]
    return _headers(
        (symbol.signature for symbol in around if symbol.kind in CONTAINERS),
        document.syntax_language,
    )


def fact_chunk(text: str, fact: Fact) -> Span:
    """The whole lines of a definition in its file's text."""
    start = max(text.rfind("\n", 0, fact.start), text.rfind("\r", 0, fact.start)) + 1
    found = re.compile(r"[\r\n]").search(text, min(fact.end, len(text)))
    return Span(start, found.start() if found else len(text))


def still_there(text: str, fact: Fact) -> bool:
    """Whether a definition is where the index found it; the file may have changed since."""
    if fact.end > len(text):
        return False
    words = _WORD.findall(fact.signature)[:4]
    found = _WORD.findall(text[fact.start : fact.start + len(fact.signature) + 200])[: len(words)]
    return words == found and fact.name in text[fact.start : fact.end]


def signature_of(fact: Fact, members: Iterable[Fact], language: Language, *, depth: int = 0) -> str:
    """A definition in short, ``depth`` levels in: header, documentation, members' headers."""
    children = tuple(_symbol(member) for member in members)
    symbol = replace(_symbol(fact), children=children)
    return render_all([symbol], language, indent="    " * depth)


def _symbol(fact: Fact) -> Symbol:
    has_body = fact.kind in _CALLABLE | CONTAINERS and fact.end - fact.start > len(fact.signature)
    body = fact.start + len(fact.signature) if has_body else None
    return Symbol(
        name=fact.name,
        kind=fact.kind,
        start=fact.start,
        end=fact.end,
        name_start=fact.start,
        name_end=fact.start,
        body_start=body,
        body_end=fact.end if has_body else None,
        signature=fact.signature,
        tail="",
        doc=fact.doc,
    )


def _headers(signatures: Iterable[str], language: Language | None) -> str:
    opening = " {" if language is not None and language.closing == "}" else ""
    return "".join(
        "    " * depth + signature.splitlines()[-1] + opening + "\n"
        for depth, signature in enumerate(signatures)
    )


def container_headers(
    fact: Fact, by_name: Mapping[str, Sequence[Fact]], language: Language | None
) -> tuple[str, int]:
    """The header lines of the definitions around a fact, and how many there are.

    ``by_name``: the file's definitions by their whole name, such as ``Outer.Inner``; a class
    and what implements it may share one.
    """
    parts = fact.container.split(".") if fact.container else []
    found = [
        outer
        for count in range(1, len(parts) + 1)
        for outer in by_name.get(".".join(parts[:count]), ())
        if outer.kind in CONTAINERS and outer.start <= fact.start and fact.end <= outer.end
    ]
    return _headers((outer.signature for outer in found), language), len(found)


def _lines(document: Document, start: int, end: int) -> Span:
    return Span(
        document.line_start(document.line_of(start)), document.line_end(document.line_of(end))
    )
