"""The command line as a user runs it: a process of its own, with a home of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.tiny import make_tiny_package


@dataclass(frozen=True)
class Ran:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class CommandLine:
    """Runs ``fimble`` with ``home`` as FIMBLE_HOME."""

    home: Path

    def __call__(self, *arguments: str | Path, cwd: Path | None = None) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "fimble", *map(str, arguments)],
            env={**os.environ, "FIMBLE_HOME": str(self.home), "NO_COLOR": "1"},
            cwd=cwd,
            capture_output=True,
            timeout=300,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout.decode("utf-8"), done.stderr.decode("utf-8"))
        assert "Traceback" not in ran.out + ran.err, ran
        return ran


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[CommandLine]:
    """A home with nothing in it."""
    run = CommandLine(tmp_path / "home")
    yield run
    if (run.home / "run").exists():
        run("engine", "stop")


@pytest.fixture(scope="module")
def fimble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A home with the tiny package, and an engine that lives as long as the module's tests."""
    home = tmp_path_factory.mktemp("cli-home")
    make_tiny_package(home / "models" / "tiny")
    run = CommandLine(home)
    yield run
    run("engine", "stop")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small file to complete in; its last line is ``    return n``."""
    file = tmp_path / "code.py"
    file.write_text("def f(n):\n    return n\n", encoding="utf-8", newline="\n")
    return file
