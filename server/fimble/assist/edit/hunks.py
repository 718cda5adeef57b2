"""The smallest change between two texts, applied, and moved along with a text that went on.

Knows texts and code points only. No boundary of a hunk is inside a ``\\r\\n``, which positions of
editors could not express.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from fimble_context.syntax import Edit

__all__ = ["Hunk", "apply_hunks", "lines_of", "minimal_hunks", "rebase_hunks"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
#: Matching costs up to the product of both line counts; beyond, the changed part is one hunk.
_MOST_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replace the code points ``start`` to ``end`` (exclusive) of a text by ``text``."""

    start: int
    end: int
    text: str


def lines_of(text: str) -> list[str]:
    """The lines of a text with their ends (``\\n``, ``\\r\\n`` or ``\\r``, nothing else)."""
    return _LINE.findall(text)


def minimal_hunks(before: str, after: str, offset: int = 0) -> tuple[Hunk, ...]:
    """Hunks in order that turn ``before`` into ``after``; none overlap.

    ``offset`` is where ``before`` begins in the text that the hunks are for.
    """
    old, new = lines_of(before), lines_of(after)
    first = _common(old, new)
    last = _common(old[first:][::-1], new[first:][::-1])
    old, new = old[first : len(old) - last], new[first : len(new) - last]
    offset += sum(map(len, lines_of(before)[:first]))
    found: list[Hunk] = []
    for start, end, other_start, other_end in _blocks(old, new):
        place = offset + sum(map(len, old[:start]))
        gone, come = old[start:end], new[other_start:other_end]
        if len(gone) == len(come):
            for line, other in zip(gone, come, strict=True):
                found += _trimmed(place, line, other)
                place += len(line)
        else:
            found += _trimmed(place, "".join(gone), "".join(come))
    return tuple(found)


def apply_hunks(text: str, hunks: Iterable[Hunk]) -> str:
    """``text`` with every hunk applied; they are all about ``text`` as it is, in order."""
    pieces: list[str] = []
    done = 0
    for hunk in hunks:
        pieces += (text[done : hunk.start], hunk.text)
        done = hunk.end
    return "".join((*pieces, text[done:]))


def rebase_hunks(
    hunks: Sequence[Hunk], before: str, edits: Iterable[Edit]
) -> tuple[Hunk, ...] | None:
    """The hunks for ``before`` as they are after ``edits``; None where one no longer fits.

    It fits where nothing has touched the lines that it changes or the one above and below.
    """
    moved = list(hunks)
    regions = [_with_neighbours(before, hunk) for hunk in hunks]
    text = before
    for edit in edits:
        changes = minimal_hunks(text[edit.start : edit.end], edit.text, edit.start)
        # From the last one on, so that the places of the others stay as they are.
        for change in reversed(changes):
            for place, (start, end) in enumerate(regions):
                if _is_above(text, change, start):
                    shift = len(change.text) - (change.end - change.start)
                    regions[place] = start + shift, end + shift
                    hunk = moved[place]
                    moved[place] = replace(hunk, start=hunk.start + shift, end=hunk.end + shift)
                elif not _is_below(text, change, end):
                    return None
        text = apply_hunks(text, changes)
    return tuple(moved)


def _blocks(old: list[str], new: list[str]) -> list[tuple[int, int, int, int]]:
    if not (old or new):
        return []
    if len(old) * len(new) > _MOST_PAIRS:
        return [(0, len(old), 0, len(new))]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [tuple(places) for tag, *places in matcher.get_opcodes() if tag != "equal"]  # type: ignore[misc]


def _trimmed(place: int, old: str, new: str) -> list[Hunk]:
    """What is left of a replacement without what both have at their ends."""
    if old == new:
        return []
    first = _common(old, new)
    if first and old[first - 1] == "\r" and "\n" in (old[first:][:1], new[first:][:1]):
        first -= 1
    last = _common(old[first:][::-1], new[first:][::-1])
    if last and old[len(old) - last] == "\n":
        before = old[: len(old) - last][-1:], new[: len(new) - last][-1:]
        if "\r" in before:
            last -= 1
    return [Hunk(place + first, place + len(old) - last, new[first : len(new) - last])]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many items two sequences have in common at their beginning."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def _is_above(text: str, change: Hunk, start: int) -> bool:
    """Whether a change leaves the line that begins at ``start`` a line of its own."""
    if change.end < start:
        return True
    before = change.text or text[: change.start]
    return change.end == start and (not before or before[-1] in "\r\n")


def _is_below(text: str, change: Hunk, end: int) -> bool:
    """Whether a change does not touch the line that ends at ``end``."""
    return change.start > end or (change.start == end and text[:end].endswith(("\n", "\r")))


def _with_neighbours(text: str, hunk: Hunk) -> tuple[int, int]:
    """A hunk's lines and the ones above and below, as offsets."""
    start = _line_start(text, max(0, _line_start(text, hunk.start) - 1))
    end = _line_end(text, _line_end(text, hunk.end))
    return start, end


def _line_start(text: str, place: int) -> int:
    return max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1


def _line_end(text: str, place: int) -> int:
    """Just behind the terminator of the line at ``place``."""
    found = [end for end in (text.find("\n", place), text.find("\r", place)) if end >= 0]
    if not found:
        return len(text)
    return min(found) + (2 if text.startswith("\r\n", min(found)) else 1)
