"""``python -m tests.clients.nvim.pictures FOLDER``: the pictures of Neovim in the READMEs.

Neovim with the plugin, the real server and the default model of FIMBLE_HOME. What is on the
pictures is what the model said.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from tests.clients.nvim.conftest import PLUGIN, ROOT, wait_ready
from tests.support.neovim import Neovim
from tests.support.neovim_versions import neovim

SOURCE = """from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    count: int


def total(items: list[Item]) -> float:
    \"\"\"The price of all items together.\"\"\"
    return sum(item.price * item.count for item in items)


def most_expensive(items: list[Item]) -> Item:
    \"\"\"The item with the highest price.\"\"\"
{here}


def names(items: list[Item]) -> list[str]:
    return [item.name for item in items]
""".replace("{here}", " " * 4)
LINE = 1 + SOURCE[: SOURCE.index("    \n")].count("\n")

INIT = """
vim.opt.runtimepath:prepend({plugin})
vim.opt.shortmess:append("IF")
vim.opt.background = "dark"
vim.opt.laststatus = 2
vim.opt.statusline = " %f%=%{{v:lua.require'fimble'.statusline()}}  %l,%c "
require("fimble").setup({{ cmd = {{ {python}, "-m", "fimble", "serve" }} }})
"""


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        shop = home / "shop"
        (shop / ".git").mkdir(parents=True)
        (shop / "cart.py").write_text(SOURCE, encoding="utf-8", newline="\n")
        start = home / "init.lua"
        init = INIT.format(plugin=json.dumps(str(PLUGIN)), python=json.dumps(sys.executable))
        start.write_text(init, encoding="utf-8", newline="\n")
        env = {
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            **{f"XDG_{name}_HOME": str(home / name) for name in ("STATE", "DATA", "CONFIG")},
        }
        argv = [neovim("0.11"), "--clean", "-n", "-u", str(start), "cart.py"]
        editor = Neovim(argv, env=env, cwd=shop, columns=96)
        try:
            wait_ready(editor)
            _suggestion(editor, target / "neovim-suggestion.svg")
            _edit(editor, target / "neovim-edit.svg")
        finally:
            editor.close()


def _suggestion(editor: Neovim, file: Path) -> None:
    editor.keys(f"{LINE}GA")
    editor.until(lambda: len(editor.screen[LINE - 1]) > 4)
    file.write_text(editor.picture(), encoding="utf-8", newline="\n")
    editor.keys("<Tab>")
    editor.until(lambda: len(editor.lines[LINE - 1]) > 4)
    editor.keys("<Esc>")


def _edit(editor: Neovim, file: Path) -> None:
    row = 1 + editor.lines.index("def names(items: list[Item]) -> list[str]:")
    editor.command(f"{row},{row + 1}Fimble document")
    editor.until(lambda: editor.lua("return vim.api.nvim_buf_get_name(0)") == "fimble://preview")
    editor.sees("accepts")
    file.write_text(editor.picture(), encoding="utf-8", newline="\n")
    editor.keys("q")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
