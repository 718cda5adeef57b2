"""Where a task can be done, and why it cannot elsewhere; asked before any model is.

Quick enough to be asked at every move of a cursor: costs by the depth of the tree.
"""

from __future__ import annotations

from fimble.assist.edit.documentation import comment_start, is_python
from fimble.assist.edit.problems import Problem
from fimble.assist.edit.target import Target, grow, make_target
from fimble.assist.edit.tasks import CUSTOM, EditTask
from fimble.assist.policy import MAX_DOCUMENT_BYTES, file_refusal
from fimble_context.syntax import Document, Span
from fimble_context.workspace import Policy

__all__ = ["document_problem", "place_of"]


def document_problem(document: Document, policy: Policy | None) -> Problem | None:
    """Why no edit at all can be made in a document."""
    refused = file_refusal(document, policy)
    if refused is not None:
        return Problem(refused.name, refused.reason, again=False)
    if len(document.text) > MAX_DOCUMENT_BYTES:
        return Problem("size", "The document is larger than 2 MB.", again=False)
    if "\0" in document.text:
        return Problem("binary", "The document has NUL characters: it is not text.", again=False)
    return None


def place_of(
    document: Document,
    start: int,
    end: int,
    task: EditTask,
    policy: Policy | None,
    diagnostics: int = 0,
    *,
    exact: bool = False,
) -> Target | Problem:
    """What a task is about where ``start`` to ``end`` is selected, or why it is not possible.

    ``exact``: the range is meant as it is, and is not grown.
    """
    problem = document_problem(document, policy)
    if problem is not None:
        return problem
    language = document.syntax_language
    if task.languages and (language is None or language.id not in task.languages):
        name = language.name if language is not None else "Plain text"
        reason = f"{name} has no types to add."
        if task.name == "tests":
            reason = f"There is no known way to test {name if language else 'plain text'}."
        return Problem("language", reason, again=False)
    if exact:
        span, symbol = Span(start, end), None
    else:
        span, symbol = grow(document, start, end, task, diagnostics)
    if task.needs and symbol is None:
        what = "function" if task.needs == "function" else "definition"
        return Problem("no-definition", f"There is no {what} here.", again=False)
    if task.name == "document" and symbol is not None and not is_python(document):
        span = Span(comment_start(document, symbol), symbol.end)
    target = make_target(document, span, symbol)
    if target is None:
        return Problem("secret", "A key block is in this code, which no prompt shows.", again=False)
    if not target.shown.strip() and task.name != CUSTOM and not exact:
        return Problem("empty", "There is no code here.", again=False)
    if len(target.code) < task.least_lines:
        count = len(target.code)
        return Problem(
            "short",
            f"{target.subject} has only {count} line{'s' if count > 1 else ''}.",
            again=False,
        )
    return target
