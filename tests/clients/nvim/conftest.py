"""A real Neovim with the plugin and the real server, whose engine says what a test wants."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.neovim import Neovim
from tests.support.neovim_versions import VERSIONS, neovim

PLUGIN = Path(__file__).parents[3] / "clients" / "nvim"
ROOT = Path(__file__).parents[3]
KEYS = """{ keys = { accept = "<Tab>", accept_word = "<M-w>", accept_line = "<M-l>",
  next = "<M-n>", previous = "<M-p>", dismiss = "<M-d>" } }"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.editor)


@dataclass
class Bench:
    """A project folder, what the engine says in it, and Neovims in it, one of them shared."""

    program: str
    folder: Path
    started: list[Neovim]
    _shared: Neovim | None = None
    _files: int = 0

    @property
    def script(self) -> Path:
        return self.folder.parent / "script.json"

    @property
    def home(self) -> Path:
        """The FIMBLE_HOME of the servers."""
        return self.folder.parent / "fimble"

    def open(self, text: str, name: str = "") -> Neovim:
        """The shared Neovim, with a file that no test had before."""
        self._files += 1
        name = name or f"part{self._files}.py"
        self.write(name, text)
        if self._shared is None:
            self._shared = self.editor(name, setup=KEYS)
            return self._shared
        editor = self._shared
        editor.keys("<C-\\><C-n>")
        editor.command("silent! only | silent! %bwipeout!")
        editor.lua("_G.told = nil")
        editor.command(f"silent edit {self.folder / name}")
        wait_ready(editor)
        return editor

    def says(self, *rules: tuple[str, Any], **more: Any) -> None:
        """The answers of the engine: see ``scripted_server``."""
        text = json.dumps({"rules": rules, **more})
        # At once: the engine may be reading.
        new = self.script.with_suffix(".new")
        new.write_text(text, encoding="utf-8", newline="\n")
        new.replace(self.script)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_bytes(text.encode())
        return path

    def saved(self, name: str) -> str:
        """What the file holds on the disk."""
        return (self.folder / name).read_bytes().decode()

    @property
    def serve(self) -> list[str]:
        """The command of the scripted server."""
        return [sys.executable, "-m", "tests.clients.nvim.scripted_server", str(self.script)]

    def editor(
        self,
        file: str,
        *,
        init: str = "",
        setup: str | None = "{}",
        cmd: list[str] | None = None,
        ready: bool = True,
        home: Path | None = None,
    ) -> Neovim:
        """A Neovim that has ``file`` open. ``setup`` is Lua: the options besides ``cmd``."""
        lines = [
            f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})",
            "vim.opt.shortmess:append('I')",
            "vim.notify = function(text) _G.told = (_G.told or '') .. text .. '\\n' end",
            init,
        ]
        if setup is not None:
            options = f"vim.tbl_extend('force', {{ cmd = vim.json.decode(...) }}, {setup})"
            command = json.dumps(json.dumps(cmd or self.serve))
            lines.append(f";(function(...) require('fimble').setup({options}) end)({command})")
        start = self.folder.parent / f"init{len(self.started)}.lua"
        start.write_text("\n".join(lines), encoding="utf-8", newline="\n")
        own = self.folder.parent
        env = {
            "FIMBLE_HOME": str(home or self.home),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            **{f"XDG_{name}_HOME": str(own / name) for name in ("STATE", "DATA", "CONFIG")},
        }
        argv = [self.program, "--clean", "-n", "-u", str(start), str(self.folder / file)]
        found = Neovim(argv, env=env, cwd=self.folder, columns=120)
        self.started.append(found)
        if ready:
            wait_ready(found)
        return found


def wait_ready(editor: Neovim) -> None:
    """Waits until the server of the current buffer has its engine."""
    editor.until(lambda: "ready" in editor.lua("return require('fimble').statusline()"))


def server_of(editor: Neovim) -> psutil.Process:
    """The server's process."""
    (found,) = editor.lua("return vim.api.nvim_get_proc_children(vim.fn.getpid())")
    return psutil.Process(found)


@contextlib.contextmanager
def silenced(editor: Neovim) -> Iterator[None]:
    """The server does nothing during the block; it takes in afterwards what it was sent."""
    server = server_of(editor)
    server.suspend()
    try:
        yield
    finally:
        server.resume()


def told(editor: Neovim) -> str:
    """Every notification so far."""
    found: str = editor.lua("return _G.told or ''")
    return found


def _bench(version: str, parent: Path) -> Iterator[Bench]:
    folder = parent / "shop"
    folder.mkdir()
    (folder / ".git").mkdir()
    found = Bench(neovim(version), folder, [])
    found.says()
    try:
        yield found
    finally:
        for editor in found.started:
            editor.close()


@pytest.fixture(scope="module", params=VERSIONS)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A Neovim of each version. Starting a server takes a second or more: tests share one."""
    yield from _bench(request.param, tmp_path_factory.mktemp("nvim"))


@pytest.fixture(scope="session")
def plain_bench(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """For what does not depend on who draws suggestions."""
    yield from _bench("0.11", tmp_path_factory.mktemp("nvim"))
