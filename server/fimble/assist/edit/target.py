"""What an edit may replace: a range grown to whole nodes, as a prompt shows it.

The code is shown without the indentation that all of it has, with ``\\n`` line ends and with
keys masked; the original of every line is kept, so that a line that comes back unchanged goes
back as it was. Asks documents only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fimble.assist.edit.hunks import lines_of
from fimble.assist.edit.tasks import EditTask
from fimble.assist.layout import prompt_text
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import (
    Document,
    Span,
    Symbol,
    enclosing_scopes,
    enclosing_statements,
    outline,
    symbols_at,
    text_kind,
)
from fimble_context.workspace import mask_secrets

__all__ = ["FUNCTIONS", "Target", "definition_at", "definitions_in", "grow", "make_target"]

FUNCTIONS = frozenset({"function", "method", "constructor", "macro"})
_CONTAINERS = frozenset({"class", "interface", "struct", "enum", "impl", "type"})
#: A diagnostic's function is shown whole where it is no longer than that.
_SHORT_LINES = 60
#: So many comment lines above a selection's code are looked through.
_MOST_COMMENT_LINES = 100
_PLACEHOLDER = re.compile(r"<[a-z][a-z0-9 -]*>")


@dataclass(frozen=True, slots=True)
class Target:
    """Code points ``span`` of ``document`` are what may change, and nothing else.

    ``code`` are the lines as shown; ``originals`` the same lines as they are, from the span's
    first character on, with their line ends. ``indent`` is the white space in front of the
    first one. ``symbol`` is what the span defines; ``around`` are the names of what encloses
    it, outermost first. ``masked`` are placeholders that stand for keys.
    """

    document: Document
    span: Span
    code: tuple[str, ...]
    originals: tuple[str, ...]
    indent: str
    symbol: Symbol | None
    around: tuple[str, ...]
    masked: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """What is there, as it is."""
        return self.document.text[self.span.start : self.span.end]

    @property
    def shown(self) -> str:
        """What is there, as a prompt shows it."""
        return "\n".join(self.code)

    @property
    def name(self) -> str:
        """What a person calls it: ``Cart.add``, ``line 7`` or ``lines 3 to 7``."""
        if self.symbol is not None:
            return ".".join((*self.around, self.symbol.name))
        return lines_name(self.document, self.span)

    @property
    def subject(self) -> str:
        """``name`` at the beginning of a sentence: code keeps its spelling."""
        return self.name if self.symbol is not None else self.name.capitalize()


def lines_name(document: Document, span: Span) -> str:
    """``line 7`` or ``lines 3 to 7``, counted from 1."""
    first = document.line_of(span.start) + 1
    last = document.line_of(max(span.start, span.end - 1)) + 1
    return f"line {first}" if first == last else f"lines {first} to {last}"


def definition_at(document: Document, start: int, end: int, task: EditTask) -> Symbol | None:
    """The innermost definition around a selection that the task can be about."""
    start = _behind_comments(document, start, end)
    around = [item for item in symbols_at(document, start) if item.end >= end]
    functions = [item for item in around if item.kind in FUNCTIONS]
    if task.needs == "function" or (functions and task.about != "definition"):
        return functions[-1] if functions else None
    fitting = [item for item in around if item.kind in FUNCTIONS | _CONTAINERS]
    return fitting[-1] if fitting else None


def definitions_in(document: Document, span: Span) -> tuple[Symbol, ...]:
    """Functions, classes and their members in a span, in the order of the text.

    What is defined within a function is not among them: nobody else relies on it.
    """

    def inside(symbols: tuple[Symbol, ...]) -> Iterator[Symbol]:
        for symbol in symbols:
            is_function = symbol.kind in FUNCTIONS
            is_in = span.start <= symbol.start and symbol.end <= span.end
            if is_in and (is_function or symbol.kind in _CONTAINERS):
                yield symbol
            if not is_function and symbol.end > span.start and symbol.start < span.end:
                yield from inside(symbol.children)

    return tuple(inside(outline(document)))


def grow(
    document: Document, start: int, end: int, task: EditTask, diagnostics: int = 0
) -> tuple[Span, Symbol | None]:
    """The span that a task is about where ``start`` to ``end`` is selected.

    An empty selection means what the cursor is in. ``diagnostics`` is how many problems the
    edit is to correct.
    """
    start = min(max(start, 0), len(document.text))
    end = min(max(end, start), len(document.text))
    selected = document.text[start:end].strip()
    symbol = definition_at(document, *_trimmed(document, start, end), task)
    if task.needs:
        if symbol is None:
            return enclosing_statements(document, start, end), None
        return Span(symbol.start, symbol.end), symbol
    if symbol is not None:
        lines = document.line_of(symbol.end) - document.line_of(symbol.start)
        if diagnostics:
            is_whole = lines <= _SHORT_LINES and symbol.kind in FUNCTIONS
        else:
            is_whole = not selected and task.about != "statements"
        if is_whole:
            return Span(symbol.start, symbol.end), symbol
    if not selected and not document.line_text(document.line_of(start)).strip():
        # A blank line: something is to be put there.
        line = document.line_of(start)
        return Span(document.line_start(line), document.line_end(line)), None
    language = document.syntax_language
    if language is not None and language.id == "markdown":
        # Its smallest node with others beside it is a whole section.
        start, end = _trimmed(document, start, end)
        first, last = document.line_of(start), document.line_of(end)
        return Span(document.line_start(first), document.line_end(last)), None
    span = enclosing_statements(document, start, end)
    return span, _defined(document, span)


def make_target(document: Document, span: Span, symbol: Symbol | None = None) -> Target | None:
    """The target for a span; None where its code cannot be shown line by line (a key block)."""
    first = document.line_start(document.line_of(span.start))
    line = document.text[first : document.line_end(document.line_of(span.start))]
    indent = line[: len(line) - len(line.lstrip())] if line.strip() else line
    text = document.text[span.start : span.end]
    if text.strip():
        # Some grammars count a line end to the last node.
        text = text.rstrip("\r\n")
        span = Span(span.start, span.start + len(text))
    else:
        # What is put on a blank line stands where the cursor would.
        span, indent, text = Span(span.start + len(text), span.end), line, ""
    originals = lines_of(text) or [""]
    if originals[-1].endswith(("\n", "\r")):
        originals.append("")
    bare = [_shown_line(original.rstrip("\r\n"), indent) for original in originals]
    masked = mask_secrets("\n".join(bare)).split("\n")
    if len(masked) != len(bare):
        return None
    placeholders = {
        found
        for plain, shown in zip(bare, masked, strict=True)
        if plain != shown
        for found in _PLACEHOLDER.findall(shown)
        if found not in plain
    }
    around = tuple(
        scope.name
        for scope in enclosing_scopes(document, span.start)
        if scope.name
        and scope.start <= span.start
        and span.end <= scope.end
        and (scope.start, scope.end) != (span.start, span.end)
        and not (symbol is not None and symbol.start <= scope.start and scope.end <= symbol.end)
    )
    return Target(
        document,
        span,
        tuple(prompt_text(line) for line in masked),
        tuple(originals),
        indent,
        symbol,
        around,
        frozenset(placeholders),
    )


def touching(span: Span, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """The diagnostics that touch a span."""
    return tuple(item for item in diagnostics if item.start <= span.end and item.end >= span.start)


def _shown_line(line: str, indent: str) -> str:
    return line.removeprefix(indent) if line.strip() else ""


def _trimmed(document: Document, start: int, end: int) -> tuple[int, int]:
    text = document.text[start:end]
    if text.strip():
        return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
    line = document.line_of(start)
    content = document.line_text(line)
    if start == end and content.strip():
        # In the white space in front of a line, its beginning is meant.
        start = max(start, document.line_start(line) + len(content) - len(content.lstrip()))
    return start, start


def _behind_comments(document: Document, start: int, end: int) -> int:
    """Where the code of a selection begins, behind the comments that it has in front."""
    for _ in range(_MOST_COMMENT_LINES):
        if start >= end or not _is_note(document, start):
            break
        start = document.line_start(document.line_of(start) + 1)
        start += len(document.text[start:end]) - len(document.text[start:end].lstrip())
    return min(start, end)


def _is_note(document: Document, start: int) -> bool:
    # Rust's grammar has attributes beside what they are about.
    return text_kind(document, start + 1) == "comment" or document.text.startswith("#[", start)


def _defined(document: Document, span: Span) -> Symbol | None:
    """The definition that a span is, if it is one."""
    found = [
        item
        for item in symbols_at(document, span.start)
        if (item.start, item.end) == (span.start, span.end)
    ]
    return found[0] if found else None
