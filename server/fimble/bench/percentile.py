"""Percentiles of what benchmarks measured, by one rule."""

from __future__ import annotations

import math
from collections.abc import Iterable

__all__ = ["percentile"]


def percentile(samples: Iterable[float], share: float) -> float:
    """The nearest-rank percentile: the least sample that ``share`` (above 0, at most 1) of all are
    no greater than; of none it is 0.
    """
    ordered = sorted(samples)
    if not ordered:
        return 0.0
    # A share such as 0.95 is a little more or less than that in binary.
    return ordered[math.ceil(round(share * len(ordered), 9)) - 1]
