"""Real code, masked, filled in by the real model from prompts made in several ways.

Modes by what is in a prompt: ``a`` is prefix and suffix only, ``b`` a ring of chunks (see
``ring``), ``c`` ours. All three are laid out as the server does it where the model can go on
from a prompt: the line up to the cursor behind the suffix, its end healed. Their answers are
taken raw.

Modes by layout: ``plain``, ``anchored`` and ``healed`` (see ``layouts``), with what ``c`` has in
it. They are suggestions as the server would show them.

All get the same cases, the same token budget, counted by the model's own tokenizer, and the same
visits to other files. Answers are drawn without chance (temperature 0).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from fimble.assist.layout import LAYOUT_TOKENS, completion_prompt, prompt_text
from fimble.assist.tokens import TokenCounts
from fimble.bench.cases import Case, Shape, draw_cases, open_document
from fimble.bench.confidence import lowest_confidence
from fimble.bench.layouts import LAYOUTS, Layout, suggest
from fimble.bench.ring import ring_context
from fimble.bench.score import compared, edit_similarity, is_exact, normalised
from fimble.engine.base import Engine
from fimble.engine.protocol import CompletionRequest, Segment, Text
from fimble_context.assembly import Context, TokenCounter, Workspace, assemble
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import Document

__all__ = [
    "CONTEXT_MODES",
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

Mode = Literal["a", "b", "c", "plain", "anchored", "healed"]
CONTEXT_MODES: tuple[Mode, ...] = ("a", "b", "c")
MODES: tuple[Mode, ...] = (*CONTEXT_MODES, *LAYOUTS)
_MOST_TOKENS: dict[Shape, int] = {"rest": 64, "line": 64, "block": 192}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One case in one mode. ``prompt_tokens`` is what the prompt had.

    ``exact`` says whether the answer is what was there: in modes by layout as far as both go,
    since a suggestion may be a part of it. Those modes alone have the rest: ``confidence`` is the
    mean probability of a token of what is shown, ``lowest`` the lowest on the way, ``logprobs``
    are the log-probabilities of the tokens of the first line, in order.
    """

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
    language: str = "python"
    position: str = ""
    confidence: float | None = None
    lowest: float | None = None
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """Cases of a kind in one mode: all, or those of one ``shape``, at one ``position`` or in one
    ``language``.

    Means; ``exact`` and ``similarity`` up to 1.
    """

    kind: str
    mode: Mode
    cases: int
    exact: float
    similarity: float
    prompt_tokens: float
    position: str = ""
    language: str = ""
    shape: str = ""


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
            if mode in LAYOUTS:
                outcome = await _suggested(engine, number, case, mode, index, budget, share)
                outcomes.append(outcome)
                each(outcome)
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
    document = _document(case, workspace)
    if mode == "a":
        return assemble(document, case.offset, budget=budget, count_tokens=count_tokens)
    if mode == "b":
        files = {case.file, *(visit.file for visit in case.visits)}
        paths = {file: workspace.shown_path(file) for file in files}
        name = index.policy.folders[0].name
        return ring_context(case, paths, name, budget, count_tokens)
    _visit(case, workspace, document)
    return workspace.assemble(
        document, case.offset, path=case.file, budget=budget, count_tokens=count_tokens
    )


def _document(case: Case, workspace: Workspace) -> Document:
    return Document(case.text, path=workspace.shown_path(case.file))


def _visit(case: Case, workspace: Workspace, document: Document) -> None:
    """Tells the workspace where the user was."""
    for visit in case.visits:
        visited = document if visit.file == case.file else open_document(visit.file)
        workspace.visited(visit.file, visited, visit.offset)


