"""Token counts for ``fimble_context``: exact ones remembered, estimates in between.

The engine counts, over a connection; an assembly asks synchronously and often. So counts are
remembered by content, a text not counted yet is estimated, and ``learn`` asks the engine for
all of those at once: an assembly costs one round trip at most, and while the user types in
one line, none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from fimble.assist.layout import prompt_text
from fimble.engine.base import Engine

__all__ = ["TokenCounts"]

#: UTF-8 bytes a token: low for code (3 to 4 is usual), so that estimates err upwards.
_BYTES_A_TOKEN = 3
#: Remembered counts; a line of code with its count is about 200 bytes of memory.
_CAPACITY = 20_000


class TokenCounts:
    """The counts known for one model. ``with_estimates`` is a ``TokenCounter``."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._known: OrderedDict[str, int] = OrderedDict()
        self._unknown: dict[str, int] = {}

    def with_estimates(self, texts: Sequence[str]) -> list[int]:
        """Counts of ``texts``; what is not known is estimated, and noted for ``learn``."""
        return [self._count(text) for text in texts]

    def at_most(self, texts: Sequence[str]) -> list[int]:
        """Counts of ``texts`` that are never too low: bytes where no count is known.

        No text has more tokens than bytes, since the model's vocabulary has every byte.
        """
        return [
            self._known[text] if text in self._known else _byte_count(text)
            for text in map(prompt_text, texts)
        ]

    @property
    def estimated_tokens(self) -> int:
        """Tokens that were estimated since the last ``begin``."""
        return sum(map(_estimate, self._unknown.values()))

    @property
    def largest_error(self) -> int:
        """By how many tokens the estimates since the last ``begin`` can be too low."""
        return sum(size - _estimate(size) for size in self._unknown.values())

    def begin(self) -> None:
        """A new assembly: forget which texts were estimated."""
        self._unknown.clear()

    async def learn(self, engine: Engine) -> None:
        """Has every text that was estimated since ``begin`` counted, in one round trip."""
        texts = list(self._unknown)
        if not texts:
            return
        counts = await engine.count_tokens(texts)
        for text, count in zip(texts, counts, strict=True):
            self._known[text] = count
            self._unknown.pop(text, None)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

    def _count(self, text: str) -> int:
        text = prompt_text(text)
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
            return known
        size = _byte_count(text)
        self._unknown[text] = size
        return _estimate(size)


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8"))


def _estimate(size: int) -> int:
    return -(-size // _BYTES_A_TOKEN)
