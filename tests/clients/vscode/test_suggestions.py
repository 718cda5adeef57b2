"""Suggestions in a real workbench: shown, accepted whole and in part, switched off and on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.vscode.conftest import Server

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.workbench import Workbench, until

pytestmark = pytest.mark.editor

CODE = "def add(first, second):\n    return "
ANSWER = "irst + second"
BLOCK = "total = left\n    total += right\n    return total"


def begin(window: Workbench, server: Server, file: Path) -> None:
    """As ``type_on``, with what the scripted server says to it."""
    server.says(("def add", ANSWER))
    type_on(window, file)


def type_on(window: Workbench, file: Path) -> None:
    """A new file with the code, and ghost text behind what was typed last."""
    file.write_text(CODE, encoding="utf-8")
    window.open_file(file.name)
    window.keys.press("Control+End")
    window.type("f")
    window.ghost_text.wait_for()


def saved(window: Workbench, file: Path, text: str) -> None:
    """Saves until the file has ``text``: an accepted suggestion is inserted a moment later."""

    def is_there() -> bool:
        window.save()
        return file.read_text(encoding="utf-8") == text

    until(is_there, f"{text!r} in the file, not {file.read_text(encoding='utf-8')!r}")


def test_suggestions_are_accepted_whole_and_word_by_word_and_one_of_several_is_chosen(
    window: Workbench, server: Server, folder: Path
) -> None:
    begin(window, server, folder / "whole.py")
    window.screenshot("suggestion")
    window.keys.press("Tab")
    saved(window, folder / "whole.py", f"{CODE}first + second")

    begin(window, server, folder / "part.py")
    window.keys.press("Control+ArrowRight")
    saved(window, folder / "part.py", f"{CODE}first")

    begin(window, server, folder / "several.py")
    second, third = "irst - second", "irst * second"
    server.says(("def add", [second, third]))
    for key, shown in (("]", second), ("]", third), ("[", second)):
        window.keys.press(f"Alt+{key}")
        window.line(shown).wait_for()
    window.keys.press("Tab")
    saved(window, folder / "several.py", f"{CODE}f{second}")


def test_a_slow_models_suggestion_grows_and_is_accepted_whole_and_line_by_line(
    window: Workbench, server: Server, folder: Path
) -> None:
    for name in ("whole.py", "line.py"):
        file = folder / name
        file.write_text(f"def {file.stem}(left, right):\n   ", encoding="utf-8")
        # The first line is made, and then nothing for the time being.
        piece = len("total = left\n  ")
        server.says(("def", BLOCK), speed=5.0, piece=piece, stopped=True)
        asked = len(server.prompts)
        window.open_file(name)
        window.keys.press("Control+End")
        window.type(" ")
        window.line("total = left").wait_for()
        assert window.line("return total").count() == 0
        server.says(("def", "something else"), speed=5.0)
        window.line("return total").wait_for()
        assert len(server.prompts) == asked + 1

        if name == "whole.py":
            window.keys.press("Tab")
            saved(window, file, f"def whole(left, right):\n    {BLOCK}")
    window.keys.press("Control+Alt+f")
    window.keys.press("ArrowRight")
    saved(window, file, "def line(left, right):\n    total = left\n")


def test_documents_without_a_file_are_suggested_for_and_a_setting_is_followed_at_once(
    window: Workbench, server: Server, folder: Path
) -> None:
    server.says(("def add", ANSWER))
    window.new_document()
    window.type(f"{CODE}f")
    window.ghost_text.wait_for()

    servers = server.pids
    window.run("fimble: Switch Suggestions Off or On")
    window.wait_for_status("fimble: off")
    window.run("fimble: Switch Suggestions Off or On")
    window.wait_for_status("fimble: ready")
    begin(window, server, folder / "sums.py")
    assert server.pids == servers
