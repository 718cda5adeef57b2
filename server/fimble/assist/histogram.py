"""A histogram of durations that can be added up and still gives percentiles.

Buckets grow by a fixed factor, so that a few dozen numbers hold any count of durations with
the same relative error, and histograms of several processes and days are merged by addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log

__all__ = ["GROWTH", "bucket_of", "percentile", "upper_bound"]

#: A bucket's upper bound is so many times its lower one.
GROWTH = 2 ** (1 / 8)


def bucket_of(milliseconds: float) -> int:
    """The bucket of a duration: 0 up to 1 ms, then one for each factor of ``GROWTH``."""
    if milliseconds <= 1:
        return 0
    bucket = ceil(log(milliseconds) / log(GROWTH))
    # The logarithm may be off by one where a duration is a bound.
    return bucket - 1 if upper_bound(bucket - 1) >= milliseconds else bucket


def upper_bound(bucket: int) -> float:
    """The longest duration in a bucket, in milliseconds."""
    return float(GROWTH**bucket)


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """The duration in milliseconds that ``share`` (above 0, up to 1) of all do not exceed.

    ``counts`` are durations by bucket. The answer is the upper bound of the bucket that holds
    the nearest rank: never too low, and too high by a factor of ``GROWTH`` at most (or 1 ms).
    None where nothing was counted.
    """
    rank = ceil(share * sum(counts.values()))
    for bucket in sorted(counts):
        rank -= counts[bucket]
        if rank <= 0 and counts[bucket]:
            return upper_bound(bucket)
    return None
