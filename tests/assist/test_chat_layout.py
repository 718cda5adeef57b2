"""A model that can only chat completes as well: asked by a fall-back prompt, and marked so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fimble.assist.budget import budget_for
from fimble.assist.chat_layout import CHAT_LAYOUT_TOKENS, chat_prompt
from fimble.assist.completion import CompletionService
from fimble.assist.settings import CompletionSettings
from fimble.engine.protocol import CompletionRequest
from fimble_context.assembly import Context, Section
from tests.assist.places import at_mark
from tests.support.scripted_engine import Answer, ScriptedEngine

SETTINGS = CompletionSettings()


def chat_model(*answers: str | Answer, keeps: bool = True) -> ScriptedEngine:
    engine = ScriptedEngine(list(answers))
    engine.info = replace(
        engine.info, name="some-chat-model", fim=False, continuation=keeps, healing=keeps
    )
    return engine


def contents(request: CompletionRequest) -> list[str]:
    assert [each.role for each in request.messages] == ["system", "user", "assistant"]
    return [each.content for each in request.messages]


@pytest.mark.parametrize("keeps", [True, False])
async def test_it_sees_the_file_with_a_mark_and_its_answer_is_begun(keeps: bool) -> None:
    engine = chat_model("n a + b\n", keeps=keeps)
    document, offset = at_mark("def add(a, b):\n    retur│\n\n\nadd(1, 2)\n")
    suggestion = await CompletionService(engine).complete(document, offset, SETTINGS)
    (request,) = engine.requests
    _, asked, begun = contents(request)
    assert "```python\ndef add(a, b):\n<MISSING>\n\n\nadd(1, 2)\n```" in asked
    assert begun == "```python\n    retur"
    assert request.heal and request.prompt == () and "```" in request.stop
    assert suggestion.text == "n a + b"
    assert (suggestion.layout, suggestion.typed) == ("chat", "    retur")


async def test_a_coder_model_is_asked_as_before() -> None:
    engine = ScriptedEngine(["1"])
    document, offset = at_mark("x = │")
    suggestion = await CompletionService(engine).complete(document, offset, SETTINGS)
    assert suggestion.layout == "fim" and engine.requests[0].messages == ()


async def test_typing_on_leaves_the_question_as_it_was() -> None:
    engine = chat_model("", "")
    service = CompletionService(engine)
    for typed in ("re", "retu"):
        document, offset = at_mark(f"def f():\n    {typed}│\n")
        await service.complete(document, offset, SETTINGS, name="a")
    first, second = (contents(request) for request in engine.requests)
    assert first[:2] == second[:2]
    assert (first[2], second[2]) == ("```python\n    re", "```python\n    retu")


async def test_no_fence_and_no_mark_of_the_files_own_is_taken_for_ours() -> None:
    engine = chat_model("1")
    document, offset = at_mark('"""\n```\n<MISSING>\n```\n"""\nx = │\n')
    await CompletionService(engine).complete(document, offset, SETTINGS)
    (request,) = engine.requests
    _, asked, begun = contents(request)
    assert "<MISSING-2>\n````" in asked and "in place of <MISSING-2>" in asked
    assert begun.startswith("````python\n") and request.stop == ("````",)


async def test_alternatives_are_asked_for_in_the_same_way() -> None:
    engine = chat_model("1", "2")
    document, offset = at_mark("x = │\n")
    suggestion = await CompletionService(engine).complete(
        document, offset, replace(SETTINGS, candidates=2), invoked=True
    )
    assert suggestion.texts == ("1", "2")
    assert engine.requests[0].messages == engine.requests[1].messages != ()


async def test_its_words_count_as_much_as_is_reserved_for_them() -> None:
    sections = (
        Section("a.py", "prefix", "", 0, ""),
        Section("a.py", "suffix", "", 0, ""),
    )
    words = chat_prompt(Context(sections, 0), "", "python").messages
    engine = chat_model("")
    # Four bytes a token there; no tokenizer of a language model needs more tokens than bytes.
    counts = await engine.count_tokens([each.content for each in words])
    assert 2 * sum(counts) <= CHAT_LAYOUT_TOKENS
    fim = replace(engine.info, fim=True)
    rooms = [budget_for(info, SETTINGS).room for info in (fim, engine.info)]
    assert rooms[0] - rooms[1] == CHAT_LAYOUT_TOKENS - 3


async def test_one_that_does_not_go_on_with_a_begun_answer_is_asked_for_what_follows() -> None:
    """A server elsewhere, whose chat begins anew behind whatever the assistant said."""
    engine = chat_model("n a + b\n", keeps=False)
    engine.info = replace(engine.info, goes_on=False)
    document, offset = at_mark("def add(a, b):\n    retur│\n\n\nadd(1, 2)\n")
    suggestion = await CompletionService(engine).complete(document, offset, SETTINGS)
    (request,) = engine.requests
    assert request.messages == () and request.prompt
    assert (suggestion.layout, suggestion.text) == ("fim", "n a + b")
