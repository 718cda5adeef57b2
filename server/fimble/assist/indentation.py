"""Indentation in the document's characters: tabs where it has tabs, spaces where it has those."""

from __future__ import annotations

from collections import Counter

from fimble_context.syntax import Document

__all__ = ["indent_unit", "spaces_a_level", "with_spaces", "with_tabs"]

_SAMPLED_LINES = 400
#: Spaces that a level of indentation may have.
_USUAL_WIDTHS = (4, 2, 8, 3)


def indent_unit(document: Document, offset: int) -> str | None:
    """What one level is indented by near ``offset``: a tab, spaces, or None where unknown."""
    line = document.line_of(offset)
    near = range(max(0, line - _SAMPLED_LINES), min(document.line_count, line + _SAMPLED_LINES))
    tabs = 0
    spaces: Counter[int] = Counter()
    previous = 0
    for number in near:
        text = document.line_text(number)
        if not text.strip():
            continue
        if text.startswith("\t"):
            tabs += 1
        width = len(text) - len(text.lstrip(" "))
        if width > previous:
            spaces[width - previous] += 1
        previous = width
    if tabs > sum(spaces.values()):
        return "\t"
    if not spaces:
        return None
    return " " * spaces.most_common(1)[0][0]


def spaces_a_level(width: int, levels: tuple[int, ...]) -> int:
    """How many spaces a level has in a text of which a line begins with ``width`` of them.

    ``levels`` are those that the line may be at, the likeliest first.
    """
    for level in levels:
        if level > 0 and width % level == 0 and width // level in _USUAL_WIDTHS:
            return width // level
    return next((usual for usual in _USUAL_WIDTHS if width % usual == 0), 4)


def with_tabs(line: str, width: int) -> str:
    """``line`` with a tab for each ``width`` spaces that it begins with."""
    spaces = len(line) - len(line.lstrip(" "))
    return "\t" * (spaces // width) + " " * (spaces % width) + line[spaces:]


def with_spaces(line: str, unit: str) -> str:
    """``line`` with ``unit`` for each tab that it begins with."""
    tabs = len(line) - len(line.lstrip("\t"))
    return unit * tabs + line[tabs:]
