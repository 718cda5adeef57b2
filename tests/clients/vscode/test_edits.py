"""Edits in a real workbench: from the lightbulb and the context menu, and with a preview."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.vscode.conftest import Server
from tests.clients.vscode.test_suggestions import saved

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.workbench import Workbench

pytestmark = pytest.mark.editor

CODE = "def add(first, second):\n    return first + second\n"
DOCUMENTED = CODE.replace(":\n", ':\n    """Add two numbers."""\n', 1)
CHECKED = CODE.replace(":\n", ":\n    assert first\n", 1)


def select_all(window: Workbench, file: Path) -> None:
    file.write_text(CODE, encoding="utf-8")
    window.open_file(file.name)
    window.keys.press("Control+a")


def preview(window: Workbench, file: Path) -> None:
    """The edit of a new file, as a diff."""
    select_all(window, file)
    window.keys.press("Control+Alt+f")
    window.keys.press("e")
    window.answer("Edit the selection", "check the first")
    window.tab(f"{file.name}: check the first", active=True).wait_for()
    window.page.locator(".monaco-diff-editor .monaco-editor.focused .line-insert").first.wait_for()
    assert file.read_text(encoding="utf-8") == CODE


def test_code_actions_of_the_lightbulb_and_of_the_context_menu(
    window: Workbench, server: Server, folder: Path
) -> None:
    server.says(("docstring", f"```python\n{DOCUMENTED}```\n"))
    select_all(window, folder / "bulb.py")
    window.choose_action("Document add", window.page.locator(".lightBulbWidget").click)
    saved(window, folder / "bulb.py", DOCUMENTED)

    select_all(window, folder / "menu.py")
    window.choose_from_context_menu("return", "fimble", "Document This Code")
    saved(window, folder / "menu.py", DOCUMENTED)

    server.says(("docstring", "I would rather not."))
    select_all(window, folder / "refused.py")
    window.choose_action("Document add", lambda: window.keys.press("Control+."))
    window.wait_for_notification("The answer has no code in a fence.")
    assert (folder / "refused.py").read_text(encoding="utf-8") == CODE


def test_an_edit_is_shown_first_and_made_if_it_still_fits(
    window: Workbench, server: Server, folder: Path
) -> None:
    server.says(("check the first", f"```python\n{CHECKED}```\n"))
    refused, accepted, late = (folder / name for name in ("no.py", "yes.py", "late.py"))

    preview(window, refused)
    window.keys.press("Escape")
    window.tab("no.py", active=True).wait_for()
    window.type("\n")
    saved(window, refused, "\n")

    preview(window, accepted)
    window.screenshot("edit")
    window.keys.press("Control+Enter")
    window.tab("yes.py", active=True).wait_for()
    saved(window, accepted, CHECKED)

    preview(window, late)
    window.go_to("late.py")
    window.type("MORE = 1\n")
    window.go_to("late.py: check the first")
    window.keys.press("Control+Enter")
    window.wait_for_notification("Nothing was changed: the document was edited meanwhile.")
    window.tab("late.py", active=True).wait_for()
    saved(window, late, "MORE = 1\n")
