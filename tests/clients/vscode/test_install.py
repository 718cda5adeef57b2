"""The offer to install the server, in a real workbench, where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.clients.vscode.conftest import Server, write_program
from tests.clients.vscode.test_suggestions import CODE, begin, saved
from tests.support.code_server import CodeServer

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.workbench import Browser, Workbench

pytestmark = pytest.mark.editor


@pytest.fixture
def installed(code_server: CodeServer, tmp_path: Path) -> Iterator[Server]:
    """What the stand-in for uv will have installed; there is no server before that."""
    code_server.use_machine_settings({"fimble.client.serverPath": ""})
    programs = code_server.home / ".local" / "bin"
    programs.mkdir(parents=True)
    write_program(programs / "uv", ["-m", "tests.clients.vscode.stand_in_uv", str(tmp_path)])
    server = Server(tmp_path)
    server.says()
    yield server
    for program in programs.iterdir():
        program.unlink()
    programs.rmdir()


def confirm(window: Workbench) -> None:
    """Chooses uv, and confirms the command that is shown."""
    window.page.locator(".quick-input-list .monaco-list-row", has_text="uv:").click()
    dialog = window.page.locator(".monaco-dialog-box", has_text="This command is run.")
    dialog.filter(has_text="/.local/bin/uv tool install --force").wait_for()
    dialog.get_by_role("button", name="Run It").click()


def test_the_server_is_installed_after_a_failure_that_is_told_and_then_completes(
    browser: Browser, installed: Server, folder: Path, code_server: CodeServer
) -> None:
    full = installed.folder / "full"
    full.touch()
    with browser.window(folder, ready="fimble: not installed") as window:
        offer = window.wait_for_notification("The fimble server was not found on PATH")
        assert not installed.folder.joinpath("packages").exists()
        offer.get_by_role("button", name="Install …").click()
        confirm(window)
        failure = window.wait_for_notification(
            "the server was not installed. error: No space left on device · exit code 1."
        )
        assert not (code_server.home / ".local" / "bin" / "fimble").exists()

        full.unlink()
        failure.get_by_role("button", name="Try Again …").click()
        confirm(window)
        window.wait_for_status("fimble: ready")
        begin(window, installed, folder / "sums.py")
        window.keys.press("Tab")
        saved(window, folder / "sums.py", f"{CODE}first + second")
        assert (installed.folder / "packages" / "fimble" / "__init__.py").exists()
        (pid,) = installed.pids
        paths = psutil.Process(pid).environ()["PYTHONPATH"]
        assert paths.startswith(str(installed.folder / "packages"))
