"""What is remembered costs no call of the model: typing through, deleting back, accepting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from fimble.assist.memory import Memory
from fimble.assist.place import place_of
from fimble.engine.protocol import CompletionChunk, CompletionRequest
from tests.assist.places import at_mark
from tests.assist.typing import Typist
from tests.support.scripted_engine import Answer, ScriptedEngine

FAR = "# far away\n" * 200


async def test_typing_through_a_suggestion_costs_no_call() -> None:
    typist = Typist(ScriptedEngine(["compute(value)"]), "x = │\n")
    text = await typist.ask()
    for character in "compute(value":
        typist.type(character)
        text = text[1:]
        assert await typist.ask() == text
        assert typist.last is not None
        assert typist.last.remembered
        assert typist.last.usage.computed_tokens == 0
    assert typist.calls == 1


async def test_deleting_back_into_it_costs_no_call() -> None:
    typist = Typist(ScriptedEngine(["compute(value)"]), "x = │\n")
    await typist.ask()
    typist.type("compute(v")
    typist.delete(6)
    assert await typist.ask() == "pute(value)"
    typist.delete(3)
    assert await typist.ask() == "compute(value)"
    assert typist.calls == 1


async def test_typing_something_else_asks_again() -> None:
    typist = Typist(ScriptedEngine(["compute(value)", "nfused"]), "x = │\n")
    await typist.ask()
    typist.type("co")
    assert await typist.ask() == "mpute(value)"
    typist.type("nf")
    assert await typist.ask() == "nfused"
    assert typist.calls == 2
    # Going back to what was suggested first finds it again.
    typist.delete(2)
    assert await typist.ask() == "mpute(value)"
    assert typist.calls == 2


async def test_accepting_word_by_word_costs_no_call() -> None:
    typist = Typist(ScriptedEngine(["first second third"]), "# │\n")
    await typist.ask()
    for word in ("first ", "second "):
        typist.type(word)
        await typist.ask()
    assert await typist.ask() == "third"
    assert typist.calls == 1


async def test_accepting_line_by_line_costs_no_call() -> None:
    typist = Typist(ScriptedEngine(["a = 1\n    b = 2\n    return a\n\n\nc"]), "def f():\n    │\n")
    assert await typist.ask() == "a = 1\n    b = 2\n    return a"
    typist.type("a = 1")
    assert await typist.ask() == "\n    b = 2"
    typist.type("\n    b = 2")
    assert await typist.ask() == "\n    return a"
    assert typist.calls == 1


async def test_the_line_end_may_be_typed_with_more_indentation_by_the_editor() -> None:
    typist = Typist(ScriptedEngine(["a = 1\n    return a\n\n\nb"]), "def f():\n    │\n")
    await typist.ask()
    typist.type("a = 1")
    typist.type("\n    ")
    assert await typist.ask() == "return a"
    assert typist.calls == 1


async def test_brackets_that_the_editor_closes_are_no_change() -> None:
    typist = Typist(ScriptedEngine(["print(len(x))"]), "│\n")
    await typist.ask()
    typist.type("print(")
    typist.insert_elsewhere(typist.cursor, ")")
    typist.cursor -= 1
    assert await typist.ask() == "len(x)"
    assert typist.calls == 1


async def test_edits_far_away_and_a_moved_cursor_leave_it_valid() -> None:
    typist = Typist(ScriptedEngine(["compute()"]), f"{FAR}x = │\n{FAR}")
    await typist.ask()
    typist.insert_elsewhere(0, "# one more line\n")
    typist.insert_elsewhere(len(typist.document.text), "# and one below\n")
    assert await typist.ask() == "compute()"
    here, typist.cursor = typist.cursor, 3
    await typist.ask()
    typist.cursor = here
    assert await typist.ask() == "compute()"
    assert typist.calls == 2


async def test_edits_near_the_cursor_ask_again() -> None:
    typist = Typist(ScriptedEngine(["one", "two", "three"]), "a = 1\nx = │\ny = 2\n")
    assert await typist.ask() == "one"
    typist.insert_elsewhere(0, "b")
    assert await typist.ask() == "two"
    typist.insert_elsewhere(len(typist.document.text) - 1, "3")
    assert await typist.ask() == "three"


async def test_the_start_of_a_document_is_not_any_place() -> None:
    typist = Typist(ScriptedEngine(["import os", "1"]), "│")
    assert await typist.ask() == "import os"
    typist.type("y = ")
    assert await typist.ask() == "1"


async def test_that_there_is_nothing_to_say_is_remembered_too() -> None:
    typist = Typist(ScriptedEngine([""]), "x = 1│\n")
    assert [await typist.ask() for _ in range(3)] == ["", "", ""]
    assert typist.calls == 1


async def test_a_statement_of_one_line_is_shown_before_the_next_line_is_known() -> None:
    source = "def f():\n    z = 0\n    │\n    return z\n"
    engine = ScriptedEngine(["a = 1\n    b = 2\n"], piece=1, gate=asyncio.Event())
    typist = Typist(engine, source)
    asking = asyncio.create_task(typist.ask())
    assert engine.gate is not None
    engine.gate.set()
    assert await asking == "a = 1"
    assert typist.last is not None
    # "a = 1" and its line end, and nothing of the next line.
    assert typist.last.usage.completion_tokens == engine.count("a = 1\n")


async def test_the_rest_of_a_block_is_there_when_its_first_line_was_accepted() -> None:
    engine = ScriptedEngine(["f(self):\n    a()\n    b()\n\n\nc()"], piece=4, delay=0.001)
    typist = Typist(engine, "def │\n")
    assert await typist.ask() == "f(self):"
    typist.type("f(self):")
    assert await typist.ask() == "\n    a()\n    b()"
    assert typist.calls == 1


async def typing_on(typed: str) -> tuple[Typist, str]:
    """Types while an answer is made of which "comp" has come, and asks again."""
    going, rest = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedEngine):
        async def complete(
            self, request: CompletionRequest
        ) -> AsyncGenerator[CompletionChunk, None]:
            async for chunk in super().complete(request):
                yield chunk
                going.set()
                await rest.wait()

    typist = Typist(Slow(["compute(value)", "nfused"], piece=4), "x = │\n")
    first = asyncio.create_task(typist.ask())
    await going.wait()
    typist.type(typed)
    typist.service.keep(typist.document, typist.cursor, typist.settings, name="a")
    first.cancel()
    second = asyncio.create_task(typist.ask())
    await asyncio.sleep(0.01)
    rest.set()
    return typist, await second


async def test_typing_on_in_what_is_being_made_asks_no_one_else() -> None:
    typist, text = await typing_on("com")
    assert text == "pute(value)"
    assert typist.calls == 1
    assert not typist.engine.cancelled


async def test_typing_something_else_ends_what_is_being_made() -> None:
    typist, text = await typing_on("co")
    assert text == "mpute(value)"
    typist, text = await typing_on("con")
    assert text == "nfused"
    assert typist.engine.cancelled == typist.engine.requests[:1]


async def test_typing_ahead_of_what_is_being_made_waits_for_it() -> None:
    typist, text = await typing_on("compute(v")
    assert text == "alue)"
    assert typist.calls == 1
    assert not typist.engine.cancelled


async def test_what_was_typed_ahead_may_turn_out_to_be_something_else() -> None:
    typist, text = await typing_on("compass = ")
    assert text == "nfused"
    assert typist.calls == 2
    assert typist.engine.cancelled == typist.engine.requests[:1]


async def test_nobody_waits_for_what_is_far_behind() -> None:
    typist, text = await typing_on("compute(value) + compute(v")
    assert text == "nfused"
    assert typist.calls == 2


async def test_a_fragment_is_not_remembered() -> None:
    typist = Typist(ScriptedEngine([Answer("half an ans", "cancelled"), "whole"]), "x = │\n")
    assert await typist.ask() == ""
    assert await typist.ask() == "whole"


async def test_it_is_bounded_and_forgets_the_oldest() -> None:
    typist = Typist(ScriptedEngine(["1"]), "x = │\n")
    await typist.ask()
    memory = Memory(capacity=2)
    assert typist.last is not None
    found = Memory().add("a", place_of(typist.document, 0), typist.service._growing["a"])
    answer = found.answer
    places = [place_of(*at_mark(f"{name} = │\n")) for name in "abc"]
    for place in places:
        memory.add("a", place, answer)
    assert [memory.find("a", place) is not None for place in places] == [False, True, True]
