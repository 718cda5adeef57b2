"""Code like that at the cursor: definitions that share rare identifiers with it.

The index tells which files have most in common, and what is in each of their definitions; of
those that are most alike, and of no others, the text is read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.chunks import container_headers, fact_chunk, plain, still_there
from fimble_context.candidates.definitions import file_facts
from fimble_context.candidates.near import Near
from fimble_context.index.facts import Fact, term
from fimble_context.index.lookup import Lookup
from fimble_context.index.terms import ChunkTerms, chunk_terms
from fimble_context.workspace.secrets import mask_secrets

__all__ = ["SimilarCode"]

_MOST_FILES = 6
_MOST_CHUNKS = 8
_MOST_OF_A_FILE = 3
_LEAST_COMMON = 2
_DAMPING = 20.0  # words: shorter chunks are not favoured for being short


class SimilarCode:
    """Finds similar chunks."""

    def __init__(
        self, lookup: Lookup, text_of: Callable[[Path], str | None], shown: Callable[[Path], str]
    ) -> None:
        """``text_of`` gives a file's text if it may be used, ``shown`` the path to name."""
        self._lookup = lookup
        self._text_of = text_of
        self._shown = shown

    def candidates(self, file: Path | None, near: Near) -> list[Candidate]:
        """The chunks most alike, best first; none of ``file`` itself."""
        found = self._lookup.files_similar(near.identifiers, _MOST_FILES + 1)
        files = [path for item in found if (path := Path(item.path)) != file][:_MOST_FILES]
        words = {term(word): word for word in near.identifiers}
        chunks = [(path, chunk) for path in files for chunk in self._chunks_of(path)]
        wanted = frozenset(words)
        common = [wanted & chunk.terms for _, chunk in chunks]
        spread = Counter(number for numbers in common for number in numbers)
        taken: Counter[Path] = Counter()
        chosen: list[Candidate] = []
        for number in _ranked([chunk for _, chunk in chunks], common, spread):
            path, chunk = chunks[number]
            if len(chosen) == _MOST_CHUNKS:
                break
            if taken[path] < _MOST_OF_A_FILE:
                rare = sorted((spread[item], words[item]) for item in common[number])
                candidate = self._candidate(path, chunk, [word for _, word in rare])
                if candidate is not None:
                    taken[path] += 1
                    chosen.append(candidate)
        return chosen

    def _chunks_of(self, path: Path) -> Sequence[ChunkTerms]:
        stored = self._lookup.chunks(path)
        if stored is not None:
            return stored
        facts, text = self._lookup.facts(path), self._text_of(path)
        if facts is None or text is None:
            return ()
        # An open document: its text may be ahead of what is known, as of any file.
        return self._lookup.remembered(
            ("chunks", path), lambda: tuple(chunk_terms(text, facts.definitions, facts.terms))
        )

    def _candidate(self, path: Path, chunk: ChunkTerms, common: list[str]) -> Candidate | None:
        """None where the chunk is not there any more, or may not be used."""
        file = file_facts(self._lookup, path)
        text = self._text_of(path)
        if file is None or text is None:
            return None
        fact = next(_between(file.facts.definitions, chunk.start, chunk.end), None)
        if fact is None or not still_there(text, fact):
            return None
        header, _ = container_headers(fact, file.by_name, file.language)
        around = fact_chunk(text, fact)
        return Candidate(
            path=self._shown(path),
            kind="similar",
            place=Place(path, fact.start, fact.end),
            reason=f"uses {', '.join(common[:3])} as the code here does",
            forms=(plain(mask_secrets(text[around.start : around.end])),),
            header=header,
        )


def _between(definitions: Sequence[Fact], start: int, end: int) -> Iterator[Fact]:
    return (fact for fact in definitions if fact.start == start and fact.end == end)


def _ranked(
    chunks: Sequence[ChunkTerms], common: Sequence[frozenset[int]], spread: Counter[int]
) -> list[int]:
    """The numbers of the chunks that have enough in common, the most alike first."""
    weights = {item: math.log((len(chunks) + 1.0) / count) for item, count in spread.items()}

    def score(number: int) -> float:
        alike = math.fsum(weights[item] for item in common[number])
        return alike / math.sqrt(_DAMPING + len(chunks[number].terms))

    worth = [number for number in range(len(chunks)) if len(common[number]) >= _LEAST_COMMON]
    return sorted(worth, key=lambda number: (-score(number), number))
