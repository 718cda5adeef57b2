"""``textDocument/completion`` for editors without inline completion, and for no others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.wire import in_process
from tests.support.scripted_engine import ScriptedEngine

URI = "file:///p/a.py"
INLINE = {"textDocument": {"inlineCompletion": {"dynamicRegistration": False}}}


@pytest.mark.parametrize(("capabilities", "offered"), [({}, True), (INLINE, False)])
async def test_it_is_offered_only_where_there_is_no_better_way(
    capabilities: dict[str, Any], offered: bool
) -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        result = await session.wire.initialize(capabilities=capabilities)
        params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
        answer = await session.wire.answer(session.wire.ask("textDocument/completion", params))
    assert ("completionProvider" in result["capabilities"]) == offered
    assert ("result" in answer) == offered


async def test_an_item_replaces_the_word_and_begins_with_it() -> None:
    async with in_process(lambda model: ScriptedEngine(["ve(path)"])) as session:
        await session.wire.initialize()
        session.wire.open(URI, "os.remo\n")
        params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 7}}
        result = await session.wire.request("textDocument/completion", params)
    (item,) = result["items"]
    assert result["isIncomplete"]
    assert item["label"] == item["filterText"] == "remove(path)"
    assert item["textEdit"] == {
        "range": {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 7}},
        "newText": "remove(path)",
    }
    assert item["insertTextMode"] == 1  # as it is: no editor indents it once more


async def test_both_ways_share_what_is_remembered() -> None:
    engine = ScriptedEngine(["1"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        session.wire.open(URI, "x = \n")
        await session.wire.complete(URI, 0, 4)
        params = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 4}}
        result = await session.wire.request("textDocument/completion", params)
    assert [item["label"] for item in result["items"]] == ["1"]
    assert len(engine.requests) == 1
