"""The way of llama.vim, as its users describe it: line windows and a ring of chunks.

256 lines before the cursor and 64 after it; up to 16 chunks of at most 64 lines, gathered
where the user was, without near duplicates, the oldest first; what does not fit is dropped at
the old end. The local text has the first claim on half of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fimble.bench.cases import Case, Visit
from fimble_context.assembly import HEADING_TOKENS, Context, Section, TokenCounter, assemble
from fimble_context.syntax import Document

__all__ = ["ring_context"]

_LINES_BEFORE, _LINES_AFTER = 256, 64
_CHUNKS, _CHUNK_LINES = 16, 64
_SAME = 0.9


def ring_context(
    case: Case, shown: dict[Path, str], repository: str, budget: int, count_tokens: TokenCounter
) -> Context:
    """The context of a case within ``budget`` tokens. ``shown`` are paths by file."""
    path = shown[case.file]
    before = "".join(case.text[: case.offset].splitlines(keepends=True)[-_LINES_BEFORE - 1 :])
    after = "".join(case.text[case.offset :].splitlines(keepends=True)[: _LINES_AFTER + 1])
    document = Document(before + after, path=path)
    chunks = _ring(case.visits, case)
    headings = count_tokens([path, repository, *(shown[file] for file, _ in chunks)])
    costs = [
        text + heading + HEADING_TOKENS
        for text, heading in zip(
            count_tokens([text for _, text in chunks]), headings[2:], strict=True
        )
    ]
    heading = sum(headings[:2]) + 2 * HEADING_TOKENS if chunks else 0
    # The local text has half of the budget, and what the chunks do not need.
    local = max(budget // 2, budget - heading - sum(costs)) if chunks else budget
    own = assemble(document, len(before), budget=local, count_tokens=count_tokens)
    left = budget - heading - own.tokens
    sections: list[Section] = []
    for (file, text), cost, title in reversed(list(zip(chunks, costs, headings[2:], strict=True))):
        if cost > left:
            # As in llama.cpp, the end is kept of what is too much.
            text, cost = _tail(text, left - title - HEADING_TOKENS, count_tokens)
            cost += title + HEADING_TOKENS
        if text and cost <= left:
            left -= cost
            sections.insert(0, Section(shown[file], "recent", "visited lately", cost, text))
    if not sections:
        return own
    first = replace(own.sections[0], tokens=own.sections[0].tokens + heading)
    return Context((*sections, first, *own.sections[1:]), budget, own.left_out, repository)


def _tail(text: str, limit: int, count_tokens: TokenCounter) -> tuple[str, int]:
    """The last lines of a text that are within a limit, and what they cost."""
    lines = text.splitlines(keepends=True)
    kept, used = len(lines), 0
    for cost in reversed(count_tokens(lines)):
        if used + cost > limit:
            break
        kept, used = kept - 1, used + cost
    return "".join(lines[kept:]), used


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
