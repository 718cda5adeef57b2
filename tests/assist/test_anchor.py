"""Anchored prompts: what a keystroke adds, and when a prompt is made anew."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from fimble.assist.anchor import MOST_LINES, MOST_TYPED
from fimble.engine.protocol import Control, Text
from tests.assist.typing import Typist, healing, middle, prefix, suffix
from tests.support.scripted_engine import Answer, ScriptedEngine

BELOW = "".join(f"line_{n} = {n}\n" for n in range(30))


def asked(typist: Typist) -> list[tuple[str, str, str]]:
    """Prefix, suffix and middle of each request."""
    return [(prefix(r), suffix(r), middle(r)) for r in typist.engine.requests]


async def test_typed_text_goes_behind_fim_middle_and_is_healed() -> None:
    typist = Typist(healing([""]), "a = 1\nx = f(│)\ny = 2\n")
    await typist.ask()
    (request,) = typist.engine.requests
    assert request.prompt == (
        Control("fim_prefix"),
        Text("a = 1\n"),
        Control("fim_suffix"),
        Text(")\ny = 2\n"),
        Control("fim_middle"),
        Text("x = f("),
    )
    assert request.heal


async def test_nothing_is_healed_at_the_start_of_a_line() -> None:
    typist = Typist(healing([""]), "a = 1\n│\n")
    await typist.ask()
    (request,) = typist.engine.requests
    assert not request.heal
    assert not isinstance(request.prompt, str)
    assert request.prompt[-1] == Control("fim_middle")


async def test_prefix_and_suffix_stay_while_the_user_types_on() -> None:
    typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}")
    for character in "for x in y:\n    print(x)\n    ":
        typist.type(character)
        await typist.ask()
    typist.delete(6)
    typist.type("\n\n")
    await typist.ask()
    requests = asked(typist)
    assert len({(before, after) for before, after, _ in requests}) == 1
    assert requests[-1][2] == "for x in y:\n    print(x\n\n"
    # What each keystroke adds to what the engine has: itself, less than a token's worth.
    middles = [middle for _, _, middle in requests]
    assert all(len(b) - len(a) <= 1 for a, b in pairwise(middles))


async def test_a_keystroke_counts_no_tokens() -> None:
    typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}", max_prompt_tokens=80)
    await typist.ask()
    counted = len(typist.engine.counted)
    for character in "some text":
        typist.type(character)
        await typist.ask()
    assert len(typist.engine.counted) == counted


async def test_brackets_closed_by_the_editor_leave_the_anchor() -> None:
    typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}")
    await typist.ask()
    typist.type("f(")
    typist.insert_elsewhere(typist.cursor, ")")
    typist.cursor -= 1
    await typist.ask()
    first, second = asked(typist)
    assert first[:2] == second[:2]
    assert second[2] == "f("


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_line_ends_and_a_byte_order_mark_make_no_difference(newline: str) -> None:
    source = f"\ufeffa = 1\n│\n{BELOW}".replace("\n", newline)
    typist = Typist(healing([""]), source)
    for text in ("if a:", newline, "    b"):
        typist.type(text)
        await typist.ask()
    assert {(before, after) for before, after, _ in asked(typist)} == {("a = 1\n", f"\n{BELOW}")}
    assert asked(typist)[-1][2] == "if a:\n    b"


async def new_anchor_after(typist: Typist) -> bool:
    await typist.ask()
    requests = asked(typist)
    return requests[-1][:2] != requests[0][:2]


async def test_a_new_anchor_when_the_cursor_leaves() -> None:
    typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}")
    await typist.ask()
    typist.cursor = len(typist.document.text) - 1
    assert await new_anchor_after(typist)


async def test_a_new_anchor_when_much_was_typed() -> None:
    typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}")
    await typist.ask()
    typist.type("x" * (MOST_TYPED + 1))
    assert await new_anchor_after(typist)


async def test_a_new_anchor_when_many_lines_were_begun() -> None:
    typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}")
    await typist.ask()
    typist.type("b()\n" * (MOST_LINES + 1))
    assert await new_anchor_after(typist)


async def test_a_new_anchor_when_the_text_around_was_edited() -> None:
    for at in (2, -10):
        typist = Typist(healing([""]), f"a = 1\n│\n{BELOW}")
        await typist.ask()
        typist.insert_elsewhere(at % len(typist.document.text), "new")
        assert await new_anchor_after(typist)


async def test_an_edit_outside_of_the_prompt_is_no_matter() -> None:
    far = "".join(f"far_{n} = {n}\n" for n in range(2000))
    typist = Typist(healing([""]), f"{far}│\n{far}", max_prompt_tokens=200)
    await typist.ask()
    typist.insert_elsewhere(0, "new = 1\n")
    typist.insert_elsewhere(len(typist.document.text), "new = 1\n")
    typist.type("x")
    await typist.ask()
    first, second = asked(typist)
    assert first[:2] == second[:2]
    assert second[2] == "x"


async def test_who_jumps_to_the_imports_and_back_finds_the_anchor_again() -> None:
    far = "".join(f"far_{n} = {n}\n" for n in range(2000))
    typist = Typist(healing([""]), f"{far}│\n{far}", max_prompt_tokens=200)
    await typist.ask()
    here, typist.cursor = typist.cursor, 0
    typist.type("import os\n")
    await typist.ask()
    typist.cursor = here + len("import os\n")
    typist.type("x")
    await typist.ask()
    first, elsewhere, back = asked(typist)
    assert first[:2] == back[:2] != elsewhere[:2]
    assert back[2] == "x"


async def test_a_new_anchor_after_a_long_suggestion_was_accepted() -> None:
    accepted = "b = 2\n" * (MOST_LINES // 2 + 1)
    typist = Typist(healing([Answer("")]), f"a = 1\n│\n{BELOW}")
    await typist.ask()
    typist.type(accepted)
    typist.service.accepted(typist.document, typist.cursor, typist.settings, name="a")
    assert await new_anchor_after(typist)


@pytest.mark.parametrize("missing", ["continuation", "healing"])
async def test_without_continuation_or_healing_the_prompt_is_plain(missing: str) -> None:
    engine = healing([""])
    info = engine.info
    engine.info = replace(
        info,
        continuation=info.continuation and missing != "continuation",
        healing=info.healing and missing != "healing",
    )
    typist = Typist(engine, "a = 1\nx = f(│)\n")
    await typist.ask()
    assert asked(typist) == [("a = 1\nx = f(", ")\n", "")]
    assert not engine.requests[0].heal


async def test_documents_have_an_anchor_each() -> None:
    engine: ScriptedEngine = healing([""])
    typist = Typist(engine, "a = 1\nx│\n")
    other = Typist(engine, "b = 1\ny│\n")
    await typist.ask()
    await typist.service.complete(other.document, other.cursor, other.settings, name="b")
    typist.type(" ")
    await typist.ask()
    assert [before for before, _, _ in asked(typist)] == ["a = 1\n", "b = 1\n", "a = 1\n"]
