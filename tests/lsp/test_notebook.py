"""Notebooks: the code cells above are the prefix, whatever happens to the cells."""

from __future__ import annotations

from typing import Any

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
