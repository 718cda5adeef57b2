"""The scripted engine keeps the contract that its users' tests rely on."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from fimble.engine.protocol import CompletionRequest, Control, Text
from fimble.errors import EngineUnavailable
from tests.support.scripted_engine import Answer, ScriptedEngine, prompt_as_text


async def collect(engine: ScriptedEngine, request: CompletionRequest) -> tuple[str, str | None]:
    text, reason = "", None
    async for chunk in engine.complete(request):
        text += chunk.text
        reason = chunk.finish_reason or reason
    return text, reason


async def test_answers_in_order_and_repeats_the_last() -> None:
    engine = ScriptedEngine(["one", Answer("two", "length")], piece=2)
    answers = [await collect(engine, CompletionRequest(prompt=str(i))) for i in range(3)]
    assert answers == [("one", "stop"), ("two", "length"), ("two", "length")]
    assert [request.prompt for request in engine.requests] == ["0", "1", "2"]
    assert engine.cancelled == []


async def test_candidates_have_an_index_each() -> None:
    engine = ScriptedEngine([["a", "b"]])
    chunks = [chunk async for chunk in engine.complete(CompletionRequest(prompt="p", n=2))]
    assert [(chunk.index, chunk.text) for chunk in chunks if chunk.text] == [(0, "a"), (1, "b")]


async def test_closing_early_is_recorded_as_cancelled() -> None:
    engine = ScriptedEngine(["a long answer"], piece=1)
    request = CompletionRequest(prompt="p")
    async with contextlib.aclosing(engine.complete(request)) as chunks:
        async for _ in chunks:
            break
    assert engine.cancelled == [request]


async def test_a_cancelled_task_is_recorded_while_it_waits_at_the_gate() -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    task = asyncio.create_task(collect(engine, CompletionRequest(prompt="p")))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(engine.cancelled) == 1


async def test_an_exception_in_the_script_is_raised() -> None:
    engine = ScriptedEngine([EngineUnavailable("The engine ended.")])
    with pytest.raises(EngineUnavailable):
        await collect(engine, CompletionRequest(prompt="p"))
    assert engine.cancelled == []


def test_prompt_as_text_shows_control_tokens() -> None:
    assert prompt_as_text((Control("fim_prefix"), Text("a"))) == "<fim_prefix>a"
