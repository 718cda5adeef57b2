"""The smoke test of Emacs with eglot: a suggestion as a completion, and a code action."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.editor

ROOT = Path(__file__).parents[2]
README = (ROOT / "clients" / "README.md").read_text(encoding="utf-8")
SESSION = Path(__file__).parent / "emacs" / "session.el"
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


def configuration() -> str:
    """The README's lines for eglot."""
    found = re.search(r"```elisp\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_eglot_completes_and_takes_a_code_action(tmp_path: Path) -> None:
    program = emacs()
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    file = project / "add.py"
    file.write_text("def add(left, right):\n    \n\n\nprint(1)\n", encoding="utf-8", newline="\n")
    script = tmp_path / "script.json"
    fenced = f"```python\n{DOCUMENTED}\n```\n"
    rules = [["docstring", fenced], ["def add", "return left + right"]]
    script.write_text(json.dumps({"rules": rules}), encoding="utf-8", newline="\n")
    server = (sys.executable, "-m", "tests.clients.nvim.scripted_server", str(script))
    wanted = '"fimble" "serve"'
    assert wanted in configuration()
    settings = tmp_path / "init.el"
    settings.write_text(
        configuration().replace(wanted, " ".join(map(json.dumps, server))),
        encoding="utf-8",
        newline="\n",
    )
    done = subprocess.run(
        [program, "-q", "--batch", "-l", str(settings), "-l", str(SESSION), str(file), "Document"],
        cwd=project,
        env={
            **os.environ,
            "FIMBLE_HOME": str(tmp_path / "fimble"),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "completed:     return left + right" in done.stdout
    assert file.read_text(encoding="utf-8") == f"{DOCUMENTED}\n\n\nprint(1)\n"
