"""``fimble/apply``: a block of an answer becomes the smallest edit, or a reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.wire import Wire, in_process
from tests.support.scripted_engine import ScriptedEngine

URI = "file:///p/a.py"
TEXT = "x = '🙂'\r\n\r\n\r\ndef f(n):\r\n    # n is a number\r\n    return n - 1\r\n"
#: What an editor says that takes versioned and annotated changes.
ABLE: dict[str, Any] = {
    "workspace": {
        "workspaceEdit": {
            "documentChanges": True,
            "changeAnnotationSupport": {"groupsOnLabel": True},
        }
    }
}
ANSWER = "So:\n```python\ndef f(n):\n    # n is a number\n    return n + 1\n```\n"


def applied(text: str, edit: dict[str, Any]) -> str:
    """The text after the edits of one document; no line here has an astral character."""
    (change,) = edit["documentChanges"]
    lines = text.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    for each in sorted(change["edits"], key=lambda e: -starts[e["range"]["start"]["line"]]):
        ends = [starts[each["range"][end]["line"]] + each["range"][end]["character"]
                for end in ("start", "end")]  # fmt: skip
        text = text[: ends[0]] + each["newText"] + text[ends[1] :]
    return text


async def asked(wire: Wire) -> dict[str, Any]:
    """The block of an answer about the function."""
    span = {"start": {"line": 3, "character": 0}, "end": {"line": 5, "character": 16}}
    attachment = {"kind": "selection", "uri": URI, "range": span}
    result = await wire.request(
        "fimble/chat", {"message": "Add one instead.", "attachments": [attachment]}
    )
    (block,) = result["blocks"]
    return {name: block[name] for name in ("uri", "range", "version", "text")}


async def test_a_block_becomes_the_smallest_edit() -> None:
    async with in_process(lambda model: ScriptedEngine([ANSWER])) as session:
        await session.wire.initialize(capabilities=ABLE)
        session.wire.open(URI, TEXT)
        result = await session.wire.request("fimble/apply", await asked(session.wire))
    (change,) = result["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert [edit["newText"] for edit in change["edits"]] == ["+"]
    assert applied(TEXT, result["edit"]) == TEXT.replace("n - 1", "n + 1")


@pytest.mark.parametrize("confirm", [True, False])
async def test_it_is_annotated_and_confirmed_as_an_action_is(confirm: bool) -> None:
    options = {"edit": {"confirm": confirm}}
    async with in_process(lambda model: ScriptedEngine([ANSWER])) as session:
        await session.wire.initialize(capabilities=ABLE, initializationOptions=options)
        session.wire.open(URI, TEXT)
        result = await session.wire.request("fimble/apply", await asked(session.wire))
    (change,) = result["edit"]["documentChanges"]
    assert {edit["annotationId"] for edit in change["edits"]} == {"fimble"}
    annotation = result["edit"]["changeAnnotations"]["fimble"]
    assert annotation == {"label": "Change lines 4 to 6", "needsConfirmation": confirm}


async def test_an_editor_without_anything_gets_plain_changes() -> None:
    async with in_process(lambda model: ScriptedEngine([ANSWER])) as session:
        await session.wire.initialize()
        session.wire.open(URI, TEXT)
        result = await session.wire.request("fimble/apply", await asked(session.wire))
    assert set(result["edit"]) == {"changes"} and set(result["edit"]["changes"]) == {URI}


async def test_without_a_range_it_takes_the_place_of_what_it_defines() -> None:
    """As for a file that was mentioned and not open when the answer came."""
    async with in_process(lambda model: ScriptedEngine([ANSWER])) as session:
        await session.wire.initialize(capabilities=ABLE)
        session.wire.open(URI, TEXT)
        params = {"uri": URI, "text": "def f(n):\n    # n is a number\n    return n + 1"}
        result = await session.wire.request("fimble/apply", params)
    assert applied(TEXT, result["edit"]) == TEXT.replace("n - 1", "n + 1")
    assert result["about"] == "Change f"


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"range": None, "text": "print(f(1))"}, "lost"),
        ({"text": "def f(n:\n    return (\n"}, "syntax"),
        ({"text": "  \n"}, "empty"),
        ({"text": "def f(n):\n    # n is a number\n    return n - 1"}, "unchanged"),
        ({"version": 0}, "moved"),
        ({"uri": "file:///p/other.py"}, "closed"),
    ],
)
async def test_what_cannot_be_applied_is_refused_by_name(change: dict[str, Any], name: str) -> None:
    async with in_process(lambda model: ScriptedEngine([ANSWER])) as session:
        await session.wire.initialize()
        session.wire.open(URI, TEXT)
        params = {**await asked(session.wire), **change}
        error = (await session.wire.answer(session.wire.ask("fimble/apply", params)))["error"]
    assert (error["code"], error["data"]["name"]) == (-32803, name)
    assert error["message"]


@pytest.mark.parametrize("change", [{"uri": 5}, {"text": None}, {"range": 5}, {"range": []}])
async def test_parameters_that_cannot_be_meant(change: dict[str, Any]) -> None:
    async with in_process(lambda model: ScriptedEngine([ANSWER])) as session:
        await session.wire.initialize()
        session.wire.open(URI, TEXT)
        params = {**await asked(session.wire), **change}
        error = (await session.wire.answer(session.wire.ask("fimble/apply", params)))["error"]
    assert error["code"] == -32602
