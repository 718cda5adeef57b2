"""A real VS Code workbench: code-server from npm, kept in the cache, and a running one.

Nothing of it is compiled: what its packages would build is not needed here.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fimble import system
from tests.support.node import node_folder, npm
from tests.support.real_model import cache_dir

__all__ = ["VERSION", "CodeServer", "code_server_script", "running_code_server"]

#: VS Code 1.139.1; needs Node 24.
VERSION = "4.139.1"
_PATIENCE = 180


def code_server_script() -> Path:
    """The script that starts it; installed first where it is not in the cache yet."""
    folder = cache_dir() / f"code-server-{VERSION}"
    done = folder / "done"
    package = folder / "node_modules" / "code-server"
    with system.exclusive_lock(cache_dir() / "code-server.lock", timeout=1800):
        if not done.exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text("{}", encoding="utf-8")
            npm("install", f"code-server@{VERSION}", cwd=folder)
            workbench = package / "lib" / "vscode"
            for each in (workbench, workbench / "extensions"):
                npm("install", "--omit=dev", cwd=each)
            done.touch()
    return package / "out" / "node" / "entry.js"


@dataclass(frozen=True)
class CodeServer:
    """``url`` serves the workbench; ``data`` has its settings and logs, ``home`` is its user's."""

    url: str
    data: Path
    home: Path

    def settings(self, changes: Mapping[str, Any]) -> None:
        """Puts these into the user's settings."""
        _merge(self._file("User"), changes)

    def use_machine_settings(self, settings: Mapping[str, Any]) -> None:
        """These are the machine's settings from now on."""
        _merge(self._file("Machine"), settings)

    def _file(self, owner: str) -> Path:
        return self.data / owner / "settings.json"


def _merge(file: Path, changes: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**known, **changes}), encoding="utf-8")


@contextlib.contextmanager
def running_code_server(
    work: Path, extension: Path, env: Mapping[str, str]
) -> Iterator[CodeServer]:
    """One on a free port, with the packaged ``extension`` installed, for the block."""
    folder = node_folder()
    assert folder is not None
    data, extensions = work / "data", work / "extensions"
    command = [
        str(folder / "bin" / "node"),
        str(code_server_script()),
        *("--config", os.devnull),
        *("--user-data-dir", str(data)),
        *("--extensions-dir", str(extensions)),
    ]
    everything = {**os.environ, **env}
    subprocess.run(
        [*command, "--install-extension", str(extension)],
        env=everything,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE,
        check=True,
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serving = [
        *command,
        *("--auth", "none", "--bind-addr", f"127.0.0.1:{port}"),
        *("--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"),
    ]
    with (work / "code-server.log").open("wb") as log:
        process = subprocess.Popen(
            serving, env=everything, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_for(url, process)
            yield CodeServer(url, data, Path(everything["HOME"]))
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, "code-server ended"
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=10):
                return
        except (urllib.error.URLError, OSError):
            assert time.monotonic() < deadline, "code-server does not answer"
            time.sleep(0.2)
