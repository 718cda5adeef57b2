"""Real code, masked, filled in by the real model from prompts made in three ways.

Modes: ``a`` is prefix and suffix only, ``b`` a ring of chunks (see ``ring``), ``c`` ours. All
get the same token budget, counted by the model's own tokenizer, the same layout and the same
visits to other files. Answers are drawn without chance (temperature 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from fimble.assist.layout import LAYOUT_TOKENS, completion_prompt
from fimble.assist.tokens import TokenCounts
from fimble.bench.cases import Case, draw_cases
from fimble.bench.ring import ring_context
from fimble.bench.score import edit_similarity, is_exact, normalised
from fimble.engine.base import Engine
from fimble.engine.protocol import CompletionRequest
from fimble_context.assembly import Context, TokenCounter, Workspace, assemble
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import Document

__all__ = [
    "MODES",
    "Mode",
    "Outcome",
    "Summary",
    "draw_cases",
    "make_context",
    "run_cases",
    "summaries",
    "to_json",
]

Mode = Literal["a", "b", "c"]
MODES: tuple[Mode, ...] = ("a", "b", "c")
_MOST_TOKENS = {"line": 64, "block": 192}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case in one mode. ``prompt_tokens`` is what the prompt had."""

    case: int
    mode: Mode
    kind: str
    shape: str
    exact: bool
    similarity: float
    prompt_tokens: int
    answer: str
    expected: str
    sections: dict[str, int]


@dataclass(frozen=True, slots=True)
class Summary:
    """All cases of a kind in one mode. Means; ``exact`` and ``similarity`` up to 1."""

    kind: str
    mode: Mode
    cases: int
    exact: float
    similarity: float
    prompt_tokens: float


async def run_cases(
    engine: Engine,
    index: WorkspaceIndex,
    cases: Sequence[Case],
    *,
    budget: int,
    modes: Sequence[Mode],
    share: int | None = None,
    known: Sequence[Outcome] = (),
    each: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Outcome]:
    """Every case in every mode; ``each`` is called as they come in.

    ``budget`` counts all tokens of a prompt; ``known`` outcomes are not asked for again. Raises
    what the engine raises.
    """
    counts = TokenCounts()
    outcomes = []
    before = {(item.kind, item.case, item.mode): item for item in known}
    numbers: dict[str, int] = {}
    for case in cases:
        number = numbers[case.kind] = numbers.get(case.kind, -1) + 1
        for mode in modes:
            if (case.kind, number, mode) in before:
                outcomes.append(before[case.kind, number, mode])
                continue

            def make(count: TokenCounter, case: Case = case, mode: Mode = mode) -> Context:
                return make_context(mode, case, index, budget - LAYOUT_TOKENS, count, share)

            context = await _exact(engine, counts, make)
            outcome = await _ask(engine, number, case, mode, context)
            outcomes.append(outcome)
            each(outcome)
    return outcomes


async def _exact(
    engine: Engine, counts: TokenCounts, make: Callable[[TokenCounter], Context]
) -> Context:
    """A context made with the model's own counts of everything."""
    while True:
        counts.begin()
        context = make(counts.with_estimates)
        if not counts.estimated_tokens:
            return context
        await counts.learn(engine)


def make_context(
    mode: Mode,
    case: Case,
    index: WorkspaceIndex,
    budget: int,
    count_tokens: TokenCounter,
    share: int | None = None,
) -> Context:
    """The context of a case in a mode, within ``budget`` tokens."""
    workspace = Workspace(index, share=share)
    shown = workspace.shown_path(case.file)
    document = Document(case.text, path=shown, language="python")
    if mode == "a":
        return assemble(document, case.offset, budget=budget, count_tokens=count_tokens)
    if mode == "b":
        files = {case.file, *(visit.file for visit in case.visits)}
        paths = {file: workspace.shown_path(file) for file in files}
        name = index.policy.folders[0].name
        return ring_context(case, paths, name, budget, count_tokens)
    for visit in case.visits:
        visited = document if visit.file == case.file else _open(visit.file)
        workspace.visited(visit.file, visited, visit.offset)
    return workspace.assemble(
        document, case.offset, path=case.file, budget=budget, count_tokens=count_tokens
    )


def _open(file: Path) -> Document:
    text = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    return Document(text, path=str(file), language="python")


async def _ask(engine: Engine, number: int, case: Case, mode: Mode, context: Context) -> Outcome:
    request = CompletionRequest(
        completion_prompt(context),
        max_tokens=_MOST_TOKENS[case.shape],
        stop=("\n",) if case.shape == "line" else (),
        document=f"bench {number} {mode}",
    )
    text, prompt_tokens = "", 0
    chunks = engine.complete(request)
    try:
        async for chunk in chunks:
            text += chunk.text
            if chunk.usage is not None:
                prompt_tokens = chunk.usage.prompt_tokens
            if text.strip().count("\n") >= case.lines:
                break
    finally:
        await chunks.aclose()
    expected, answer = normalised(case.expected, case.lines), normalised(text, case.lines)
    sections: dict[str, int] = {}
    for section in context.sections:
        sections[section.kind] = sections.get(section.kind, 0) + section.tokens
    return Outcome(
        number,
        mode,
        case.kind,
        case.shape,
        is_exact(expected, answer),
        edit_similarity(expected, answer),
        prompt_tokens or context.tokens,
        answer,
        expected,
        sections,
    )


def summaries(outcomes: Sequence[Outcome]) -> list[Summary]:
    """By kind and mode, in the order in which they first came."""
    groups: dict[tuple[str, Mode], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.kind, outcome.mode), []).append(outcome)
    return [
        Summary(
            kind,
            mode,
            len(group),
            sum(item.exact for item in group) / len(group),
            sum(item.similarity for item in group) / len(group),
            sum(item.prompt_tokens for item in group) / len(group),
        )
        for (kind, mode), group in groups.items()
    ]


def to_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, as plain data."""
    return {
        "summaries": [asdict(item) for item in summaries(outcomes)],
        "outcomes": [asdict(item) for item in outcomes],
    }
