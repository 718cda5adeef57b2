"""What of an answer is no code at all, or not in the document's manner: by text alone.

Control tokens that a server spelled out, code fences and the explanations around them,
loops, and indentation in the wrong characters.
"""

from __future__ import annotations

import re
from collections import Counter

from fimble.assist.place import Place
from fimble.engine.protocol import CONTROL_TOKENS
from fimble_context.syntax import Document

__all__ = ["before_control_tokens", "in_documents_indentation", "without_fences", "without_loop"]

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
#: A unit of 2 to 60 characters that comes six times or more in a row, up to the end.
_LOOP = re.compile(r"(?P<unit>[^\n]{2,60}?)(?P=unit){5,}[^\n]*$")
_LOOPING_LINES = 3
_SAMPLED_LINES = 400


def before_control_tokens(text: str, literals: frozenset[str]) -> str:
    """``text`` up to the first spelled control token that the document does not have itself.

    Our engine stops at control tokens; other servers may spell them out.
    """
    ends = [text.find(token) for token in CONTROL_TOKENS.values() if token not in literals]
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def without_fences(text: str, place: Place) -> str:
    """``text`` without Markdown around it; in Markdown, comments and strings it may be meant.

    A fence at the beginning is taken off with its partner and all after it; any other one
    ends the code.
    """
    language = place.language
    if not place.code or (language is not None and language.id == "markdown"):
        return text
    first = _FENCE.search(text)
    if first is None:
        return text
    if text[: first.start()].strip():
        return text[: first.start()].rstrip("\n")
    inside = text[first.end() :].removeprefix("\n")
    second = _FENCE.search(inside)
    return inside if second is None else inside[: second.start()].rstrip("\n")


def without_loop(text: str) -> str:
    """``text`` up to where it goes round in a circle: the circle is left in once."""
    lines = text.split("\n")
    for length in (1, 2, 3):
        for start in range(len(lines) - length * _LOOPING_LINES + 1):
            unit = lines[start : start + length]
            if not "".join(unit).strip():
                continue
            rest = lines[start : start + length * _LOOPING_LINES]
            # Closing brackets repeat by right.
            if rest == unit * _LOOPING_LINES and re.search(r"\w", "".join(unit)):
                return "\n".join(lines[: start + length])
    match = _LOOP.search(text)
    if match is None or not re.search(r"\w", match["unit"]) or len(match[0]) < 30:
        return text
    return text[: match.start() + len(match["unit"])]


def in_documents_indentation(text: str, place: Place) -> str:
    """``text`` with tabs in front of its lines where the document has tabs, and spaces where
    it has those. Lines after the first only, unless the first begins the line.
    """
    if "\n" not in text and place.before.strip():
        return text
    unit = _indent_unit(place.document, place.offset)
    if unit is None:
        return text
    lines = text.split("\n")
    first = 0 if not place.before else 1
    if unit == "\t":
        width = _space_unit(lines[first:])
        return "\n".join(lines[:first] + [_with_tabs(line, width) for line in lines[first:]])
    return "\n".join(lines[:first] + [_with_spaces(line, unit) for line in lines[first:]])


def _indent_unit(document: Document, offset: int) -> str | None:
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


def _space_unit(lines: list[str]) -> int:
    widths = [len(line) - len(line.lstrip(" ")) for line in lines if line.startswith(" ")]
    return min((width for width in widths if width > 1), default=4)


def _with_tabs(line: str, width: int) -> str:
    spaces = len(line) - len(line.lstrip(" "))
    return "\t" * (spaces // width) + " " * (spaces % width) + line[spaces:]


def _with_spaces(line: str, unit: str) -> str:
    tabs = len(line) - len(line.lstrip("\t"))
    return unit * tabs + line[tabs:]
