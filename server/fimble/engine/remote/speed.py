"""How fast a server computes, from the requests it has answered."""

from __future__ import annotations

import time

from fimble.engine.protocol import CompletionChunk, Usage

__all__ = ["Speed"]

#: Of fewer tokens, the time is that of the network.
_ENOUGH_PROMPT, _ENOUGH_ANSWER = 64, 8
#: What the newest request counts for.
_SHARE = 0.3


class Speed:
    """``prefill`` and ``decode`` in tokens per second, the network included; 0.0 until known."""

    def __init__(self) -> None:
        self.prefill = 0.0
        self.decode = 0.0

    def request(self) -> _Request:
        """A clock for one request that begins now."""
        return _Request(self)

    def _learn(self, computed: int, waited: float, made: int, took: float) -> None:
        if computed >= _ENOUGH_PROMPT and waited > 0:
            self.prefill = _mixed(self.prefill, computed / waited)
        if made >= _ENOUGH_ANSWER and took > 0:
            self.decode = _mixed(self.decode, made / took)


class _Request:
    def __init__(self, speed: Speed) -> None:
        self._speed = speed
        self._began = time.monotonic()
        self._first = 0.0

    def saw(self, chunk: CompletionChunk) -> None:
        """A piece came. The last one tells how many tokens there were, where a server says so."""
        now = time.monotonic()
        self._first = self._first or now
        if chunk.usage is not None and chunk.usage != Usage():
            self._speed._learn(
                chunk.usage.computed_tokens,
                self._first - self._began,
                chunk.usage.completion_tokens - 1,
                now - self._first,
            )


def _mixed(old: float, new: float) -> float:
    return new if old == 0.0 else old + _SHARE * (new - old)
