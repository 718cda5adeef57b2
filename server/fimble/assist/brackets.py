"""Brackets by text: what is open at a place, and what an answer closes that it did not open.

For text that does not parse yet, where a tree has little to say. Brackets in strings are
passed over as far as one line shows where a string ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fimble_context.syntax import Document

__all__ = [
    "closers_for",
    "imbalance",
    "indent_width",
    "open_in",
    "openers_around",
    "unmatched_closer",
]

_PARTNER = {")": "(", "]": "[", "}": "{"}
_CLOSER = {opener: closer for closer, opener in _PARTNER.items()}
#: A string that ends in its line, or one bracket.
_TOKEN = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\\n]|\\.)*`|[()\[\]{}]")
#: A line so far above the cursor that what it opens is of no interest.
_MOST_LINES = 5_000


def indent_width(line: str) -> int:
    """Columns of leading white space; a tab goes to the next multiple of 4."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def unmatched_closer(text: str) -> int | None:
    """The offset of the first bracket in ``text`` that closes one opened before it."""
    stack: list[str] = []
    for position, character in _brackets(text):
        if character in _CLOSER:
            stack.append(character)
        elif stack and stack[-1] == _PARTNER[character]:
            stack.pop()
        else:
            return position
    return None


def imbalance(text: str) -> int:
    """How many brackets in ``text`` have no partner."""
    return len(_unmatched(text))


def openers_around(document: Document, offset: int) -> str:
    """The brackets open at ``offset``, outermost first, as indentation shows them.

    Of the lines above, those count that are indented less than all below them.
    """
    line = document.line_of(offset)
    before = document.text[document.line_start(line) : offset]
    found = [open_in(before)]
    width = indent_width(before) if before.strip() else None
    for number in range(line - 1, max(-1, line - 1 - _MOST_LINES), -1):
        if width == 0:
            break
        text = document.line_text(number)
        if not text.strip():
            continue
        here = indent_width(text)
        if width is None:
            # The cursor is on a blank line: the line above counts with what it opens.
            opened = open_in(text)
            width = here
            found.append(opened)
        elif here < width:
            width = here
            found.append(open_in(text))
    return "".join(reversed(found))


def open_in(line: str) -> str:
    """The brackets that a line leaves open; what it closes of earlier lines is passed over."""
    return "".join(character for character in _unmatched(line) if character in _CLOSER)


def closers_for(openers: str) -> str:
    """What closes ``openers``, the innermost first."""
    return "".join(_CLOSER[opener] for opener in reversed(openers))


def _unmatched(text: str) -> list[str]:
    unmatched: list[str] = []
    for _, character in _brackets(text):
        if unmatched and unmatched[-1] == _PARTNER.get(character):
            unmatched.pop()
        else:
            unmatched.append(character)
    return unmatched


def _brackets(text: str) -> Iterator[tuple[int, str]]:
    for match in _TOKEN.finditer(text):
        if len(match[0]) == 1:
            yield match.start(), match[0]
