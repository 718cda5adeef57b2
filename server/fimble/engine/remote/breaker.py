"""Leaves a server alone that has failed several times in a row, for a while."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Breaker"]

FAILURES = 3
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 120.0


class Breaker:
    """After three failures in a row it is open for five seconds, then for twice as long after
    each further one, up to two minutes. When a pause is over, requests are let through again:
    the first one decides.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._open_until = 0.0

    @property
    def seconds_left(self) -> float:
        """How long the server is left alone yet; 0.0 where it may be asked."""
        return max(0.0, self._open_until - self._clock())

    def succeeded(self) -> None:
        """The server answered, be it that the request was wrong."""
        self._failures, self._pause = 0, FIRST_PAUSE

    def failed(self) -> None:
        """The server did not answer, or said that it cannot."""
        self._failures += 1
        if self._failures >= FAILURES and self.seconds_left == 0.0:
            self._open_until = self._clock() + self._pause
            self._pause = min(LONGEST_PAUSE, self._pause * 2)
