"""Documentation out of an answer, into code that stays as it is otherwise.

A model that is to document a function writes the whole function again, and may change it. So
only its documentation is taken: Python's docstring, or the comment above a definition.
"""

from __future__ import annotations

import re

from fimble.assist.edit.hunks import Hunk
from fimble.assist.edit.placing import placed
from fimble.assist.edit.problems import changed_document
from fimble.assist.edit.target import Target
from fimble_context.syntax import Document, Span, Symbol, outline, text_kind, walk

__all__ = ["comment_start", "documentation_of", "documented", "is_python", "symbol_in"]

_DOCSTRING = re.compile(
    r"[rRuU]?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\\n]|\\.)*\"(?!\")"
    r"|'(?:[^'\\\n]|\\.)*'(?!'))",
    re.DOTALL,
)


def documented(target: Target, code: str) -> str | None:
    """The text of the target's span with the documentation of ``code``.

    None where ``code`` has none for the definition, or has it in a place that is not its own.
    """
    symbol = target.symbol
    if symbol is None:
        return None
    text = placed(target, code)
    answer = changed_document(target.document, [Hunk(target.span.start, target.span.end, text)])
    end = target.span.start + len(text)
    theirs = symbol_in(answer, symbol.name, target.span.start, end)
    if theirs is None:
        return None
    if is_python(target.document):
        return _with_docstring(target, symbol, answer, theirs)
    start = max(comment_start(answer, theirs), target.span.start)
    comment = answer.text[start : theirs.start].rstrip()
    if not comment:
        return None
    newline, indent = target.document.newline, target.indent
    rest = target.document.text[symbol.start : target.span.end]
    return f"{comment}{newline}{indent}{rest}"


def documentation_of(document: Document, symbol: Symbol) -> str:
    """The documentation of a definition with its quotes or comment marks; empty without any."""
    if is_python(document):
        span = _docstring(document, symbol)
        return "" if span is None else document.text[span.start : span.end]
    return document.text[comment_start(document, symbol) : symbol.start].rstrip()


def comment_start(document: Document, symbol: Symbol) -> int:
    """Where the comment lines directly above a definition begin; its own start without any."""
    start = symbol.start
    line = document.line_of(start)
    if document.text[document.line_start(line) : start].strip():
        return start
    while line > 0:
        above = document.line_text(line - 1)
        if not above.strip():
            break
        place = document.line_start(line - 1) + len(above) - len(above.lstrip())
        if text_kind(document, place + 1) != "comment" or above.startswith("#!"):
            break
        line, start = line - 1, place
    return start


def symbol_in(document: Document, name: str, start: int, end: int) -> Symbol | None:
    """The first definition of that name within a span."""
    found = (
        item
        for item in walk(outline(document))
        if item.name == name and start <= item.start and item.end <= end
    )
    return next(found, None)


def is_python(document: Document) -> bool:
    """Whether documentation stands in a definition, not above it."""
    language = document.syntax_language
    return language is not None and language.id == "python"


def _with_docstring(target: Target, symbol: Symbol, answer: Document, theirs: Symbol) -> str | None:
    span = _docstring(answer, theirs)
    if span is None or symbol.body_start is None:
        return None
    document = target.document
    literal = answer.text[span.start : span.end]
    line = document.line_of(symbol.body_start)
    first = document.text[document.line_start(line) : symbol.body_start]
    if first.strip():
        return None  # the body stands on the header's line
    their_line = answer.text[answer.line_start(answer.line_of(span.start)) : span.start]
    lines = literal.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    moved = [first + part.removeprefix(their_line) if part.strip() else "" for part in lines[1:]]
    literal = document.newline.join([lines[0], *moved])
    own = _docstring(document, symbol)
    text = document.text
    if own is not None:
        before, after = text[target.span.start : own.start], text[own.end : target.span.end]
    else:
        before = text[target.span.start : symbol.body_start]
        after = f"{document.newline}{first}{text[symbol.body_start : target.span.end]}"
    return f"{before}{literal}{after}"


def _docstring(document: Document, symbol: Symbol) -> Span | None:
    if symbol.body_start is None:
        return None
    found = _DOCSTRING.match(document.text, symbol.body_start)
    if found is None:
        return None
    rest = document.text[found.end() : document.line_end(document.line_of(found.end()))]
    # A string that is part of an expression documents nothing.
    return Span(found.start(), found.end()) if not rest.strip(" \t;") or "#" in rest else None
