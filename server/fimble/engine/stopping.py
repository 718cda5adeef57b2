"""When an answer ends by its text or its tokens, and what of it may be shown already.

Knows nothing of models or requests.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["RepetitionGuard", "StopMatcher"]


class StopMatcher:
    """Finds stop strings in text that comes in pieces.

    Text that may be the beginning of a stop string is held back until that is decided.
    The stop string that is complete first ends the answer (of several, the longest), so
    that the answer does not depend on how the text was cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        """Takes a piece; returns what may be shown. Nothing once ``stopped``."""
        if self.stopped:
            return ""
        self._held += text
        found = [
            (place + len(stop), place)
            for stop in self._stops
            if (place := self._held.find(stop)) >= 0
        ]
        if found:
            shown, self._held, self.stopped = self._held[: min(found)[1]], "", True
            return shown
        keep = self._undecided()
        shown = self._held[: len(self._held) - keep]
        self._held = self._held[len(self._held) - keep :]
        return shown

    def finish(self) -> str:
        """The text still held back, when the answer ended without a stop string."""
        shown, self._held = self._held, ""
        return shown

    def _undecided(self) -> int:
        """The length of the longest end of the held text that some stop begins with."""
        longest = max((len(stop) for stop in self._stops), default=0)
        for length in range(min(longest - 1, len(self._held)), 0, -1):
            end = self._held[-length:]
            if any(stop.startswith(end) for stop in self._stops):
                return length
        return 0


class RepetitionGuard:
    """Notices that an answer goes round in a short circle of tokens.

    Code repeats itself too, so a circle must have come nine times, and for at least 64
    tokens, before it counts as endless.
    """

    LONGEST = 64
    TIMES = 8
    TOKENS = 64

    def __init__(self) -> None:
        self._ids: list[int] = []
        # For each circle length, how many tokens in a row equal the one that far back.
        self._runs = [0] * (self.LONGEST + 1)

    def push(self, token: int) -> int:
        """The length of the circle that the answer is caught in, or 0."""
        ids = self._ids
        ids.append(token)
        caught = 0
        for length in range(1, min(len(self._runs), len(ids))):
            if ids[-1 - length] != token:
                self._runs[length] = 0
                continue
            self._runs[length] += 1
            if not caught and self._runs[length] >= max(self.TOKENS, self.TIMES * length):
                caught = length
        return caught
