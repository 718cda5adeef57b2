"""Two windows, the program as it is installed, one engine, and Qwen2.5-Coder 0.5B in it."""

from __future__ import annotations

import ast
from pathlib import Path

import psutil
import pytest

from fimble.engine import control
from fimble.engine.launcher import find_running
from fimble.models.store import Package
from tests.clients.vscode.conftest import write_program
from tests.clients.vscode.test_suggestions import CODE, type_on
from tests.support.real_model import home_with_package

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.code_server import CodeServer
from tests.support.workbench import Browser, Workbench, until

pytestmark = [pytest.mark.editor, pytest.mark.model]


def suggested(window: Workbench, file: Path) -> str:
    """What the file has behind the code, once a suggestion was accepted and saved."""
    type_on(window, file)
    window.keys.press("Tab")

    def is_saved() -> bool:
        window.save()
        return len(file.read_text(encoding="utf-8")) > len(f"{CODE}f")

    until(is_saved, "a suggestion in the saved file")
    return file.read_text(encoding="utf-8")


def test_two_windows_are_answered_by_one_engine(
    browser: Browser,
    code_server: CodeServer,
    real_package: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = home_with_package(tmp_path / "home", Package(real_package.name, real_package))
    program = tmp_path / "fimble"
    write_program(program, ["-m", "fimble"], FIMBLE_HOME=str(home))
    code_server.use_machine_settings({"fimble.client.serverPath": str(program)})
    monkeypatch.setenv("FIMBLE_HOME", str(home))
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    try:
        with browser.window(folders[0]) as first, browser.window(folders[1]) as second:
            texts = [
                suggested(window, folder / f"{folder.name}.py")
                for window, folder in zip((first, second), folders, strict=True)
            ]
            engine = find_running()
            assert engine is not None
            started = [
                process.pid
                for process in psutil.process_iter(["cmdline", "environ"])
                if "fimble.engine" in (process.info["cmdline"] or ())
                and (process.info["environ"] or {}).get("FIMBLE_HOME") == str(home)
            ]
            assert started == [engine.pid]
        for text in texts:
            (function,) = ast.parse(text).body
            assert isinstance(function, ast.FunctionDef)
            body = ast.unparse(function.body[0])
            assert "first" in body and "second" in body
        # Windows come and go; the engine is for the next one.
        assert find_running() == engine
    finally:
        control.stop()
