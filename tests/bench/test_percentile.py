"""One rule for every benchmark's percentiles: the nearest rank."""

from __future__ import annotations

import pytest

from fimble.bench.percentile import percentile


@pytest.mark.parametrize(
    ("samples", "share", "expected"),
    [
        ([3, 1, 2], 0.5, 2),
        ([4, 3, 2, 1], 0.5, 2),
        (range(1, 101), 0.95, 95),
        (range(1, 101), 0.99, 99),
        (range(1, 101), 1.0, 100),
        (range(1, 21), 0.95, 19),
        ([7], 0.01, 7),
        ([], 0.5, 0),
    ],
)
def test_the_nearest_rank(samples: list[float], share: float, expected: float) -> None:
    assert percentile(samples, share) == expected
