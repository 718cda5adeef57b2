"""Code like that at the cursor: definitions that share rare identifiers with it.

The index tells which files have most in common; of those, the definitions themselves are
compared. Files are read for it, a few and never large ones.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import intern

from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.chunks import container_headers, fact_chunk, plain, still_there
from fimble_context.candidates.near import Near, words_of
from fimble_context.index.facts import Fact, Facts
from fimble_context.index.lookup import Lookup
from fimble_context.syntax.languages import detect
from fimble_context.workspace.secrets import mask_secrets

__all__ = ["SimilarCode"]

_MOST_FILES = 6
_MOST_CHUNKS = 8
_MOST_OF_A_FILE = 3
_SHORTEST, _LONGEST = 60, 2_400  # code points of a chunk
_WHOLE = frozenset({"function", "method", "constructor", "constant", "type", "enum", "struct"})
_LEAST_COMMON = 2
_DAMPING = 20.0  # words: shorter chunks are not favoured for being short
_MOST_REMEMBERED = 24


@dataclass(frozen=True, slots=True)
class _Chunk:
    file: Path
    fact: Fact
    header: str
    text: str
    words: frozenset[str]


class SimilarCode:
    """Finds similar chunks; remembers the chunks of the files it looked at last."""

    def __init__(
        self, lookup: Lookup, text_of: Callable[[Path], str | None], shown: Callable[[Path], str]
    ) -> None:
        """``text_of`` gives a file's text if it may be used, ``shown`` the path to name."""
        self._lookup = lookup
        self._text_of = text_of
        self._shown = shown
        self._chunks: OrderedDict[Path, tuple[str, Facts, list[_Chunk]]] = OrderedDict()

    def candidates(self, file: Path | None, near: Near) -> list[Candidate]:
        """The chunks most alike, best first; none of ``file`` itself."""
        found = self._lookup.files_similar(near.identifiers, _MOST_FILES + 1)
        files = [path for item in found if (path := Path(item.path)) != file][:_MOST_FILES]
        chunks = [chunk for path in files for chunk in self._chunks_of(path)]
        common = [chunk.words & near.identifiers for chunk in chunks]
        spread = Counter(word for words in common for word in words)
        weights = {word: math.log((len(chunks) + 1.0) / spread[word]) for word in sorted(spread)}

        def score(number: int) -> float:
            alike = math.fsum(weights[word] for word in common[number])
            return alike / math.sqrt(_DAMPING + len(chunks[number].words))

        worth = [number for number in range(len(chunks)) if len(common[number]) >= _LEAST_COMMON]
        taken: Counter[Path] = Counter()
        chosen: list[Candidate] = []
        for number in sorted(worth, key=lambda number: (-score(number), number)):
            chunk = chunks[number]
            if taken[chunk.file] < _MOST_OF_A_FILE and len(chosen) < _MOST_CHUNKS:
                taken[chunk.file] += 1
                rare = sorted(common[number], key=lambda word: (spread[word], word))
                chosen.append(self._candidate(chunk, rare))
        return chosen

    def _chunks_of(self, path: Path) -> list[_Chunk]:
        facts, text = self._lookup.facts(path), self._text_of(path)
        if facts is None or text is None:
            return []
        known = self._chunks.get(path)
        if known is None or known[0] is not text or known[1] is not facts:
            known = text, facts, list(_cut(path, text, facts))
            self._chunks[path] = known
        self._chunks.move_to_end(path)
        if len(self._chunks) > _MOST_REMEMBERED:
            self._chunks.popitem(last=False)
        return known[2]

    def _candidate(self, chunk: _Chunk, common: list[str]) -> Candidate:
        return Candidate(
            path=self._shown(chunk.file),
            kind="similar",
            place=Place(chunk.file, chunk.fact.start, chunk.fact.end),
            reason=f"uses {', '.join(common[:3])} as the code here does",
            forms=(plain(mask_secrets(chunk.text)),),
            header=chunk.header,
        )


def _cut(path: Path, text: str, facts: Facts) -> Iterator[_Chunk]:
    language = detect(facts.language, str(path))
    by_name: dict[str, list[Fact]] = {}
    for fact in facts.definitions:
        by_name.setdefault(f"{fact.container}.{fact.name}".lstrip("."), []).append(fact)
    last = -1
    for fact in facts.definitions:
        size = fact.end - fact.start
        if fact.kind not in _WHOLE or not _SHORTEST <= size <= _LONGEST or fact.start < last:
            continue
        if still_there(text, fact):
            last = fact.end
            around = fact_chunk(text, fact)
            body = text[around.start : around.end]
            header, _ = container_headers(fact, by_name, language)
            yield _Chunk(path, fact, header, body, frozenset(map(intern, words_of(body))))
