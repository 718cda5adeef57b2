"""Notebooks: the other code cells are prefix and suffix, whatever happens to the cells."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.lsp.debounce import Debounce
from fimble.lsp.joined import SEPARATOR, Joined
from fimble_context.syntax import Document, Edit
from fimble_context.syntax.tree import SyntaxTree
from tests.lsp.wire import Wire, in_process
from tests.support.scripted_engine import ScriptedEngine, prompt_as_text

NOTEBOOK = "file:///p/n.ipynb"


def cell(name: str, kind: int = 2) -> dict[str, Any]:
    return {"kind": kind, "document": f"vscode-notebook-cell:/p/n.ipynb#{name}"}


def text(name: str, source: str, language: str = "python") -> dict[str, Any]:
    uri = cell(name)["document"]
    return {"uri": uri, "languageId": language, "version": 1, "text": source}


def open_notebook(wire: Wire) -> None:
    cells = [cell("a"), cell("m", kind=1), cell("b")]
    texts = [text("a", "import os"), text("m", "# A title", "markdown"), text("b", "x = os.")]
    notebook = {"uri": NOTEBOOK, "notebookType": "jupyter", "version": 1, "cells": cells}
    wire.notify(
        "notebookDocument/didOpen", {"notebookDocument": notebook, "cellTextDocuments": texts}
    )


def change(wire: Wire, version: int, **cells: Any) -> None:
    document = {"uri": NOTEBOOK, "version": version}
    wire.notify(
        "notebookDocument/didChange", {"notebookDocument": document, "change": {"cells": cells}}
    )


def last_prompt(engine: ScriptedEngine) -> str:
    return prompt_as_text(engine.requests[-1].prompt)


async def test_the_code_cells_above_are_the_prefix() -> None:
    engine = ScriptedEngine(["path"])
    async with in_process(lambda model: engine) as session:
        capability = {"synchronization": {"dynamicRegistration": False}}
        result = await session.wire.initialize(capabilities={"notebookDocument": capability})
        assert result["capabilities"]["notebookDocumentSync"]["notebookSelector"]
        open_notebook(session.wire)
        (item,) = await session.wire.complete(cell("b")["document"], 0, 7)
    assert last_prompt(engine) == "<fim_prefix>import os\n\nx = os.<fim_suffix><fim_middle>"
    place = {"line": 0, "character": 7}
    assert item["range"] == {"start": place, "end": place}


async def test_cells_are_edited_added_and_removed() -> None:
    engine = ScriptedEngine([""])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        open_notebook(wire)
        start = {"line": 0, "character": 0}
        edit = {"range": {"start": start, "end": start}, "text": "import re\n"}
        versioned = {"uri": cell("a")["document"], "version": 2}
        change(wire, 2, textContent=[{"document": versioned, "changes": [edit]}])
        await wire.complete(cell("b")["document"], 0, 7)
        assert last_prompt(engine).startswith("<fim_prefix>import re\nimport os\n\nx = os.")
        array = {"start": 0, "deleteCount": 1, "cells": [cell("c")]}
        structure = {
            "array": array,
            "didOpen": [text("c", "import sys")],
            "didClose": [{"uri": cell("a")["document"]}],
        }
        change(wire, 3, structure=structure)
        await wire.complete(cell("b")["document"], 0, 7)
        assert last_prompt(engine).startswith("<fim_prefix>import sys\n\nx = os.")


async def test_a_closed_notebook_is_closed_with_its_cells() -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        open_notebook(wire)
        cells = [{"uri": cell(name)["document"]} for name in "amb"]
        wire.notify(
            "notebookDocument/didClose",
            {"notebookDocument": {"uri": NOTEBOOK}, "cellTextDocuments": cells},
        )
        assert await wire.complete(cell("b")["document"], 0, 7) == []
    assert not engine.requests


def insert(character: int, text: str) -> dict[str, Any]:
    place = {"line": 0, "character": character}
    return {"range": {"start": place, "end": place}, "text": text}


async def test_the_code_cells_below_are_the_suffix() -> None:
    engine = ScriptedEngine(["path"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        open_notebook(session.wire)
        (item,) = await session.wire.complete(cell("a")["document"], 0, 9)
    assert last_prompt(engine) == "<fim_prefix>import os<fim_suffix>\n\nx = os.<fim_middle>"
    place = {"line": 0, "character": 9}
    assert item["range"] == {"start": place, "end": place}


async def test_a_cell_that_is_no_code_stands_for_itself() -> None:
    engine = ScriptedEngine(["!"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        open_notebook(session.wire)
        await session.wire.complete(cell("m")["document"], 0, 9)
    assert last_prompt(engine) == "<fim_prefix># A title<fim_suffix><fim_middle>"


async def test_a_key_in_a_cell_parses_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: parses of the notebook's code without an older tree to go on from."""
    anew: list[int] = []
    parse = SyntaxTree._parse

    def counted(tree: SyntaxTree, parser: Any, old: Any, seconds: float) -> Any:
        if old is None and len(tree.source) > 100:
            anew.append(len(tree.source))
        return parse(tree, parser, old, seconds)

    monkeypatch.setattr(SyntaxTree, "_parse", counted)
    engine = ScriptedEngine(lambda request: f"v{len(engine.requests)}")
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"ahead": False}})
        open_notebook(wire)
        long = "def f():\n    return 1\n\n\n" * 50
        array = {"start": 0, "deleteCount": 0, "cells": [cell("c")]}
        change(wire, 2, structure={"array": array, "didOpen": [text("c", long)]})
        uri = cell("b")["document"]
        await wire.complete(uri, 0, 7)
        first = len(anew)
        for number in range(5):
            versioned = {"uri": uri, "version": 2 + number}
            key = insert(7 + number, "q")
            change(wire, 3 + number, textContent=[{"document": versioned, "changes": [key]}])
            await wire.complete(uri, 0, 8 + number)
        # Another cell in front: one edit of what there is.
        array = {"start": 0, "deleteCount": 0, "cells": [cell("d")]}
        change(wire, 9, structure={"array": array, "didOpen": [text("d", "import re")]})
        versioned = {"uri": uri, "version": 7}
        change(wire, 10, textContent=[{"document": versioned, "changes": [insert(12, "z")]}])
        await wire.complete(uri, 0, 13)
        assert last_prompt(engine).startswith("<fim_prefix>import re\n\ndef f():")
        assert len(engine.requests) == 7
    assert first == 1
    assert len(anew) == first


