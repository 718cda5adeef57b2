"""How much of an accepted text still stands where it was accepted.

The field's usual measure: what is unchanged, and what is mostly unchanged (at most a third of
it edited, by edit distance). The distance counts words and signs, not white space: what a
formatter moved is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

__all__ = ["Kept", "kept"]

Kept = Literal["unchanged", "mostly", "gone"]

_MOST_CHANGED = 1 / 3
_UNIT = re.compile(r"\w+|[^\w\s]")
#: Longer texts are compared line by line: the distance takes time with the square of it.
_MOST_UNITS = 256
#: What is now there may be so much longer: an editor may have sent far more than it changed.
_MOST_GROWN = 4


def kept(accepted: str, now: str) -> Kept:
    """What became of the text ``accepted``, where ``now`` stands in its place or around it."""
    accepted, now = _lf(accepted), _lf(now)
    if _stands_in(accepted, now):
        return "unchanged"
    then, here = _UNIT.findall(accepted), _UNIT.findall(now)
    if not then or len(here) > _MOST_GROWN * max(len(then), 8):
        return "gone"
    if max(len(then), len(here)) > _MOST_UNITS:
        then, here = _lines(accepted), _lines(now)
    most = int(len(then) * _MOST_CHANGED)
    return "mostly" if _distance(then, here) <= most else "gone"


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


def _stands_in(text: str, now: str) -> bool:
    """Whether ``text`` is in ``now``, and not as a part of longer words."""
    at = now.find(text) if text else -1
    while at >= 0:
        ends = (now[max(0, at - 1) : at] + text[0], text[-1] + now[at + len(text) :][:1])
        if not any(len(end) == 2 and end.isalnum() for end in ends):
            return True
        at = now.find(text, at + 1)
    return False


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _distance(then: Sequence[str], here: Sequence[str]) -> int:
    """Edits that make ``then`` of some part of ``here``: what stands around it is free."""
    row = [0] * (len(here) + 1)
    for number, unit in enumerate(then, 1):
        previous, row = row, [number]
        for at, other in enumerate(here, 1):
            cost = previous[at - 1] + (unit != other)
            row.append(min(cost, previous[at] + 1, row[at - 1] + 1))
    return min(row)
