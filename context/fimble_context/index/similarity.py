"""Which files use the same identifiers: an inverted index in memory, of numbers only.

Knows terms (see ``facts.term``) and paths. Rare terms count more: a term's weight is its
inverse document frequency. About 6 bytes a term and file; a query takes about a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Similar", "Similarity"]

_MOST_QUERY_TERMS = 400
_RARE_ENOUGH = 0.2  # a term in more of the files than this says nothing


@dataclass(frozen=True, slots=True)
class Similar:
    """A file and how much it has in common with the question, comparable within an answer."""

    path: str
    score: float


class Similarity:
    """Built once from all files; what changes after that is kept beside it.

    Not safe for use from several threads at once.
    """

    def __init__(self, files: Iterable[tuple[str, bytes]]) -> None:
        """``files``: (path, terms as unsigned 32-bit numbers in native order)."""
        self._paths: list[str] = []
        self._number: dict[str, int] = {}
        pieces: list[npt.NDArray[np.uint64]] = []
        sizes: list[int] = []
        for path, blob in files:
            terms = np.frombuffer(blob, dtype=np.uint32)
            self._number[path] = len(self._paths)
            self._paths.append(path)
            pieces.append((terms.astype(np.uint64) << np.uint64(32)) | np.uint64(len(sizes)))
            sizes.append(len(terms))
        # Sorting (term, file) as one number, in place, is fast and lets other threads run.
        pairs = np.concatenate(pieces) if pieces else np.zeros(0, np.uint64)
        del pieces
        pairs.sort()
        self._files = (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        terms = (pairs >> np.uint64(32)).astype(np.uint32)
        del pairs
        first = np.ones(len(terms), bool)
        first[1:] = terms[1:] != terms[:-1]
        self._starts = np.flatnonzero(first).astype(np.uint32)
        self._terms = terms[self._starts]
        self._damping = np.log(8.0 + np.array(sizes, dtype=np.float64))
        self._alive = np.ones(len(sizes), bool)
        self._changed: dict[str, npt.NDArray[np.uint32]] = {}

    @property
    def pending(self) -> int:
        """How many files have changed since it was built; each makes a query dearer."""
        return len(self._changed)

    def __len__(self) -> int:
        return int(self._alive.sum()) + len(self._changed)

    def __contains__(self, path: str) -> bool:
        number = self._number.get(path)
        return path in self._changed or (number is not None and bool(self._alive[number]))

    def put(self, path: str, terms: Sequence[int]) -> None:
        """A file has these terms now."""
        self.remove(path)
        self._changed[path] = np.array(sorted(terms), dtype=np.uint32)

    def remove(self, path: str) -> None:
        """A file is gone."""
        self._changed.pop(path, None)
        number = self._number.get(path)
        if number is not None:
            self._alive[number] = False

    def query(self, terms: Sequence[int], k: int) -> list[Similar]:
        """The ``k`` files that have most in common with the terms, best first."""
        wanted = np.unique(np.array(terms[:_MOST_QUERY_TERMS], dtype=np.uint32))
        total = len(self)
        if not len(wanted) or not total:
            return []
        scores, weights = self._scores(wanted, total)
        found = [Similar(self._paths[number], float(scores[number])) for number in _best(scores, k)]
        for path, own in self._changed.items():
            score = float(weights[_are_in(wanted, own)].sum())
            if score > 0:
                found.append(Similar(path, score / float(np.log(8.0 + len(own)))))
        return sorted(found, key=lambda item: (-item.score, item.path))[:k]

    def _scores(
        self, wanted: npt.NDArray[np.uint32], total: int
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The scores of all files, and the weights of the terms."""
        ends = np.append(self._starts[1:], np.uint32(len(self._files)))
        known = _are_in(wanted, self._terms)
        places = self._terms.searchsorted(wanted)
        scores = np.zeros(len(self._paths))
        # A term that only changed files have is as rare as can be.
        weights = np.full(len(wanted), np.log(total + 1.0))
        for index in np.flatnonzero(known):
            files = self._files[self._starts[places[index]] : ends[places[index]]]
            if len(files) > max(_RARE_ENOUGH * total, 3):
                weights[index] = 0.0
                continue
            weights[index] = np.log((total + 1.0) / len(files))
            scores[files] += weights[index]
        scores[~self._alive] = 0.0
        return scores / self._damping, weights


def _are_in(wanted: npt.NDArray[np.uint32], terms: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool]:
    """Which of the wanted terms are among those, which are sorted."""
    found = np.zeros(len(wanted), bool)
    if len(terms):
        np.equal(terms.take(terms.searchsorted(wanted), mode="clip"), wanted, out=found)
    return found


def _best(scores: npt.NDArray[np.float64], k: int) -> list[int]:
    found = np.flatnonzero(scores > 0)
    order = np.argsort(-scores[found], kind="stable")[:k]
    return [int(number) for number in found[order]]
