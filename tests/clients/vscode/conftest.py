"""The extension, packaged, in a real workbench with the real server.

Everything here is skipped, with the reason, where there is no Node, Playwright or Chromium
(`pip install '.[e2e]'`, and the system's chromium package). What has to be fetched from npm is kept
in FIMBLE_TEST_CACHE; the extension is built in a copy of the sources.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.code_server import CodeServer, code_server_script, running_code_server
from tests.support.node import NodeFailed, installed_packages, node_folder, run_node

if TYPE_CHECKING:
    from tests.support.workbench import Browser, Workbench

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "clients" / "vscode"


def _missing() -> str | None:
    if node_folder() is None or importlib.util.find_spec("playwright") is None:
        return "needs the extra e2e: pip install '.[e2e]'"
    if sys.platform == "win32":
        return "the workbench of these tests does not run on Windows"
    return None


@pytest.fixture(scope="package")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository's sources in which the extension can be built."""
    reason = _missing()
    if reason is not None:
        pytest.skip(reason)
    copy = tmp_path_factory.mktemp("sources")
    for name in ("pyproject.toml", "README.md", "LICENSE", "server", "context", "examples"):
        _copy(ROOT / name, copy / name)
    client = copy / "clients" / "vscode"
    _copy(EXTENSION, client)
    try:
        packages = installed_packages(
            "vscode-extension", [client / "package.json", client / "package-lock.json"]
        )
    except NodeFailed as error:
        pytest.skip(f"npm's packages cannot be had: {error}")
    (client / "node_modules").symlink_to(packages, target_is_directory=True)
    return client


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        unwanted = shutil.ignore_patterns("node_modules", "dist", "__pycache__", "*.egg-info")
        shutil.copytree(source, target, ignore=unwanted)
    else:
        shutil.copy(source, target)


@pytest.fixture(scope="package")
def vsix(project: Path) -> Path:
    """The packaged extension, by the README's own command."""
    # The extra has what builds the wheel: nothing is to be fetched for it.
    env = {"PYTHON": sys.executable, "PIP_NO_BUILD_ISOLATION": "false"}
    run_node("scripts/package.mjs", cwd=project, env=env)
    return project / "fimble.vsix"


@dataclass(frozen=True)
class Server:
    """What the scripted server is told and what it noted; see ``scripted_server``."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "fimble"

    def says(self, *rules: tuple[str, str | list[str]], **more: Any) -> None:
        """The rules from now on."""
        file = self.folder / "script.json"
        text = json.dumps({"rules": [list(rule) for rule in rules], **more})
        # In one step: a server may be reading it.
        file.with_suffix(".new").write_text(text, encoding="utf-8")
        file.with_suffix(".new").replace(file)

    @property
    def pids(self) -> list[int]:
        """Every server that was started."""
        return [int(line) for line in self._lines("pids")]

    @property
    def prompts(self) -> list[str]:
        """What each request to the engine asked, in order."""
        return [json.loads(line) for line in self._lines("requests")]

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]


@pytest.fixture(scope="package")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Server:
    server = Server(tmp_path_factory.mktemp("server"))
    server.says()
    module = "tests.clients.vscode.scripted_server"
    write_program(server.program, ["-m", module, str(server.folder)])
    return server


@pytest.fixture
def server(_server: Server) -> Server:
    """The scripted server, with no rules."""
    _server.says()
    return _server


def write_program(
    program: Path, arguments: Sequence[str], *, first: Path | None = None, **env: str
) -> None:
    """A program that runs this Python with ``arguments`` and what the program is given, in ``env``.

    What there is to import in the folder ``first`` goes before this Python's own packages.
    """
    own = [str(ROOT), *(path for path in sys.path if path)]
    paths = os.pathsep.join([*([str(first)] * (first is not None)), *own])
    exported = {"PYTHONPATH": paths, **env}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in exported.items()]
    command = shlex.join([sys.executable, *arguments])
    program.write_text(
        "\n".join(["#!/bin/sh", *lines, f'exec {command} "$@"', ""]), encoding="utf-8"
    )
    program.chmod(0o755)


@pytest.fixture(scope="package")
def _code_server(
    tmp_path_factory: pytest.TempPathFactory, vsix: Path, _server: Server
) -> Iterator[CodeServer]:
    from tests.support.workbench import chromium

    if chromium() is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    try:
        code_server_script()
    except (NodeFailed, subprocess.SubprocessError) as error:
        pytest.skip(f"code-server cannot be had: {error}")
    work = tmp_path_factory.mktemp("code-server")
    home = tmp_path_factory.mktemp("home")
    # Nothing of the machine's own is found on PATH, also by a shell that somebody logs in to.
    (work / ".profile").write_text(f"PATH={os.defpath}\n", encoding="utf-8")
    env = {"FIMBLE_HOME": str(home), "HOME": str(work), "PATH": os.defpath, "SHELL": "/bin/sh"}
    with running_code_server(work, vsix, env) as running:
        running.use_machine_settings({"fimble.client.serverPath": str(_server.program)})
        running.settings(BASIC)
        yield running


#: What keeps a window still: no welcome page, no other suggestions, nothing that lies over what is
#: clicked, be it a hover or a line that sticks to the top of a text that is scrolled.
BASIC = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.enableExperiments": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.wordBasedSuggestions": "off",
    "editor.acceptSuggestionOnEnter": "off",
    "editor.autoClosingBrackets": "never",
    "editor.minimap.enabled": False,
    "editor.hover.enabled": "off",
    "editor.stickyScroll.enabled": False,
    "editor.scrollBeyondLastLine": False,
    "workbench.hover.delay": 1_000_000,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "git.enabled": False,
    "telemetry.telemetryLevel": "off",
    "fimble.completion.ahead": False,
}


@pytest.fixture
def code_server(_code_server: CodeServer) -> Iterator[CodeServer]:
    """The running one; settings that a test changes are set back."""
    files = [_code_server.data / owner / "settings.json" for owner in ("User", "Machine")]
    before = {file: file.read_bytes() for file in files}
    yield _code_server
    for file, content in before.items():
        file.write_bytes(content)


@pytest.fixture(scope="package")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of windows are kept: FIMBLE_TEST_PICTURES, else among the tests' files."""
    folder = Path(os.environ.get("FIMBLE_TEST_PICTURES") or tmp_path_factory.mktemp("pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="package")
def _browser(_code_server: CodeServer, pictures: Path) -> Iterator[Browser]:
    from tests.support.workbench import running_browser

    with running_browser(_code_server.url, pictures) as browser:
        yield browser


@pytest.fixture
def browser(_browser: Browser, code_server: CodeServer) -> Browser:
    return _browser


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to be opened as a workspace."""
    path = tmp_path / f"folder-{time.monotonic_ns()}"
    path.mkdir()
    return path


@pytest.fixture
def window(browser: Browser, server: Server, folder: Path) -> Iterator[Workbench]:
    """A window on ``folder``, with the server ready."""
    with browser.window(folder) as workbench:
        yield workbench
