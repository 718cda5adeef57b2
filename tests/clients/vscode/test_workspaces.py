"""What is no single folder of text files: a workspace of two roots, and a notebook in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vscode.conftest import Server
from tests.clients.vscode.test_suggestions import saved

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.workbench import Browser, until

pytestmark = pytest.mark.editor


def notebook(*cells: str) -> str:
    """The text of a notebook with these cells of Python."""
    kernel = {"display_name": "Python", "language": "python", "name": "python3"}
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell{index}",
            "metadata": {},
            "outputs": [],
            "source": source,
        }
        for index, source in enumerate(cells)
    ]
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    text = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(text)


def test_roots_keep_their_own_ignore_rules_and_a_cell_is_completed_behind_the_others(
    browser: Browser, server: Server, folder: Path
) -> None:
    roots = [folder / "first", folder / "second"]
    for root in roots:
        root.mkdir()
        code = f"def {root.name}_private(left):\n    return "
        (root / "private.py").write_text(code, encoding="utf-8")
    (roots[0] / ".gitignore").write_text("private.py\n", encoding="utf-8")
    book = roots[1] / "book.ipynb"
    book.write_text(notebook("def first_sum(a, b):\n    return a + b", "total ="), "utf-8")
    workspace = folder / "both.code-workspace"
    paths = [{"path": root.name} for root in roots]
    workspace.write_text(json.dumps({"folders": paths}), encoding="utf-8")

    server.says(("first_sum", "irst_sum(1, 2)"), ("private", "eft"))
    with browser.window(workspace) as window:
        rows = window.page.locator(".explorer-folders-view .monaco-list-row")
        for number, root in enumerate(roots):
            rows.filter(has_text="private.py").nth(number).dblclick()
            editor = f'.monaco-editor.focused[data-uri$="/{root.name}/private.py"]'
            window.page.locator(editor).first.wait_for()
            window.keys.press("Control+End")
            window.type("l")
            saved(window, root / "private.py", f"def {root.name}_private(left):\n    return l")
        window.ghost_text.wait_for()
        window.keys.press("Tab")
        saved(window, roots[1] / "private.py", "def second_private(left):\n    return left")

        rows.filter(has_text="book.ipynb").dblclick()
        cell = window.page.locator(".notebookOverlay .monaco-editor .view-line")
        cell.filter(has_text="total").click()
        window.keys.press("Control+End")
        window.type(" f")
        window.ghost_text.wait_for()
        window.keys.press("Tab")

        def completed() -> bool:
            window.save()
            cells = json.loads(book.read_text(encoding="utf-8"))["cells"]
            return "".join(cells[1]["source"]) == "total = first_sum(1, 2)"

        until(completed, "the completed cell")
    prompts = "\n".join(server.prompts)
    assert "def first_sum(a, b):\n    return a + b\n\ntotal = f<fim_suffix>" in prompts
    assert "second_private" in prompts
    assert "first_private" not in prompts
