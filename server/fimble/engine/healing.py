"""Token healing: text that ends inside a token is taken back and generated again.

A model that is cut off inside a token sees ids that it never saw in training there: after a
lone space Qwen can only go on with a digit. So the last tokens of typed text are taken back,
and what is generated must begin with the same bytes. Of all ways to cut those bytes into
tokens only such are allowed as the tokenizer would make of some text that begins so: others
are as foreign to the model as the one that is healed, and cost more steps.

Bytes, not characters, since a token may hold a part of a character. Knows nothing of models,
slots or sampling: it says which ids are allowed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from fimble.engine.protocol import Prompt, Text
from fimble.engine.tokens import PackageTokenizer

__all__ = ["Cut", "Healing", "Ids", "TakenBack", "TokenIndex", "take_back", "typed_text"]

Ids = npt.NDArray[np.int32]

#: Tokens that are taken back at most.
_MOST_TAKEN_BACK = 8
#: Tokens that are tried of those that begin with the same bytes.
_EXAMPLES = 8


class TokenIndex:
    """The bytes of a vocabulary in order, for finding tokens by how they begin.

    ``table`` holds the bytes of each id. Ids in ``excluded`` (control tokens) and ids
    without bytes are left out: they are never allowed.
    """

    def __init__(self, table: Sequence[bytes], excluded: Collection[int] = ()) -> None:
        left_out = set(excluded)
        ids = [token for token, data in enumerate(table) if data and token not in left_out]
        ids.sort(key=table.__getitem__)
        self._keys = [table[token] for token in ids]
        self._ids: Ids = np.asarray(ids, dtype=np.int32)
        self._longest = max(map(len, self._keys), default=0)

    @property
    def complete(self) -> bool:
        """Whether each byte is a token, as in every byte-level vocabulary."""
        return len({key for key in self._keys if len(key) == 1}) == 256

    def longer(self, beginning: bytes) -> Ids:
        """The ids whose bytes begin with ``beginning`` (not empty) and go on; a view."""
        low, high = self._range(beginning)
        return self._ids[low:high]

    def open_ends(self, data: bytes) -> Iterator[tuple[int, list[bytes]]]:
        """The ends of ``data`` that longer tokens begin with, the longest first: where each
        begins, and a few of those tokens.
        """
        for start in range(max(0, len(data) - self._longest), len(data)):
            low, high = self._range(data[start:])
            if low < high:
                step = max(1, (high - low) // _EXAMPLES)
                yield start, self._keys[low:high:step][:_EXAMPLES]

    def _range(self, beginning: bytes) -> tuple[int, int]:
        """Where the longer tokens are that begin with ``beginning``."""
        low = bisect_right(self._keys, beginning)
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


@dataclass(frozen=True, slots=True)
class Cut:
    """A way to cut bytes into tokens: ``path`` lies inside; with ``open`` a token follows
    that covers what is left of the bytes and goes on, without it nothing is left.
    """

    path: tuple[int, ...]
    open: bool


@dataclass(frozen=True, slots=True)
class TakenBack:
    """The number of tokens taken back, their bytes, and the ways to cut these."""

    count: int = 0
    data: bytes = b""
    cuts: tuple[Cut, ...] = ()


def take_back(index: TokenIndex, tokenizer: PackageTokenizer, typed: Sequence[int]) -> TakenBack:
    """What to generate again of typed text, given by its ids.

    All from where some longer text that begins with this one is cut into other tokens; none
    where every longer text begins with the same ones. At most eight tokens.
    """
    tail = _independent_tail(tokenizer, tuple(typed))
    pieces = [tokenizer.token_bytes[token] for token in tail]
    least = len(tail) - _MOST_TAKEN_BACK
    found = {
        cut for cut in _cuts(index, tokenizer, tail, pieces) if _common(cut.path, tail) >= least
    }
    kept = min((_common(cut.path, tail) for cut in found), default=len(tail))
    if kept == len(tail):
        return TakenBack()
    found.add(Cut(tail, open=False))
    cuts = tuple(Cut(cut.path[kept:], cut.open) for cut in found)
    return TakenBack(len(tail) - kept, b"".join(pieces[kept:]), cuts)


def _independent_tail(tokenizer: PackageTokenizer, typed: tuple[int, ...]) -> tuple[int, ...]:
    """The end of typed text as far as it need be looked at: the last tokens, if their text
    is cut the same without what stands before it.
    """
    tail = typed[-_MOST_TAKEN_BACK:]
    data = b"".join(tokenizer.token_bytes[token] for token in tail)
    try:
        same = tokenizer.encode_text(data.decode("utf-8"), remember=False) == tail
    except UnicodeDecodeError:
        same = False
    return tail if same else typed


def _cuts(
    index: TokenIndex, tokenizer: PackageTokenizer, tail: tuple[int, ...], pieces: list[bytes]
) -> Iterator[Cut]:
    """How texts that go on are cut: in one way for each place where a token can begin that
    reaches beyond the end, and before a digit, which is always a token of its own.
    """
    data = b"".join(pieces)
    before_digit = _path(tokenizer, data, b"0")
    if before_digit is not None:
        yield Cut(before_digit, open=False)
    bounds = {length: place for place, length in enumerate(accumulate(map(len, pieces), initial=0))}
    for start, words in index.open_ends(data):
        for word in words:
            path = _path(tokenizer, data[:start], word)
            if path is None and start in bounds and not _is_text(word):
                # A part of a character: nobody can say how it is cut without the rest.
                path = tail[: bounds[start]]
            if path is not None:
                yield Cut(path, open=True)
                break


def _path(tokenizer: PackageTokenizer, before: bytes, word: bytes) -> tuple[int, ...] | None:
    """The tokens of ``before`` where ``word`` follows and is one token; None where it is not.

    Many tokens never are: ``\\n    \\n`` is one, but not behind a colon, which takes the
    first line end into its own token.
    """
    try:
        ids = tokenizer.encode_text((before + word).decode("utf-8"), remember=False)
    except UnicodeDecodeError:
        return None
    if not ids or tokenizer.token_bytes[ids[-1]] != word:
        return None
    return ids[:-1]


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """The number of ids that both begin with."""
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


class Healing:
    """What still has to come first in one answer."""

    def __init__(self, index: TokenIndex, taken: TakenBack) -> None:
        self._index = index
        self._remaining = taken.data
        self._cuts = taken.cuts
        self._made = 0

    @property
    def active(self) -> bool:
        """Whether there is anything."""
        return bool(self._remaining)

    def allowed(self) -> Ids | None:
        """The ids of which the next one must be, in no order; None when all are allowed."""
        if not self._remaining:
            return None
        inside = {cut.path[self._made] for cut in self._cuts if len(cut.path) > self._made}
        ids = np.asarray(sorted(inside), dtype=np.int32)
        if any(cut.open and len(cut.path) == self._made for cut in self._cuts):
            ids = np.concatenate((ids, self._index.longer(self._remaining)))
        return ids

    def push(self, token: int, data: bytes) -> bytes:
        """Takes a token that was allowed, and its bytes; returns those that go beyond."""
        beyond = data[len(self._remaining) :]
        self._remaining = self._remaining[len(data) :]
        self._cuts = tuple(cut for cut in self._cuts if cut.path[self._made :][:1] == (token,))
        self._made += 1
        return beyond
