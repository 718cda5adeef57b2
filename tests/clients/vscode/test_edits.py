"""Edits in a real workbench: from the lightbulb and the context menu, and with a preview."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.vscode.conftest import Server
from tests.clients.vscode.test_suggestions import saved

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.code_server import CodeServer
from tests.support.workbench import Browser, Workbench

pytestmark = pytest.mark.editor

CODE = "def add(first, second):\n    return first + second\n"
DOCUMENTED = CODE.replace(":\n", ':\n    """Add two numbers."""\n', 1)
CHECKED = CODE.replace(":\n", ":\n    assert first\n", 1)


def select_all(window: Workbench, file: Path) -> None:
    file.write_text(CODE, encoding="utf-8")
    window.open_file(file.name)
    window.keys.press("Control+a")


def click_on_the_lightbulb(window: Workbench) -> None:
    window.keys.press("Control+a")
    window.page.locator(".lightBulbWidget").click()


def press_the_key(window: Workbench) -> None:
    window.keys.press("Control+a")
    window.keys.press("Control+.")


def wait_for_editor(window: Workbench, name: str) -> None:
    window.tab(name, active=True).wait_for()
    window.page.locator(f'.monaco-editor.focused[data-uri$="/{name}"]').first.wait_for()


def wait_for_diff(window: Workbench, label: str) -> None:
    window.tab(label, active=True).wait_for()
    window.page.locator(".monaco-diff-editor .monaco-editor.focused .line-insert").first.wait_for()


def preview(window: Workbench, file: Path) -> None:
    """The edit of a new file, as a diff."""
    select_all(window, file)
    window.keys.press("Control+Alt+f")
    window.keys.press("e")
    window.answer("Edit the selection", "check the first")
    wait_for_diff(window, f"{file.name}: check the first")
    assert file.read_text(encoding="utf-8") == CODE


def test_code_actions_are_shown_first_from_the_lightbulb_and_the_context_menu(
    window: Workbench, server: Server, folder: Path
) -> None:
    server.says(("docstring", f"```python\n{DOCUMENTED}```\n"))
    bulb, menu = folder / "bulb.py", folder / "menu.py"
    select_all(window, bulb)
    window.choose_action("Document add", lambda: click_on_the_lightbulb(window))
    wait_for_diff(window, "bulb.py: Document add")
    assert bulb.read_text(encoding="utf-8") == CODE
    window.keys.press("Control+Enter")
    wait_for_editor(window, "bulb.py")
    saved(window, bulb, DOCUMENTED)

    select_all(window, menu)
    window.choose_from_context_menu("return", "fimble", "Document This Code")
    wait_for_diff(window, "menu.py: Document add")
    window.keys.press("Escape")
    wait_for_editor(window, "menu.py")
    window.keys.press("Control+End")
    window.type("MORE = 1\n")
    saved(window, menu, f"{CODE}MORE = 1\n")

    server.says(("docstring", "I would rather not."))
    select_all(window, folder / "refused.py")
    window.choose_action("Document add", lambda: press_the_key(window))
    window.wait_for_notification("The answer has no code in a fence.")
    assert (folder / "refused.py").read_text(encoding="utf-8") == CODE


def test_tests_are_shown_and_go_into_a_file_of_their_own(
    window: Workbench, server: Server, folder: Path
) -> None:
    code = "from sums import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    server.says(("def add", f"```python\n{code}```\n"))
    (folder / "test_other.py").touch()
    select_all(window, folder / "sums.py")
    window.choose_from_context_menu("return", "fimble", "Write Tests for This Code")
    wait_for_diff(window, "test_sums.py: Write tests for add")
    assert not (folder / "test_sums.py").exists()
    window.keys.press("Control+Enter")
    wait_for_editor(window, "test_sums.py")
    saved(window, folder / "test_sums.py", code)


def test_code_actions_are_made_at_once_where_nothing_is_to_be_confirmed(
    browser: Browser, server: Server, folder: Path, code_server: CodeServer
) -> None:
    code_server.settings({"fimble.edit.confirm": False})
    server.says(("docstring", f"```python\n{DOCUMENTED}```\n"))
    with browser.window(folder) as window:
        select_all(window, folder / "once.py")
        window.choose_action("Document add", lambda: press_the_key(window))
        saved(window, folder / "once.py", DOCUMENTED)

        server.says(("docstring", "I would rather not."))
        select_all(window, folder / "refused.py")
        window.choose_action("Document add", lambda: press_the_key(window))
        window.wait_for_notification("The answer has no code in a fence.")
        assert (folder / "refused.py").read_text(encoding="utf-8") == CODE


def test_an_edit_is_shown_first_and_made_if_it_still_fits(
    window: Workbench, server: Server, folder: Path
) -> None:
    server.says(("check the first", f"```python\n{CHECKED}```\n"))
    refused, accepted, late = (folder / name for name in ("no.py", "yes.py", "late.py"))

    preview(window, refused)
    window.keys.press("Escape")
    wait_for_editor(window, "no.py")
    window.type("\n")
    saved(window, refused, "\n")

    preview(window, accepted)
    window.screenshot("edit")
    window.keys.press("Control+Enter")
    wait_for_editor(window, "yes.py")
    saved(window, accepted, CHECKED)

    preview(window, late)
    window.go_to("late.py")
    window.type("MORE = 1\n")
    window.go_to("late.py: check the first")
    window.keys.press("Control+Enter")
    window.wait_for_notification("Nothing was changed: the document was edited meanwhile.")
    wait_for_editor(window, "late.py")
    saved(window, late, "MORE = 1\n")
