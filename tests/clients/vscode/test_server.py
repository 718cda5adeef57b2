"""The server’s life in a real workbench: ended from outside, and with its window."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.clients.vscode.conftest import Server
from tests.clients.vscode.test_suggestions import CODE, begin, saved

pytest.importorskip("playwright", reason="needs the extra e2e: pip install '.[e2e]'")
from tests.support.workbench import Browser, until

pytestmark = pytest.mark.editor


def test_a_server_that_died_comes_back_and_none_outlives_its_window(
    browser: Browser, server: Server, folder: Path
) -> None:
    with browser.window(folder) as window:
        started = len(server.pids)
        psutil.Process(server.pids[-1]).kill()
        until(lambda: len(server.pids) > started, "a new server")
        window.wait_for_status("fimble: ready")

        begin(window, server, folder / "sums.py")
        window.keys.press("Tab")
        saved(window, folder / "sums.py", f"{CODE}first + second")
        assert psutil.pid_exists(server.pids[-1])
