"""What an edit or a question about a piece of code needs to know: the code and around it.

The smallest whole node around a selection, the headers of what encloses it, the definitions of
what it uses, its callers, and the diagnostics that the editor knows of, passed through. Plain
data; how a prompt shows it is the caller's affair. Belongs to the documents' thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fimble_context.assembly.open_workspace import Workspace
from fimble_context.assembly.sections import LeftOut, Section
from fimble_context.assembly.selection import choose, texts_of, to_count, to_sections
from fimble_context.assembly.window import TokenCounter
from fimble_context.syntax.document import Document
from fimble_context.syntax.scopes import Scope, enclosing_scopes
from fimble_context.syntax.spans import Span, enclosing_statements
from fimble_context.syntax.symbols import symbols_at

__all__ = ["Diagnostic", "EditContext", "edit_context"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding of some other tool. Offsets are code points."""

    start: int
    end: int
    message: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class EditContext:
    """Code points ``span`` of the document are what an edit may replace.

    ``text`` is what is there, with ``\\n`` line ends. ``headers`` are those of what encloses
    it, outermost first. ``sections`` are definitions of what it uses, then its callers, within
    the budget. ``diagnostics`` are those that touch it.
    """

    span: Span
    text: str
    headers: tuple[str, ...]
    sections: tuple[Section, ...]
    diagnostics: tuple[Diagnostic, ...]
    left_out: tuple[LeftOut, ...] = ()


def edit_context(
    document: Document,
    start: int,
    end: int,
    *,
    budget: int,
    count_tokens: TokenCounter,
    workspace: Workspace | None = None,
    path: Path | None = None,
    diagnostics: Sequence[Diagnostic] = (),
) -> EditContext:
    """The context of a selection (code points, clamped; empty: what the cursor is in).

    ``budget`` is for ``sections`` alone. Without a workspace there are none.
    """
    start = min(max(start, 0), len(document.text))
    end = min(max(end, start), len(document.text))
    span = enclosing_statements(document, start, end)
    touching = tuple(
        item for item in diagnostics if item.start <= span.end and item.end >= span.start
    )
    sections: list[Section] = []
    left_out: list[LeftOut] = []
    if workspace is not None and path is not None and workspace.index.allowed(path):
        found = workspace.used_and_using(document, path, span, _defined(document, span))
        worth = to_count(found, budget)
        texts = texts_of(worth)
        costs = dict(zip(texts, count_tokens(texts) if texts else (), strict=True))
        selection = choose(worth, costs, max(budget, 0), beyond=found[len(worth) :])
        sections, left_out = to_sections(selection, costs), selection.left_out
    text = document.text[span.start : span.end]
    return EditContext(
        span,
        text.replace("\r\n", "\n").replace("\r", "\n"),
        tuple(scope.header for scope in _around(document, span)),
        tuple(sections),
        touching,
        tuple(left_out),
    )


def _around(document: Document, span: Span) -> list[Scope]:
    """The scopes that contain all of a span and more."""
    return [
        scope
        for scope in enclosing_scopes(document, span.start)
        if scope.start <= span.start and span.end <= scope.end
        if (scope.start, scope.end) != (span.start, span.end)
    ]


def _defined(document: Document, span: Span) -> str:
    """The name of what the code at a span defines, or of what it is a part of."""
    around = symbols_at(document, span.start)
    inside = [item for item in around if span.start <= item.start and item.end <= span.end]
    named = [*inside[:1], *reversed(around)]
    return named[0].name if named else ""
