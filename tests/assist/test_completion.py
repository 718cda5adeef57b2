"""Prompts and suggestions: source with a cursor mark, and what is made of it."""

from __future__ import annotations

import asyncio

import pytest

from fimble.assist.completion import CompletionService
from fimble.assist.layout import LAYOUT_TOKENS, completion_prompt
from fimble.assist.settings import CompletionSettings
from fimble.engine.protocol import Control, Text
from fimble.errors import EngineUnavailable
from fimble_context.assembly import Context, Section
from tests.assist.places import at_mark
from tests.support.scripted_engine import Answer, ScriptedEngine, prompt_as_text

#: what it shows, source, prompt, answer, insertion
FIXTURES = {
    "a function's body": (
        "def add(a, b):\n    │\n",
        "<fim_prefix>def add(a, b):\n    <fim_suffix>\n<fim_middle>",
        "return a + b",
        "return a + b",
    ),
    "an empty file": (
        "│",
        "<fim_prefix><fim_suffix><fim_middle>",
        "import os",
        "import os",
    ),
    "no final newline": (
        "x = 1\ny = │",
        "<fim_prefix>x = 1\ny = <fim_suffix><fim_middle>",
        "2",
        "2",
    ),
    "inside a line: one line only": (
        "total = sum(│)\n",
        "<fim_prefix>total = sum(<fim_suffix>)\n<fim_middle>",
        "values\nprint(total)",
        "values",
    ),
    "the prompt of a CRLF file is that of the LF file, the insertion has CRLF": (
        "if a:\r\n    │\r\nc()\r\n",
        "<fim_prefix>if a:\n    <fim_suffix>\nc()\n<fim_middle>",
        "d()\n    e()",
        "d()\r\n    e()",
    ),
    "control tokens in the file stay text": (
        "MARK = '<|fim_middle|>'\nx = │\n",
        "<fim_prefix>MARK = '<|fim_middle|>'\nx = <fim_suffix>\n<fim_middle>",
        "MARK",
        "MARK",
    ),
    "characters outside the basic plane": (
        's = "µ漢😀│"\n',
        '<fim_prefix>s = "µ漢😀<fim_suffix>"\n<fim_middle>',
        "é😀",
        "é😀",
    ),
    "half a surrogate pair cannot break a prompt": (
        "# \ud83d\nx = │\n",
        "<fim_prefix># \ufffd\nx = <fim_suffix>\n<fim_middle>",
        "1",
        "1",
    ),
}


@pytest.mark.parametrize("name", FIXTURES)
async def test_prompt_and_insertion(name: str) -> None:
    source, prompt, answer, insertion = FIXTURES[name]
    engine = ScriptedEngine([answer])
    document, offset = at_mark(source)
    suggestion = await CompletionService(engine).complete(document, offset, CompletionSettings())
    assert prompt_as_text(engine.requests[0].prompt) == prompt
    assert suggestion.text == insertion
    assert (suggestion.start, suggestion.end) == (offset, offset)


async def test_only_layout_puts_control_tokens_into_a_prompt() -> None:
    engine = ScriptedEngine([""])
    document, offset = at_mark("a = '<|fim_suffix|>'\n│")
    await CompletionService(engine).complete(document, offset, CompletionSettings())
    prompt = engine.requests[0].prompt
    assert prompt == (
        Control("fim_prefix"),
        Text("a = '<|fim_suffix|>'\n"),
        Control("fim_suffix"),
        Text(""),
        Control("fim_middle"),
    )


async def test_a_suggestion_says_what_it_cost_and_who_made_it() -> None:
    engine = ScriptedEngine([Answer("1", finish_reason="length", reused_tokens=2)])
    document, offset = at_mark("some_name = │\n")
    suggestion = await CompletionService(engine).complete(document, offset, CompletionSettings())
    usage = suggestion.usage
    assert (usage.reused_tokens, usage.completion_tokens) == (2, 1)
    assert usage.prompt_tokens == usage.reused_tokens + usage.computed_tokens > 2
    assert (suggestion.model, suggestion.provider) == ("scripted", "none")
    assert suggestion.finish == "length"
    assert [section.kind for section in suggestion.context.sections] == ["prefix", "suffix"]


async def test_one_line_is_asked_for_where_one_line_fits() -> None:
    engine = ScriptedEngine(["x"])
    service = CompletionService(engine)
    for source in ("f(│)\n", "f(│\n"):
        await service.complete(*at_mark(source), CompletionSettings(max_tokens=7))
    assert [request.stop for request in engine.requests] == [("\n",), ()]
    assert {request.max_tokens for request in engine.requests} == {7}


async def test_the_engine_is_stopped_where_the_block_ends() -> None:
    engine = ScriptedEngine(["return 1\n\n\ndef g():\n    return 2\n" * 5], piece=4)
    document, offset = at_mark("def f():\n    │\n")
    suggestion = await CompletionService(engine).complete(document, offset, CompletionSettings())
    assert suggestion.text == "return 1"
    assert engine.cancelled == engine.requests


async def test_cancelling_reaches_the_engine() -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    document, offset = at_mark("│")
    task = asyncio.create_task(
        CompletionService(engine).complete(document, offset, CompletionSettings())
    )
    while not engine.requests:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.cancelled == engine.requests


async def test_a_fragment_of_an_answer_is_no_suggestion() -> None:
    """The engine ends an older request when a newer one of the same document comes."""
    engine = ScriptedEngine([Answer("half an ans", finish_reason="cancelled")])
    document, offset = at_mark("x = │")
    suggestion = await CompletionService(engine).complete(document, offset, CompletionSettings())
    assert suggestion.text == ""


async def test_an_engine_error_comes_through() -> None:
    engine = ScriptedEngine([EngineUnavailable("The engine ended.")])
    document, offset = at_mark("│")
    with pytest.raises(EngineUnavailable):
        await CompletionService(engine).complete(document, offset, CompletionSettings())


def test_what_is_not_the_suffix_stands_in_front_of_the_prefix() -> None:
    kinds = ("skeleton", "import os\n\r\n"), ("prefix", "x = "), ("suffix", "\r\n")
    sections = tuple(Section("a.py", kind, "", 1, text) for kind, text in kinds)
    prompt = completion_prompt(Context(sections, 10, ()))
    assert prompt_as_text(prompt) == ("<fim_prefix>import os\n\nx = <fim_suffix>\n<fim_middle>")
    assert sum(isinstance(part, Control) for part in prompt) == LAYOUT_TOKENS
