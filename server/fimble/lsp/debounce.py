"""How long to wait before a model is asked, so that a quick typist is not asked for in vain.

Adapts to the pace of typing and to how long answers take: waiting is only worth it where an
answer takes longer than the next key.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from statistics import median

__all__ = ["Debounce"]

#: Seconds. A longer pause between two keys is thinking, not typing.
_PAUSE = 1.5
_LONGEST = 0.15
_KEYS = 8
_SHARE_OF_LATENCY = 0.5
_WEIGHT = 0.3


class Debounce:
    """The delay of one window. All times are seconds; ``clock`` is monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = 0.0
        self._intervals: deque[float] = deque(maxlen=_KEYS)
        self._latency = 0.0

    def typed(self) -> None:
        """A key was pressed, or the text was changed in another way."""
        now = self._clock()
        interval = now - self._last
        if interval < _PAUSE:
            self._intervals.append(interval)
        self._last = now

    def answered(self, seconds: float) -> None:
        """The model took so long to answer."""
        self._latency += _WEIGHT * (seconds - self._latency)

    def delay(self) -> float:
        """How long to wait now; 0 where the next key will hardly come before an answer."""
        if len(self._intervals) < 2:
            return 0.0
        pace = median(self._intervals)
        if self._latency <= pace:
            return 0.0
        since = self._clock() - self._last
        wanted = min(_LONGEST, pace, self._latency * _SHARE_OF_LATENCY)
        return max(0.0, wanted - since)
