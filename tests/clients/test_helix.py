"""The smoke test of Helix: a suggestion from its completion menu, and a code action.

Helix runs in a terminal, and the terminal in which it is driven is Neovim's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.debian_unstable import CannotBeHad, program_in, unpacked
from tests.support.neovim import Neovim
from tests.support.neovim_versions import neovim

pytestmark = pytest.mark.editor

ROOT = Path(__file__).parents[2]
README = (ROOT / "clients" / "README.md").read_text(encoding="utf-8")
DOCUMENTED = 'def add(left, right):\n    """Sum of both."""\n    return left + right\n'


def helix() -> str:
    """The program. Skips the test, with the reason, where it cannot be had."""
    try:
        runtime = "HELIX_RUNTIME=$root/usr/lib/hx/runtime"
        program = program_in(unpacked("hx"), "usr/lib/hx/hx", runtime)
        subprocess.run([program, "--version"], capture_output=True, check=True, timeout=60)
    except (CannotBeHad, OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"Helix: {error}")
    return str(program)


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Neovim]:
    """Helix with ``add.py``, set up as the README says, with the scripted server."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    text = "def add(left, right):\n    \n"
    (project / "add.py").write_text(text, encoding="utf-8", newline="\n")
    script = tmp_path / "script.json"
    rules = [["docstring", f"```python\n{DOCUMENTED}```\n"], ["def add", "return left + right"]]
    script.write_text(json.dumps({"rules": rules}), encoding="utf-8", newline="\n")
    found = re.search(r"`languages.toml`.*?```toml\n(.*?)```", README, re.DOTALL)
    assert found is not None
    server = ["-m", "tests.clients.nvim.scripted_server", str(script)]
    lines = found[1].replace('"fimble"\nargs', f"{json.dumps(sys.executable)}\nargs")
    settings = tmp_path / "config" / "helix" / "languages.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(
        lines.replace('["serve"]', json.dumps(server)), encoding="utf-8", newline="\n"
    )
    env = {
        "FIMBLE_HOME": str(tmp_path / "fimble"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        **{
            f"XDG_{name.upper()}_HOME": str(tmp_path / name) for name in ("config", "cache", "data")
        },
    }
    program = helix()
    terminal = Neovim([neovim("0.11"), "--clean", "-n"], env=env, cwd=project, columns=100)
    try:
        terminal.lua("vim.fn.jobstart({ ..., 'add.py' }, { term = true })", program)
        terminal.keys("i")
        terminal.sees("NOR")
        terminal.until(lambda: list(tmp_path.glob("fimble/index/*.sqlite")))  # the server works
        yield terminal
    finally:
        terminal.close()


def chosen(screen: Neovim, title: str) -> int:
    """Waits for Helix's menu of code actions; how far down the entry is in it."""
    screen.sees(title)
    entries = [line.split(" ", 1)[-1].strip() for line in screen.screen]
    menu = [entry for entry in entries if re.match(r"^(\d+ )?\s*[A-Z]\w+ ", entry)]
    return 1 + next(index for index, entry in enumerate(menu) if title in entry)


def offered(screen: Neovim) -> bool:
    """Asks for completions, which Helix does not do before it has got to know its server."""
    screen.keys("<C-x>")
    asked = time.monotonic()
    while time.monotonic() < asked + 10:
        if "return left + right snippet" in screen.screen_text:
            return True
        time.sleep(0.02)
    return False


def test_helix_completes_and_takes_a_code_action(screen: Neovim, tmp_path: Path) -> None:
    file = tmp_path / "project" / "add.py"
    screen.keys("2GA")
    screen.sees("INS")
    screen.until(lambda: offered(screen))
    screen.keys("<C-n><CR>")
    screen.sees_no("snippet")
    screen.keys("<Esc>:w<CR>")
    wanted = "def add(left, right):\n    return left + right\n"
    screen.until(lambda: file.read_text(encoding="utf-8") == wanted)
    screen.keys(":1<CR><Space>a")
    screen.keys("<C-n>" * chosen(screen, "Document add"))
    screen.keys("<CR>")
    screen.sees('"""Sum of both."""')
    screen.keys(":w<CR>")
    screen.until(lambda: file.read_text(encoding="utf-8") == DOCUMENTED)
