"""An answer's code as the document would have it: indentation, line ends, untouched lines.

A line that is as it was shown goes back as it is in the document, whatever its line end, its
trailing blanks or its indentation in the middle of a string. New lines get the place's
indentation, in the document's own unit, and its line end. Knows texts only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from fimble.assist.edit.target import Target
from fimble_context.syntax import Document, text_kind

__all__ = ["indent_unit", "placed"]

_LEADING = re.compile(r"[ \t]*")
_UNIT_LINES = 3000
_WIDEST_UNIT = 8


def placed(target: Target, code: str) -> str:
    """``code`` (``\\n`` line ends, no indentation of the place) as the text of the target's span.

    A final line end of the code does not count: the span ends before the document's own.
    """
    lines = [line if line.strip() else "" for line in code.split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    lines = _dedented(target, lines)
    return _joined(target, _in_units(target, lines))


def indent_unit(lines: Sequence[str]) -> str:
    """A tab, or so many spaces, by which lines are indented; empty where none is."""
    steps: Counter[str] = Counter()
    before = 0
    for line in lines[:_UNIT_LINES]:
        leading = _LEADING.match(line)[0]  # type: ignore[index]
        if len(leading) == len(line):
            continue
        if leading.startswith("\t"):
            steps["\t"] += 1
            before = 0
            continue
        # One blank aligns something, such as the stars of a comment.
        if 1 < len(leading) - before <= _WIDEST_UNIT:
            steps[" " * (len(leading) - before)] += 1
        before = len(leading)
    return min(steps, key=lambda unit: (-steps[unit], unit)) if steps else ""


def _dedented(target: Target, lines: list[str]) -> list[str]:
    """Without the indentation that all lines have, or all but the first."""
    common = _common_indent(lines)
    if common:
        return _cut(lines, common)
    rest = _common_indent(lines[1:])
    if target.indent and rest.startswith(target.indent) and rest != _common_indent(target.code[1:]):
        # As it stands in the file: the first line begins behind its indentation.
        other = [lines[0], *_cut(lines[1:], target.indent)]
        if _alike(target.code, other) > _alike(target.code, lines):
            return other
    return lines


def _in_units(target: Target, lines: list[str]) -> list[str]:
    """With the document's unit of indentation, where the answer has another one."""
    own = indent_unit(target.code) or indent_unit(target.document.text[:200_000].splitlines())
    theirs = indent_unit(lines)
    if not own or not theirs or own == theirs:
        return lines
    if theirs in indent_units(target.code):
        return lines
    document = Document(
        "\n".join(lines), path=target.document.path, language=target.document.language
    )
    changed = []
    for number, line in enumerate(lines):
        leading = _LEADING.match(line)[0]  # type: ignore[index]
        if leading and text_kind(document, document.line_start(number)) == "code":
            width = len(leading.replace("\t", theirs if theirs != "\t" else " "))
            depth, rest = divmod(width, 1 if theirs == "\t" else len(theirs))
            line = own * depth + " " * rest + line[len(leading) :]
        changed.append(line)
    return changed


def indent_units(lines: Sequence[str]) -> set[str]:
    """Every step by which a line is indented deeper than the one above it."""
    found: set[str] = set()
    before = 0
    for line in lines:
        leading = _LEADING.match(line)[0]  # type: ignore[index]
        if len(leading) == len(line):
            continue
        if len(leading) > before:
            found.add("\t" if "\t" in leading else leading[before:])
        before = len(leading)
    return found


def _joined(target: Target, lines: list[str]) -> str:
    """The lines with what the document has of them, or with its indentation and line ends."""
    newline = target.document.newline
    matcher = SequenceMatcher(None, target.code, lines, autojunk=False)
    originals: dict[int, int] = {}
    for block in matcher.get_matching_blocks():
        originals |= {block.b + step: block.a + step for step in range(block.size)}
    pieces: list[str] = []
    for number, line in enumerate(lines):
        text, end = (target.indent + line if line else ""), newline
        known = originals.get(number)
        if known is not None:
            original = target.originals[known]
            bare = original.rstrip("\r\n")
            text = bare if known else target.indent + bare
            end = original[len(bare) :] or newline
        if not number:
            text = text.removeprefix(target.indent)
        pieces += (text, end if number + 1 < len(lines) else "")
    return "".join(pieces)


def _common_indent(lines: Sequence[str]) -> str:
    leading = [_LEADING.match(line)[0] for line in lines if line]  # type: ignore[index]
    if not leading:
        return ""
    low, high = min(leading), max(leading)
    length = next((n for n, c in enumerate(low) if n >= len(high) or c != high[n]), len(low))
    return low[:length]


def _cut(lines: Sequence[str], indent: str) -> list[str]:
    return [line.removeprefix(indent) for line in lines]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    matcher = SequenceMatcher(None, list(one), list(other), autojunk=False)
    return sum(block.size for block in matcher.get_matching_blocks())
