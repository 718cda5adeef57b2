"""The smoke tests of Emacs: with eglot a suggestion is a completion, with lsp-mode ghost text."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.debian_unstable import CannotBeHad, unpacked
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.editor

ROOT = Path(__file__).parents[2]
README = (ROOT / "clients" / "README.md").read_text(encoding="utf-8")
EMACS = Path(__file__).parent / "emacs"
DOCUMENTED = 'def add(left, right):\n    """Sum of both."""\n    return left + right'


def emacs() -> str:
    """The program. Skips the test, with the reason, where it is not the one that this is for."""
    found = shutil.which("emacs")
    if found is None:
        pytest.skip("Emacs is not installed (Debian's packages emacs-nox and elpa-eglot)")
    check = ["-q", "--batch", "--eval", "(progn (require 'eglot) (princ emacs-major-version))"]
    said = subprocess.run([found, *check], capture_output=True, text=True, check=False)
    if said.stdout.strip() != "28":
        pytest.skip(f"not Emacs 28 with eglot: {said.stdout.strip() or said.stderr.strip()}")
    return found


def lsp_mode() -> list[Path]:
    """The folders of lsp-mode 10. Skips the test, with the reason, where it cannot be had."""
    try:
        root = unpacked("elpa-lsp-mode")
    except CannotBeHad as error:
        pytest.skip(f"lsp-mode: {error}")
    folders = sorted(root.glob("usr/share/emacs/site-lisp/elpa-src/*"))
    if not any(folder.name.startswith("lsp-mode-10.") for folder in folders):
        pytest.skip(f"lsp-mode: not 10: {[folder.name for folder in folders]}")
    return folders


class Project:
    """A file, the scripted server, and Emacs with the README's lines for that server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "project" / ".git").mkdir(parents=True)
        self.file = folder / "project" / "add.py"
        self.file.write_text(
            "def add(left, right):\n    \n\n\nprint(1)\n", encoding="utf-8", newline="\n"
        )
        fenced = f"```python\n{DOCUMENTED}\n```\n"
        rules = [["docstring", fenced], ["def add", "return left + right"]]
        self.script = folder / "script.json"
        self.script.write_text(json.dumps({"rules": rules}), encoding="utf-8", newline="\n")

    def configuration(self, package: str) -> str:
        """A file with the README's lines that begin with that package."""
        found = re.search(rf"```elisp\n(\(require '{package}\)\n.*?)```", README, re.DOTALL)
        assert found is not None
        wanted = '"fimble" "serve"'
        assert wanted in found[1]
        server = (sys.executable, "-m", "tests.clients.nvim.scripted_server", str(self.script))
        settings = self.folder / "init.el"
        settings.write_text(
            found[1].replace(wanted, " ".join(map(json.dumps, server))),
            encoding="utf-8",
            newline="\n",
        )
        return str(settings)

    def run(self, program: str, *arguments: str) -> str:
        """What Emacs says in batch mode."""
        home = self.folder / "fimble"
        home.mkdir()
        done = subprocess.run(
            [program, "-q", "--batch", *arguments],
            cwd=self.folder / "project",
            env={
                **os.environ,
                "HOME": str(self.folder),
                "FIMBLE_HOME": str(home),
                "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def test_eglot_completes_and_takes_a_code_action(tmp_path: Path) -> None:
    program = emacs()
    project = Project(tmp_path)
    settings = project.configuration("eglot")
    said = project.run(
        program, "-l", settings, "-l", str(EMACS / "session.el"), str(project.file), "Document"
    )
    assert "completed:     return left + right" in said
    assert project.file.read_text(encoding="utf-8") == f"{DOCUMENTED}\n\n\nprint(1)\n"


def test_lsp_mode_shows_ghost_text_and_code_actions(tmp_path: Path) -> None:
    program, folders = emacs(), lsp_mode()
    project = Project(tmp_path)
    settings = project.configuration("lsp-mode")
    path = [word for folder in folders for word in ("-L", str(folder))]
    said = project.run(
        program, *path, "-l", str(EMACS / "lsp-mode.el"), settings, str(project.file)
    )
    assert "ghost: return left + right" in said
    assert 'buffer: "    "' in said
    assert "Document add" in said
    wanted = "def add(left, right):\n    return left + right\n\n\nprint(1)\n"
    assert project.file.read_text(encoding="utf-8") == wanted
