"""The way of llama.vim, as its users describe it: line windows and a ring of chunks.

256 lines before the cursor and 64 after it; up to 16 chunks of at most 64 lines, gathered
where the user was, without near duplicates, the oldest first; what does not fit is dropped at
the old end. The local text has the first claim on half of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fimble.bench.cases import Case, Visit
from fimble_context.sections import Context, Section
from fimble_context.selection import HEADING_TOKENS
from fimble_context.window import TokenCounter

__all__ = ["ring_context"]

_LINES_BEFORE, _LINES_AFTER = 256, 64
_CHUNKS, _CHUNK_LINES = 16, 64
_SAME = 0.9


def ring_context(
    case: Case, shown: dict[Path, str], repository: str, budget: int, count_tokens: TokenCounter
) -> Context:
    """The context of a case within ``budget`` tokens. ``shown`` are paths by file."""
    path = shown[case.file]
    before = case.text[: case.offset].splitlines(keepends=True)[-_LINES_BEFORE - 1 :]
    after = case.text[case.offset :].splitlines(keepends=True)[: _LINES_AFTER + 1]
    heading = sum(count_tokens([path, repository])) + 2 * HEADING_TOKENS
    chunks = _ring(case.visits, case)
    half = budget // 2 if chunks else budget
    prefix_counts, suffix_counts = count_tokens(before), count_tokens(after)
    texts = [text for _, text in chunks]
    costs = [
        cost + count_tokens([shown[file]])[0] + HEADING_TOKENS
        for cost, (file, _) in zip(count_tokens(texts), chunks, strict=True)
    ]
    extra = sum(costs) + heading if chunks else 0
    # What the chunks do not need, the local text gets.
    local = max(half, budget - extra)
    suffix, used_after = _take(after, suffix_counts, local // 4)
    prefix, used_before = _take(before[::-1], prefix_counts[::-1], local - used_after)
    suffix, used_after = _take(after, suffix_counts, local - used_before)
    left = budget - used_before - used_after - heading
    sections: list[Section] = []
    for (file, text), cost in zip(reversed(chunks), reversed(costs), strict=True):
        if cost <= left:
            left -= cost
            sections.insert(0, Section(shown[file], "recent", "visited", cost, text))
    first = heading if sections else 0
    own = (
        Section(path, "prefix", "lines before", used_before + first, "".join(prefix[::-1])),
        Section(path, "suffix", "lines after", used_after, "".join(suffix)),
    )
    return Context((*sections, *own), budget, (), repository if sections else "")


def _take(lines: Sequence[str], counts: Sequence[int], limit: int) -> tuple[list[str], int]:
    taken: list[str] = []
    used = 0
    for line, count in zip(lines, counts, strict=True):
        if used + count > limit:
            break
        taken.append(line)
        used += count
    return taken, used


def _ring(visits: Sequence[Visit], case: Case) -> list[tuple[Path, str]]:
    """Chunks of lines around the visited places, the oldest first."""
    chunks: list[tuple[Path, str]] = []
    for visit in visits:
        text = case.text if visit.file == case.file else _read(visit.file)
        lines = text.splitlines(keepends=True)
        at = text.count("\n", 0, visit.offset)
        first = max(0, at - _CHUNK_LINES // 2)
        chunk = "".join(lines[first : first + _CHUNK_LINES])
        chunks = [item for item in chunks if _alike(item[1], chunk) < _SAME]
        chunks.append((visit.file, chunk if chunk.endswith("\n") else f"{chunk}\n"))
    return chunks[-_CHUNKS:]


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _alike(one: str, other: str) -> float:
    """Dice's coefficient of two chunks' lines."""
    a, b = set(one.splitlines()), set(other.splitlines())
    return 2 * len(a & b) / (len(a) + len(b)) if a or b else 1.0
