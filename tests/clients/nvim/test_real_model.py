"""The program as it is installed, its own engine, and Qwen2.5-Coder 0.5B, in each Neovim."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from fimble.engine import control
from fimble.engine.launcher import find_running
from fimble.models.store import Package
from tests.clients.nvim.conftest import KEYS, Bench
from tests.clients.nvim.test_chat import said
from tests.support.neovim import Neovim
from tests.support.real_model import home_with_package

pytestmark = pytest.mark.model

CODE = "def add(left, right):\n    \n"


def accept(editor: Neovim) -> None:
    """Takes the suggestion for line 2, and leaves insert mode once it is there."""
    editor.command("2")
    editor.keys("A")
    editor.sees("return")
    editor.keys("<Tab>")
    editor.until(lambda: "return" in editor.lines[1])
    editor.keys("<Esc>")
    editor.until(lambda: editor.mode == "n")


def test_a_suggestion_an_explanation_and_a_second_window(
    bench: Bench, real_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_with_package(tmp_path / "home", Package(real_package.name, real_package))
    monkeypatch.setenv("FIMBLE_HOME", str(home))
    program = [sys.executable, "-m", "fimble", "serve"]
    bodies, engines = [], []
    try:
        for name in ("one.py", "two.py"):
            bench.write(name, CODE)
            editor = bench.editor(name, setup=KEYS, cmd=program, home=home)
            engines.append(find_running())
            accept(editor)
            editor.command("write")
            (function,) = ast.parse(bench.saved(name)).body
            assert isinstance(function, ast.FunctionDef)
            bodies.append(ast.unparse(function.body[0]))
        editor.command("Fimble explain")
        # A blank line follows an answer that is complete; before it, the question is there alone.
        editor.until(lambda: len(said(editor)) > 4 and said(editor)[-2:] == ["", ""])
        assert "add" in "\n".join(said(editor))
    finally:
        control.stop()
    assert all("left" in body and "right" in body for body in bodies)
    assert engines[0] is not None and engines[0] == engines[1]
