"""What is wrong with a text or an answer, in words that a model and a person understand.

Syntax by the document's grammar and, for Python, by Python's own parser too; places where an
answer leaves code out instead of giving it; endless repetition. Runs nothing.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from fimble.assist.edit.hunks import Hunk
from fimble_context.syntax import Document, Edit, error_count

__all__ = ["Problem", "changed_document", "elision_in", "is_repeating", "syntax_problem"]

#: Larger texts are left to the grammar: Python's parser would hold up the editor.
_LONGEST_COMPILED = 300_000
_ELISION = re.compile(
    r"(?:(?:#|//|--|/\*+|<!--|\*)\s*)?(?:\.\.\.|…)\s*"
    r"(?:\(?(?:the\s+)?(?:rest|remaining|remainder|existing|other|previous|same|unchanged|omitted"
    r"|more|your|original|code|implementation)\b.*)"
    r"|(?:#|//|--|/\*+|<!--)\s*(?:\(?(?:the\s+)?(?:rest|remainder|remaining)\b.*"
    r"|(?:existing|original|same|other)\s+(?:code|implementation|methods?|functions?|logic)\b.*)"
    r"|(?:#|//|--|/\*+|<!--)\s*(?:\.\.\.|…)\s*(?:\*/|-->)?",
    re.IGNORECASE,
)
_REPEATED_TIMES = 6
_REPEATED_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Problem:
    """``name`` is for programs, ``reason`` a sentence; ``again``: another try may help."""

    name: str
    reason: str
    again: bool = True


def changed_document(document: Document, hunks: Sequence[Hunk]) -> Document:
    """A document with hunks applied, parsed from the old tree; ``document`` stays as it is."""
    changed = document.copy()
    for hunk in reversed(hunks):
        changed.apply(Edit(hunk.start, hunk.end, hunk.text))
    return changed


def syntax_problem(before: Document, after: Document) -> Problem | None:
    """What is wrong with ``after`` that was not with ``before``; None where nothing is."""
    before.settle()
    after.settle()
    errors, earlier = error_count(after), error_count(before)
    told = _python_error(after) if _python_error(before) is None else None
    if errors <= earlier and told is None:
        return None
    if told is None:
        line = _first_error_line(before, after)
        told = f"line {line + 1} ({after.line_text(line).strip()[:80]!r})"
    return Problem("syntax", f"With this answer the file has a syntax error: {told}.")


def elision_in(code: str, original: str) -> str | None:
    """The line in which an answer stands for code instead of giving it, if there is one."""
    known = {line.strip() for line in original.splitlines()}
    for line in code.splitlines():
        if line.strip() not in known and _ELISION.fullmatch(line.strip()):
            return line.strip()
    return None


def is_repeating(text: str, original: str = "") -> bool:
    """Whether a text ends in the same lines over and over, as ``original`` does not."""
    lines = text.rstrip("`~ \t\r\n").splitlines()
    return _ends_in_circles(lines, original) or _ends_in_circles(lines[:-1], original)


def _ends_in_circles(lines: list[str], original: str) -> bool:
    for length in range(1, min(24, len(lines) // _REPEATED_TIMES) + 1):
        tail = lines[-length * _REPEATED_TIMES :]
        block = tail[:length]
        if not any(character.isalnum() for line in block for character in line):
            continue
        if sum(map(len, tail)) < _REPEATED_CHARACTERS:
            continue
        if all(tail[start : start + length] == block for start in range(0, len(tail), length)):
            return "\n".join(tail) not in original
    return False


def _python_error(document: Document) -> str | None:
    """What Python's parser says of a document; None where it is content, or not asked."""
    language = document.syntax_language
    if language is None or language.id != "python" or len(document.text) > _LONGEST_COMPILED:
        return None
    try:
        with warnings.catch_warnings():
            # An odd escape in a string is no error, and none of our own.
            warnings.simplefilter("ignore")
            ast.parse(document.text.removeprefix("\ufeff"))
    except SyntaxError as error:
        return f"{error.msg}, line {error.lineno}"
    except (ValueError, MemoryError, RecursionError):
        return "it is nested too deeply"
    return None


def _first_error_line(before: Document, after: Document) -> int:
    """The first line of ``after`` with an error, looked for by halves."""
    low, high = 0, after.line_count - 1
    while low < high:
        middle = (low + high) // 2
        if error_count(after, after.line_start(low), after.line_end(middle)):
            high = middle
        else:
            low = middle + 1
    return low
