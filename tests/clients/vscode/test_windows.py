"""Several windows, some of them on folders that are not to be trusted, in a real workbench."""

from __future__ import annotations

import json
from pathlib import Path

import psutil
import pytest

from tests.clients.vscode.conftest import Server
from tests.clients.vscode.test_suggestions import CODE, begin, saved

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.code_server import CodeServer
from tests.support.workbench import Browser, Workbench, until

pytestmark = pytest.mark.editor


def test_a_window_that_closes_takes_its_server_along_and_no_other(
    window: Workbench, browser: Browser, server: Server, folder: Path, tmp_path: Path
) -> None:
    first = server.pids[-1]
    planted = tmp_path / "planted"
    (planted / ".vscode").mkdir(parents=True)
    program = planted / ".venv" / "bin" / "fimble"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/was-run'\n", encoding="utf-8")
    program.chmod(0o755)
    settings = {
        "fimble.client.serverPath": str(program),
        "fimble.model": "../planted",
        "fimble.completion.maxTokens": "many",
    }
    file = planted / ".vscode" / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")

    with browser.window(planted) as other:
        begin(other, server, planted / "there.py")
        other.keys.press("Tab")
        saved(other, planted / "there.py", f"{CODE}first + second")
        second = server.pids[-1]
        assert first != second
        other.leave()
        until(lambda: not psutil.pid_exists(second), "the end of the window's server")

    begin(window, server, folder / "here.py")
    window.keys.press("Tab")
    saved(window, folder / "here.py", f"{CODE}first + second")
    assert server.pids[-1] == second and psutil.pid_exists(first)
    assert not (tmp_path / "was-run").exists()


def test_a_folder_that_is_not_trusted_gets_completions_only(
    browser: Browser, server: Server, folder: Path, code_server: CodeServer
) -> None:
    trust = "security.workspace.trust"
    code_server.settings({f"{trust}.enabled": True, f"{trust}.startupPrompt": "never"})
    with browser.window(folder) as window:
        begin(window, server, folder / "sums.py")
        window.keys.press("Tab")
        saved(window, folder / "sums.py", f"{CODE}first + second")
        asked = len(server.prompts)
        window.keys.press("Control+a")
        window.keys.press("Control+.")
        # What is left are the editor's own.
        window.page.locator(".action-widget .action").first.wait_for()
        assert window.page.locator(".action-widget .action", has_text="Document").count() == 0
        window.keys.press("Escape")
        window.keys.press("Control+Alt+f")
        window.keys.press("e")
        window.type("x")
        saved(window, folder / "sums.py", "x")
        assert all(each.startswith("<fim_prefix>") for each in server.prompts[asked:])
