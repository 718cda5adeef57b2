"""Percentiles from buckets: never too low, and too high by one bucket's factor at most."""

from __future__ import annotations

from collections import Counter
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.histogram import GROWTH, bucket_of, percentile, upper_bound

DURATIONS = st.floats(0, 1e7, allow_nan=False)


@given(DURATIONS)
def test_a_duration_is_within_its_bucket(milliseconds: float) -> None:
    bucket = bucket_of(milliseconds)
    assert milliseconds <= upper_bound(bucket)
    assert bucket == 0 or upper_bound(bucket - 1) < milliseconds


@given(st.lists(DURATIONS, min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_the_exact_one_up_to_its_bucket(
    durations: list[float], share: float
) -> None:
    exact = sorted(durations)[ceil(share * len(durations)) - 1]
    found = percentile(Counter(map(bucket_of, durations)), share)
    assert found is not None
    assert exact <= found <= max(1.0, exact * GROWTH * (1 + 1e-9))


@given(st.lists(DURATIONS), st.lists(DURATIONS))
def test_added_histograms_are_the_histogram_of_both(left: list[float], right: list[float]) -> None:
    def counts(durations: list[float]) -> Counter[int]:
        return Counter(map(bucket_of, durations))

    added = counts(left) + counts(right)
    assert percentile(added, 0.95) == percentile(counts(left + right), 0.95)


@pytest.mark.parametrize("counts", [{}, {3: 0}])
def test_of_nothing_there_is_no_percentile(counts: dict[int, int]) -> None:
    assert percentile(counts, 0.5) is None