async def test_an_edit_above_while_somebody_waits_moves_no_suggestion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other cell is no reason to end the request, and its text must not shift it."""
    monkeypatch.setattr(Debounce, "delay", lambda debounce: 0.05)
    engine = ScriptedEngine(["path"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        open_notebook(wire)
        uri = cell("b")["document"]
        request = wire.ask_completion(uri, 0, 7)
        await wire.until(lambda: session.server.suggestions.is_under_way(uri))
        assert not engine.requests
        versioned = {"uri": cell("a")["document"], "version": 2}
        edit = insert(0, "import re\n")
        change(wire, 2, textContent=[{"document": versioned, "changes": [edit]}])
        (item,) = (await wire.answer(request))["result"]["items"]
    assert last_prompt(engine) == "<fim_prefix>import os\n\nx = os.<fim_suffix><fim_middle>"
    place = {"line": 0, "character": 7}
    assert item["range"] == {"start": place, "end": place}


TEXTS = st.text("ab\n", max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("arrange"), st.lists(st.sampled_from("abcd"), unique=True)),
    st.tuples(st.just("edit"), st.tuples(st.sampled_from("abcd"), st.integers(0, 4), TEXTS)),
)


@given(st.lists(TEXTS, min_size=4, max_size=4), st.lists(STEPS, max_size=8))
def test_joined_texts_stay_what_they_are_of(texts: list[str], steps: list[Any]) -> None:
    documents = {name: Document(text) for name, text in zip("abcd", texts, strict=True)}
    joined, order = Joined("n.py", "python"), list[str]()
    for what, value in steps:
        if what == "arrange":
            order = value
            joined.arrange([(name, documents[name].text) for name in order])
        else:
            name, start, text = value
            document = documents[name]
            start = min(start, len(document.text))
            edit = Edit(start, min(start + 1, len(document.text)), text)
            document.apply(edit)
            joined.edited(name, [edit])
        expected = SEPARATOR.join(documents[name].text for name in order)
        assert joined.snapshot().text == expected
        for name in order:
            start = joined.start_of(name)
            assert expected[start:].startswith(documents[name].text)
        tree, fresh = joined.snapshot().tree, Document(expected, language="python").tree
        assert tree is not None and fresh is not None
        assert str(tree.root_node) == str(fresh.root_node)
