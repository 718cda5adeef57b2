"""Identifiers as numbers: of a whole file, and of each definition in it that can be compared.

An index of numbers is small and holds no text. With the terms of definitions in the store,
similar code is found without reading a file.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["ChunkTerms", "chunk_terms", "identifiers", "pack", "term", "terms_of", "unpack"]

_MOST_TERMS = 2_000
_SHORTEST, _LONGEST = 60, 2_400  # code points of a chunk
_WHOLE = frozenset({"function", "method", "constructor", "constant", "type", "enum", "struct"})
# Long ones are data: a hash, a token, base64.
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9_$])[A-Za-z_$][A-Za-z0-9_$]{2,39}(?![A-Za-z0-9_$])")


class _Defined(Protocol):
    @property
    def kind(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ChunkTerms:
    """The terms of the code points ``start`` to ``end``: a definition's."""

    start: int
    end: int
    terms: frozenset[int]


def identifiers(text: str) -> tuple[int, ...]:
    """The terms of the identifiers in a text, sorted; of a long text the first 2000."""
    names = dict.fromkeys(_IDENTIFIER.findall(text))
    return terms_of(list(names)[:_MOST_TERMS])


def terms_of(names: Iterable[str]) -> tuple[int, ...]:
    """The distinct terms of names, sorted."""
    return tuple(sorted({term(name) for name in names}))


def term(name: str) -> int:
    """A number of 32 bits for an identifier.

    Two of half a million identifiers may share one; for similarity that is no matter.
    """
    return zlib.crc32(name.encode("utf-8", "surrogatepass"))


def chunk_terms(
    text: str, definitions: Iterable[_Defined], known: Iterable[int]
) -> Iterator[ChunkTerms]:
    """The definitions of a text that can be compared with others; no two overlap.

    Of their terms only ``known`` ones, the file's: what is masked there is in no chunk.
    """
    allowed = frozenset(known)
    numbers: dict[str, int] = {}
    last = -1
    for item in definitions:
        size = item.end - item.start
        if item.kind not in _WHOLE or not _SHORTEST <= size <= _LONGEST or item.start < last:
            continue
        last = item.end
        found = set()
        for name in set(_IDENTIFIER.findall(text, item.start, item.end)):
            number = numbers.get(name)
            if number is None:
                number = numbers[name] = term(name)
            found.add(number)
        yield ChunkTerms(item.start, item.end, allowed & found)


def pack(chunks: Sequence[ChunkTerms], terms: Sequence[int]) -> bytes:
    """Chunks as bytes in native order; ``terms`` are the file's, no more than 65,536."""
    place = {number: index for index, number in enumerate(terms)}
    head = array("I", (len(chunks),))
    body = array("H")
    for chunk in chunks:
        head.extend((chunk.start, chunk.end, len(chunk.terms)))
        body.extend(sorted(place[number] for number in chunk.terms))
    return head.tobytes() + body.tobytes()


def unpack(packed: bytes, terms: Sequence[int]) -> list[ChunkTerms]:
    """The inverse of ``pack``. Raises ValueError or IndexError for what is damaged."""
    head = array("I")
    if not packed:
        return []
    head.frombytes(packed[: head.itemsize])
    size = (1 + 3 * head[0]) * head.itemsize
    head.frombytes(packed[head.itemsize : size])
    body = array("H")
    body.frombytes(packed[size:])
    chunks, done = [], 0
    for index in range(1, len(head), 3):
        start, end, count = head[index : index + 3]
        within = frozenset(map(terms.__getitem__, body[done : done + count]))
        chunks.append(ChunkTerms(start, end, within))
        done += count
    return chunks
