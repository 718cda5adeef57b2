"""What a confidence is worth: how many suggestions are shown, and are right, from which on.

Confidence is the mean probability of a token, 0 to 1. A suggestion is judged as ``assist``'s
answers are, while they grow: at every token from the third on and at its end, so that what
counts is the lowest value on the way. Knows no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp
from typing import Protocol

from fimble.assist.answer import TOKENS_TO_JUDGE

__all__ = ["GRID", "Point", "best_threshold", "lowest_confidence", "points", "separation"]

#: Thresholds that are looked at.
GRID = tuple(number / 100 for number in range(100))
_MOST_LOST = 0.05


class Judged(Protocol):
    """A suggestion: whether it is right, and its lowest confidence; None where none was made."""

    @property
    def exact(self) -> bool: ...

    @property
    def lowest(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Point:
    """What a threshold does. ``coverage`` is the share of the places at which something is
    shown, ``precision`` the share of right ones among what is shown (1 where nothing is),
    ``kept`` the share that is left of the right ones, and ``dropped`` of the wrong ones.
    """

    threshold: float
    shown: int
    right: int
    coverage: float
    precision: float
    kept: float
    dropped: float


def lowest_confidence(steps: Iterable[tuple[int, float]]) -> float | None:
    """The lowest confidence at which an answer is judged on its way; None without a token.

    ``steps`` are the number of its tokens so far and their mean log-probability, as they came.
    """
    seen = list(steps)
    judged = [mean for tokens, mean in seen if tokens >= TOKENS_TO_JUDGE] + [
        mean for _, mean in seen[-1:]
    ]
    return exp(min(0.0, *judged)) if judged else None


def points(outcomes: Sequence[Judged], thresholds: Sequence[float] = GRID) -> list[Point]:
    """What each threshold does to ``outcomes``, one a place."""
    made = [(item.lowest, item.exact) for item in outcomes if item.lowest is not None]
    all_right = sum(exact for _, exact in made)
    all_wrong = len(made) - all_right
    found = []
    for threshold in thresholds:
        shown = [exact for lowest, exact in made if lowest >= threshold]
        right = sum(shown)
        found.append(
            Point(
                threshold,
                len(shown),
                right,
                len(shown) / max(1, len(outcomes)),
                right / len(shown) if shown else 1.0,
                right / all_right if all_right else 1.0,
                1.0 - (len(shown) - right) / all_wrong if all_wrong else 0.0,
            )
        )
    return found


def best_threshold(outcomes: Sequence[Judged], most_lost: float = _MOST_LOST) -> Point:
    """The threshold that drops the most wrong suggestions and loses at most ``most_lost`` of
    the right ones; the lowest of equal ones.
    """
    allowed = [point for point in points(outcomes) if point.kept >= 1.0 - most_lost - 1e-9]
    return max(allowed, key=lambda point: (point.dropped, -point.threshold))


def separation(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """How often a right suggestion has more of a measure than a wrong one: 0.5 is chance,
    1 always. None where there are no two to compare.
    """
    if not right or not wrong:
        return None
    more = sum((one > other) + 0.5 * (one == other) for one in right for other in wrong)
    return more / (len(right) * len(wrong))
