"""Token healing: text that ends inside a token is taken back and generated again.

A model that is cut off inside a token sees ids that it never saw in training there: after a
lone space Qwen can only go on with a digit. So the last tokens of typed text are taken back,
and what is generated must begin with the same bytes; the model chooses how to cut them.

Bytes, not characters, since a token may hold a part of a character. Knows nothing of models,
slots or sampling: it says which ids are allowed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from fimble.engine.protocol import Prompt, Text

__all__ = ["Healing", "Ids", "TokenIndex", "taken_back", "typed_text"]

Ids = npt.NDArray[np.int32]

#: Tokens that are taken back at most.
_MOST_TAKEN_BACK = 8
_MASKS_KEPT = 64


class TokenIndex:
    """The bytes of a vocabulary in order, for finding tokens by how they begin.

    ``table`` holds the bytes of each id. Ids in ``excluded`` (control tokens) and ids
    without bytes are left out: they are never allowed. Safe for one thread at a time.
    """

    def __init__(self, table: Sequence[bytes], excluded: Collection[int] = ()) -> None:
        left_out = set(excluded)
        pairs = sorted(
            (data, token) for token, data in enumerate(table) if data and token not in left_out
        )
        self._keys = [data for data, _ in pairs]
        self._ids: Ids = np.asarray([token for _, token in pairs], dtype=np.int32)
        self._longest = max(map(len, self._keys), default=0)
        self._masks: OrderedDict[bytes, Ids] = OrderedDict()

    @property
    def complete(self) -> bool:
        """Whether each byte is a token, so that any bytes can be generated from anywhere."""
        singles = {key for key in self._keys if len(key) == 1}
        return len(singles) == 256

    def allowed(self, remaining: bytes) -> Ids:
        """The ids that may come next where ``remaining`` (not empty) must come first: tokens
        that begin with it, and tokens that it begins with.
        """
        found = self._masks.get(remaining)
        if found is None:
            found = self._find(remaining)
            self._masks[remaining] = found
            if len(self._masks) > _MASKS_KEPT:
                self._masks.popitem(last=False)
        else:
            self._masks.move_to_end(remaining)
        return found

    def open_end(self, data: bytes) -> int:
        """The number of bytes at the end of ``data`` that the beginning of a longer token
        spells; 0 where no token could reach from inside ``data`` beyond it.
        """
        for start in range(max(0, len(data) - self._longest), len(data)):
            end = data[start:]
            # What begins with ``end`` and is longer stands right behind it in order.
            place = bisect_right(self._keys, end)
            if place < len(self._keys) and self._keys[place].startswith(end):
                return len(end)
        return 0

    def _find(self, remaining: bytes) -> Ids:
        parts = [self._ids[slice(*self._range(remaining))]]
        for length in range(1, min(len(remaining), self._longest + 1)):
            piece = remaining[:length]
            parts.append(
                self._ids[bisect_left(self._keys, piece) : bisect_right(self._keys, piece)]
            )
        # In the order of ids: of equal logits the lowest id is chosen, as without a mask.
        return np.sort(np.concatenate(parts))

    def _range(self, beginning: bytes) -> tuple[int, int]:
        """Where the tokens that begin with ``beginning`` are."""
        low = bisect_left(self._keys, beginning)
        stem = beginning.rstrip(b"\xff")
        if not stem:
            return low, len(self._keys)
        return low, bisect_left(self._keys, stem[:-1] + bytes([stem[-1] + 1]), low)


def typed_text(prompt: Prompt) -> str:
    """The text that a prompt ends with; "" where it ends with ids or a control token."""
    if isinstance(prompt, str):
        return prompt
    last = prompt[-1] if prompt else None
    return last.text if isinstance(last, Text) else ""


class Healing:
    """The bytes that still have to come first in one answer."""

    def __init__(self, index: TokenIndex, remaining: bytes) -> None:
        self._index = index
        self._remaining = remaining

    @property
    def active(self) -> bool:
        """Whether there are any."""
        return bool(self._remaining)

    def allowed(self) -> Ids | None:
        """The ids of which the next one must be; None when all are allowed."""
        return self._index.allowed(self._remaining) if self._remaining else None

    def push(self, data: bytes) -> bytes:
        """Takes the bytes of a token that was allowed; returns those that go beyond."""
        done, self._remaining = self._remaining, self._remaining[len(data) :]
        return data[len(done) :]


def taken_back(index: TokenIndex, table: Sequence[bytes], typed: Sequence[int]) -> int:
    """How many of the last ids of typed text to generate again.

    As many as a token that begins inside the text and reaches beyond it could cover, so
    that every way to go on is cut into tokens as the model knows it; none where no token
    could. At most eight.
    """
    tail = [table[token] for token in typed[-_MOST_TAKEN_BACK:]]
    wanted = index.open_end(b"".join(tail))
    count = 0
    while wanted > 0 and count < len(tail):
        count += 1
        wanted -= len(tail[-count])
    return count
