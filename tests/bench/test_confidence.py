"""Precision against coverage: what a threshold shows, and how the default is chosen."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.bench.confidence import best_threshold, lowest_confidence, points, separation


@dataclass(frozen=True)
class Made:
    lowest: float | None
    exact: bool


#: Four right ones and four wrong ones; at two places nothing was suggested.
MADE = [
    *(Made(lowest, True) for lowest in (0.95, 0.9, 0.8, 0.5)),
    *(Made(lowest, False) for lowest in (0.85, 0.6, 0.4, 0.2)),
    *(Made(None, False) for _ in range(2)),
]


def test_what_a_threshold_shows() -> None:
    everything, some, nothing = points(MADE, (0.0, 0.7, 0.99))
    assert (everything.shown, everything.right) == (8, 4)
    assert (everything.coverage, everything.precision) == (0.8, 0.5)
    assert (everything.kept, everything.dropped) == (1.0, 0.0)
    assert (some.shown, some.right, some.coverage, some.precision) == (4, 3, 0.4, 0.75)
    assert (some.kept, some.dropped) == (0.75, 0.75)
    assert (nothing.shown, nothing.precision, nothing.kept, nothing.dropped) == (0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize(("most_lost", "threshold"), [(0.0, 0.41), (0.25, 0.61), (1.0, 0.86)])
def test_the_best_threshold_drops_most_within_what_may_be_lost(
    most_lost: float, threshold: float
) -> None:
    assert best_threshold(MADE, most_lost).threshold == threshold


@given(st.lists(st.builds(Made, st.none() | st.floats(0, 1), st.booleans())))
def test_a_higher_threshold_never_shows_more(made: list[Made]) -> None:
    found = points(made)
    pairs = list(pairwise(found))
    assert all(low.shown >= high.shown and low.right >= high.right for low, high in pairs)
    best = best_threshold(made)
    assert best.kept >= 0.95
    assert all(point.dropped <= best.dropped for point in found if point.kept >= 0.95)


@pytest.mark.parametrize(
    ("steps", "lowest"),
    [
        # From the third token on, and at the end.
        ([(1, -3.0), (2, -2.0), (3, -0.5), (4, -0.2)], -0.5),
        ([(1, -3.0), (2, -2.0)], -2.0),
        ([(3, -0.1), (4, -0.7), (5, -0.3)], -0.7),
    ],
)
def test_the_lowest_confidence_is_that_of_the_steps_that_are_judged(
    steps: list[tuple[int, float]], lowest: float
) -> None:
    assert lowest_confidence(steps) == pytest.approx(exp(lowest))


def test_without_a_token_there_is_none() -> None:
    assert lowest_confidence([]) is None


@pytest.mark.parametrize(
    ("right", "wrong", "share"),
    [([3.0, 2.0], [1.0], 1.0), ([1.0], [3.0, 0.0], 0.5), ([1.0], [1.0], 0.5), ([], [1.0], None)],
)
def test_separation(right: list[float], wrong: list[float], share: float | None) -> None:
    assert separation(right, wrong) == share