async def _suggested(
    engine: Engine, number: int, case: Case, layout: Layout, index: WorkspaceIndex, budget: int,
    share: int | None,
) -> Outcome:  # fmt: skip
    workspace = Workspace(index, share=share)
    document = _document(case, workspace)
    _visit(case, workspace, document)

    def assemble(document: Document, offset: int, budget: int, count: TokenCounter) -> Context:
        return workspace.assemble(
            document, offset, path=case.file, budget=budget, count_tokens=count
        )

    answered = await suggest(
        engine, layout, document, case.offset, assemble,
        budget=budget, max_tokens=_MOST_TOKENS[case.shape],
    )  # fmt: skip
    suggestion = answered.suggestion
    expected, answer = compared(case.expected, suggestion.text)
    lowest = lowest_confidence(answered.steps) if suggestion.text.strip() else None
    return Outcome(
        number,
        layout,
        case.kind,
        case.shape,
        is_exact(expected, answer),
        edit_similarity(expected, answer),
        answered.prompt_tokens or suggestion.context.tokens,
        suggestion.text,
        case.expected,
        _tokens_by_kind(suggestion.context),
        case.language,
        case.position,
        suggestion.confidence,
        lowest,
        answered.logprobs,
    )


async def _ask(engine: Engine, number: int, case: Case, mode: Mode, context: Context) -> Outcome:
    info = await engine.model_info()
    prompt, typed = completion_prompt(context), ""
    if info.continuation and info.healing:
        prompt, typed = _typed_behind(context)
    request = CompletionRequest(
        prompt,
        max_tokens=_MOST_TOKENS[case.shape],
        stop=() if case.shape == "block" else ("\n",),
        document=f"bench {os.getpid()} {number} {mode}",
        heal=bool(typed),
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
        _tokens_by_kind(context),
        case.language,
        case.position,
    )


def _typed_behind(context: Context) -> tuple[tuple[Segment, ...], str]:
    """The prompt with the cursor's line, as far as it is typed, behind it; and that text."""
    sections = list(context.sections)
    number = next(n for n, section in enumerate(sections) if section.kind == "prefix")
    above, end, typed = sections[number].text.rpartition("\n")
    sections[number] = replace(sections[number], text=above + end)
    segments = completion_prompt(replace(context, sections=tuple(sections)))
    return (*segments, Text(prompt_text(typed))) if typed else segments, typed


def _tokens_by_kind(context: Context) -> dict[str, int]:
    sections: dict[str, int] = {}
    for section in context.sections:
        sections[section.kind] = sections.get(section.kind, 0) + section.tokens
    return sections


def summaries(outcomes: Sequence[Outcome]) -> list[Summary]:
    """By kind and mode, in the order in which they first came; then, within a kind, by shape,
    by the cursor's position and by language, where there are several.
    """
    kinds = dict.fromkeys(item.kind for item in outcomes)
    return [summary for kind in kinds for summary in _of_kind(outcomes, kind)]


def _of_kind(outcomes: Sequence[Outcome], kind: str) -> list[Summary]:
    here = [item for item in outcomes if item.kind == kind]
    rows: list[dict[str, str]] = [{}]
    for part in ("shape", "position", "language"):
        values = dict.fromkeys(str(getattr(item, part)) for item in here)
        rows += [{part: value} for value in values] if len(values) > 1 else []
    return [
        _summary(group, mode, row)
        for row in rows
        for mode in dict.fromkeys(item.mode for item in here)
        if (
            group := [
                item
                for item in here
                if item.mode == mode
                and all(getattr(item, part) == value for part, value in row.items())
            ]
        )
    ]


def _summary(group: Sequence[Outcome], mode: Mode, row: dict[str, str]) -> Summary:
    return Summary(
        group[0].kind,
        mode,
        len(group),
        sum(item.exact for item in group) / len(group),
        sum(item.similarity for item in group) / len(group),
        sum(item.prompt_tokens for item in group) / len(group),
        **row,
    )


def to_json(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, as plain data."""
    return {
        "summaries": [asdict(item) for item in summaries(outcomes)],
        "outcomes": [asdict(item) for item in outcomes],
    }
