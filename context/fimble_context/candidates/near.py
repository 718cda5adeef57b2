"""What matters at a cursor: the names used near it, and what it is inside of.

Costs by what is near, not by the length of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fimble_context.syntax.document import Document
from fimble_context.syntax.names import Reference, references
from fimble_context.syntax.scopes import Scope, enclosing_scopes

__all__ = ["NameInUse", "Near", "look_around", "look_inside", "words_of"]

_BEFORE = 2_500  # code points: about 60 lines
_AFTER = 800
_LONGEST_HEADER = 400
_MOST_NAMES = 80
_MEMBER_MARKS = (".", "->", "::")
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{2,39}")


@dataclass(frozen=True, slots=True)
class NameInUse:
    """A name and how much it matters (up to 1).

    ``dotted`` says that it is used as a member of something, ``bare`` that it is used by itself.
    """

    name: str
    weight: float
    bare: bool = True
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Near:
    """What is near a cursor.

    ``names`` come with the weightiest first. ``identifiers`` are all words of the text, for
    similarity. ``bases`` are the names in the headers of what is around. ``scope`` tells places
    apart that are inside of different things.
    """

    names: tuple[NameInUse, ...]
    identifiers: frozenset[str]
    bases: frozenset[str]
    scope: tuple[str, ...]


def look_around(document: Document, offset: int) -> Near:
    """What is near ``offset`` (code points)."""
    scopes = enclosing_scopes(document, offset)
    start, end = _window(document, offset, scopes)
    line = document.line_of(offset)
    found: dict[str, NameInUse] = {}
    ranges = [(start, end, 1.0)]
    for scope in scopes:
        if scope.start < start:
            # A class's bases and a function's types matter wherever the cursor is in them.
            last = min(scope.body_start, scope.start + _LONGEST_HEADER)
            ranges.append((scope.start, last, 0.9))
    for first, last, most in ranges:
        for reference in references(document, first, last):
            distance = abs(document.line_of(reference.start) - line)
            weight = most / (1.0 + distance / 8.0) if most == 1.0 else most
            if reference.start > offset:
                weight *= 0.8
            _note(found, document, reference, weight)
    names = sorted(found.values(), key=lambda name: (-name.weight, name.name))
    words = frozenset(words_of(document.text[start:end]))
    headers = tuple(scope.header for scope in scopes)
    bases = frozenset(word for header in headers for word in words_of(header))
    return Near(tuple(names[:_MOST_NAMES]), words, bases, headers)


def look_inside(document: Document, start: int, end: int) -> Near:
    """What a piece of code uses: all names in it alike."""
    found: dict[str, NameInUse] = {}
    for reference in references(document, start, end):
        _note(found, document, reference, 1.0)
    headers = tuple(scope.header for scope in enclosing_scopes(document, start))
    words = frozenset(words_of(document.text[start:end]))
    bases = frozenset(word for header in headers for word in words_of(header))
    return Near(tuple(found.values()), words, bases, headers)


def _note(
    found: dict[str, NameInUse], document: Document, reference: Reference, weight: float
) -> None:
    dotted = document.text.endswith(_MEMBER_MARKS, 0, reference.start)
    known = found.get(reference.name, NameInUse(reference.name, 0.0, bare=False))
    found[reference.name] = NameInUse(
        reference.name,
        max(weight, known.weight),
        bare=known.bare or not dotted,
        dotted=known.dotted or dotted,
    )


def _window(document: Document, offset: int, scopes: tuple[Scope, ...]) -> tuple[int, int]:
    """The text to look at: near the cursor, from a line's start to a line's end."""
    start, end = max(0, offset - _BEFORE), min(len(document.text), offset + _AFTER)
    return (
        document.line_start(document.line_of(start)),
        document.line_end(document.line_of(end)),
    )


def words_of(text: str) -> list[str]:
    """The words of a text that can be identifiers."""
    return _IDENTIFIER.findall(text)
