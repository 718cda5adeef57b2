"""Budgets: what is counted exactly, what is estimated, and what a keystroke costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fimble.assist.completion import CompletionService
from fimble.assist.layout import LAYOUT_TOKENS
from fimble.assist.settings import CompletionSettings
from fimble.assist.tokens import TokenCounts
from fimble.engine.protocol import Text
from fimble_context.syntax import Document, Edit
from tests.support.scripted_engine import ScriptedEngine

SETTINGS = CompletionSettings(max_tokens=10, max_prompt_tokens=400)


def long_document(newline: str = "\n") -> tuple[Document, int]:
    """400 lines, the cursor in the middle."""
    lines = [f"value_{number} = compute({number})" for number in range(400)]
    text = newline.join(lines)
    return Document(text, path="a.py"), len(newline.join(lines[:200]))


def prompt_tokens(engine: ScriptedEngine) -> int:
    prompt = engine.requests[-1].prompt
    assert not isinstance(prompt, str)
    return LAYOUT_TOKENS + sum(engine.count(p.text) for p in prompt if isinstance(p, Text))


@pytest.mark.parametrize("bytes_a_token", [1, 2, 3, 6])
async def test_a_prompt_never_bursts_the_window(bytes_a_token: int) -> None:
    engine = ScriptedEngine([""], count=lambda text: -(-len(text.encode()) // bytes_a_token))
    engine.info = replace(engine.info, window=300)
    document, offset = long_document()
    await CompletionService(engine).complete(document, offset, SETTINGS)
    assert prompt_tokens(engine) + engine.requests[0].max_tokens <= 300
    assert len(engine.counted) <= 1


async def test_an_assembly_costs_one_round_trip_and_typing_costs_none() -> None:
    engine = ScriptedEngine([""])
    service = CompletionService(engine)
    document, offset = long_document()
    await service.complete(document, offset, SETTINGS)
    assert len(engine.counted) == 1
    for character in " + more":
        document.apply(Edit(offset, offset, character))
        offset += 1
        await service.complete(document, offset, SETTINGS)
    assert len(engine.counted) == 1


async def test_the_budget_is_used_and_kept() -> None:
    engine = ScriptedEngine([""])
    document, offset = long_document()
    suggestion = await CompletionService(engine).complete(document, offset, SETTINGS)
    used = sum(section.tokens for section in suggestion.context.sections)
    assert 350 <= used <= 400 == suggestion.context.budget_tokens
    assert suggestion.context.left_out


async def test_a_crlf_file_gives_the_same_prompt_as_its_lf_twin_when_it_is_cut() -> None:
    engine = ScriptedEngine([""])
    for newline in ("\n", "\r\n"):
        document, offset = long_document(newline)
        await CompletionService(engine).complete(document, offset, SETTINGS)
    assert engine.requests[0].prompt == engine.requests[1].prompt


async def test_counts_are_remembered_by_content_and_forgotten_in_order() -> None:
    engine = ScriptedEngine([""], count=lambda text: 7)
    counts = TokenCounts(capacity=2)
    assert counts.with_estimates(["abc", "é"]) == [1, 1]
    assert counts.at_most(["abc", "é"]) == [3, 2]
    await counts.learn(engine)
    assert counts.with_estimates(["abc", "é"]) == [7, 7]
    counts.begin()
    counts.with_estimates(["new"])
    await counts.learn(engine)
    assert counts.at_most(["abc", "é", "new"]) == [3, 7, 7]
    assert engine.counted == [["abc", "é"], ["new"]]
