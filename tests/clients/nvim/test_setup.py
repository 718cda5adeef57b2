"""Setting the plugin up by its README, with the real server, the real engine and a tiny package."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from fimble import system
from fimble.assist import statistics_store
from tests.clients.nvim.conftest import PLUGIN, ROOT, Bench, told, wait_ready
from tests.lsp.process import ended_engine, engine_pid
from tests.support.neovim import Neovim
from tests.support.neovim_versions import VERSIONS, neovim
from tests.support.tiny import make_tiny_package

README = (PLUGIN / "README.md").read_text(encoding="utf-8")
#: In a comment, where no noise is trimmed for what it does to the syntax.
SOURCE = "def area(width, height):\n    # the \n\n\nprint(area(2, 3))\n"

#: Counts the answers to requests for suggestions.
WATCH = """
vim.opt.shortmess:append("I")
_G.answers = 0
vim.api.nvim_create_autocmd("LspRequest", {
  callback = function(event)
    local request = event.data.request
    if request.method == "textDocument/inlineCompletion" and request.type == "complete" then
      _G.answers = _G.answers + 1
    end
  end,
})
"""


def blocks(language: str) -> list[str]:
    """The README's blocks of code in that language."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return found


class User:
    """Somebody with a home, the program ``fimble`` and a tiny model."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "work"
        self.folder.mkdir(parents=True)
        (home / "bin").mkdir()
        program = home / "bin" / "fimble"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fimble "$@"\n')
        program.chmod(0o755)
        make_tiny_package(system.home({"FIMBLE_HOME": str(self.data)}) / "models" / "tiny")

    @property
    def data(self) -> Path:
        return self.home / "fimble-home"

    @property
    def env(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.pathsep.join([str(self.home / "bin"), os.environ["PATH"]]),
            "FIMBLE_HOME": str(self.data),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_DATA_HOME": str(self.home / ".local" / "share"),
            "XDG_STATE_HOME": str(self.home / ".local" / "state"),
        }

    def configures(self, init: str) -> None:
        file = self.home / ".config" / "nvim" / "init.lua"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(WATCH + init, encoding="utf-8", newline="\n")

    def runs(self, script: str) -> None:
        env = {**os.environ, **self.env}
        subprocess.run(["sh", "-e", "-c", script], cwd=ROOT, env=env, check=True)

    def edits(self, program: str, text: str) -> Neovim:
        (self.folder / "area.py").write_text(text, encoding="utf-8", newline="\n")
        argv = [program, "-n", str(self.folder / "area.py")]
        editor = Neovim(argv, env=self.env, cwd=self.folder, columns=120)
        editor.until(lambda: editor.lua("return vim.v.vim_did_enter") == 1)
        return editor


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    found = User(tmp_path / "somebody")
    with ended_engine(found.data):
        yield found


@pytest.mark.parametrize("version", VERSIONS)
def test_installed_by_hand_it_suggests_and_counts(user: User, version: str) -> None:
    program = neovim(version)
    user.runs(blocks("sh")[0])
    user.configures(blocks("lua")[0])
    editor = user.edits(program, SOURCE)
    try:
        wait_ready(editor)
        assert "(tiny)" in editor.lua("return require('fimble').statusline()")
        editor.command("2")
        editor.keys("A")
        editor.until(lambda: editor.lua("return _G.answers") > 0)
        # Noise is never sure enough to be shown unasked.
        editor.lua("vim.api.nvim_feedkeys(vim.keycode('<Plug>(fimble-trigger)'), 'm', false)")
        backend = "vim.lsp.inline_completion and 'fimble.builtin' or 'fimble.ghost'"
        editor.until(lambda: editor.lua(f"return require({backend}).visible(0)"))
        shown = editor.until(lambda: len(editor.screen[1]) > len("    # the ") and editor.screen[1])
        editor.keys("<Tab>")
        editor.until(lambda: editor.lines[1] != "    # the ")
        editor.keys("<Esc>")
        editor.command("silent write")
        saved = (user.folder / "area.py").read_text(encoding="utf-8")
        assert saved.splitlines() == editor.lines
        assert shown.startswith(editor.lines[1].rstrip()[:12])
        pending = "return next(vim.lsp.get_clients({ name = 'fimble' })[1].requests) == nil"
        editor.until(lambda: editor.lua(pending))
        editor.command("checkhealth fimble")
        report = "\n".join(editor.lines)
        assert "fimble, version" in report
        assert "tiny" in report
        assert "accept: <Tab>" in report
    finally:
        editor.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIMBLE_HOME", str(user.data))
        editor.until(lambda: "accepted" in {key.measure for key in statistics_store.read(date.min)})


def test_two_windows_share_an_engine(user: User) -> None:
    program = neovim("0.11")
    user.runs(blocks("sh")[0])
    user.configures(blocks("lua")[0])
    editors = [user.edits(program, SOURCE)]
    try:
        wait_ready(editors[0])
        engine = engine_pid(user.data)
        editors.append(user.edits(program, SOURCE))
        wait_ready(editors[1])
        assert engine_pid(user.data) == engine
        editors.pop(0).close()
        editors[0].keys("2GA")
        editors[0].until(lambda: editors[0].lua("return _G.answers") > 0)
        assert engine_pid(user.data) == engine
    finally:
        for editor in editors:
            editor.close()


#: What a project may hold that would like to be run, by where it is.
PLANTED = {
    ".nvim.lua": "vim.fn.writefile({}, vim.env.HOME .. '/harm')",
    ".exrc": "call writefile([], $HOME . '/harm')",
    "lsp/fimble.lua": "vim.fn.writefile({}, vim.env.HOME .. '/harm') return {}",
    "lua/fimble/init.lua": "vim.fn.writefile({}, vim.env.HOME .. '/harm')",
    "plugin/fimble.lua": "vim.fn.writefile({}, vim.env.HOME .. '/harm')",
    "fimble": '#!/bin/sh\ntouch "$HOME/harm"',
    ".vscode/settings.json": '{"fimble.server.path": "./fimble"}',
}


def test_nothing_that_a_project_holds_is_run(user: User) -> None:
    program = neovim("0.11")
    user.runs(blocks("sh")[0])
    user.configures(blocks("lua")[0])
    for name, text in PLANTED.items():
        file = user.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        file.chmod(0o755)
    editor = user.edits(program, SOURCE)
    try:
        wait_ready(editor)
        editor.keys("2GA")
        editor.until(lambda: editor.lua("return _G.answers") > 0)
    finally:
        editor.close()
    assert not (user.home / "harm").exists()


def test_neovims_own_manager_installs_it(user: User) -> None:
    program = neovim("0.12")
    if shutil.which("git") is None:
        pytest.skip("there is no git, which Neovim's manager needs")
    (init,) = [block for block in blocks("lua") if "vim.pack" in block]
    # A repository with the plugin in it, instead of all of fimble's history.
    user.runs(
        "mkdir -p ~/fimble/clients && cp -r clients/nvim ~/fimble/clients/ && cd ~/fimble"
        " && git init -q && git add . && git -c user.name=x -c user.email=x@localhost"
        " commit -q -m x"
    )
    user.configures(init.replace(" })\n", " }, { confirm = false })\n", 1))
    editor = user.edits(program, SOURCE)
    try:
        wait_ready(editor)
        assert editor.lua("return vim.fn.exists(':Fimble')") == 2
    finally:
        editor.close()


def test_what_cannot_be_meant_is_named(plain_bench: Bench) -> None:
    plain_bench.write("a.py", "")
    options = "{ nonsense = 1, restart_ms = 'soon', keys = { jump = '<C-x>' } }"
    editor = plain_bench.editor("a.py", setup=options, cmd=["no-such-program"], ready=False)
    said = told(editor)
    assert "keys.jump is not an action" in said
    assert "nonsense is not an option" in said
    assert "restart_ms must be a number" in said
    assert "no-such-program is not an executable program" in said
    editor.command("Fimble status")
    assert "no server runs for this file" in told(editor)


def test_settings_change_while_the_server_runs(plain_bench: Bench) -> None:
    plain_bench.says(("def area", "return width * height"))
    plain_bench.write("c.py", "def area(width, height):\n    \n")
    editor = plain_bench.editor("c.py")
    again = (
        "require('fimble').setup({ cmd = require('fimble.options').current.cmd, settings = %s })"
    )
    editor.lua(again % "{ completion = { enabled = false } }")
    line = "return require('fimble').statusline()"
    editor.until(lambda: editor.lua(line).startswith("fimble: off"))
    editor.lua(again % "{}")
    wait_ready(editor)
    editor.command("2")
    editor.keys("A")
    editor.sees("return width * height")


def plant(folder: Path, ran: Path) -> Path:
    """A program ``fimble`` in a folder that is made; it leaves a mark where it is run."""
    folder.mkdir(parents=True)
    program = folder / "fimble"
    program.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(ran))}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("windows", [False, True])
def test_a_program_that_came_with_the_folder_is_passed_over(
    plain_bench: Bench, tmp_path: Path, windows: bool
) -> None:
    plain_bench.write("g.py", "")
    editor = plain_bench.open("")
    cwd, ours = tmp_path / "Project" / "src", plant(tmp_path / "bin", tmp_path / "ran")
    plant(cwd, tmp_path / "ran")
    (tmp_path / "Project" / ".git").mkdir()
    theirs = plant(tmp_path / "Project" / ".venv", tmp_path / "ran")
    separator = ";" if windows else ":"

    def find(*folders: str | Path, home: Path = tmp_path / "home", name: str = "fimble") -> object:
        around = {"path": separator.join(map(str, folders)), "cwd": str(cwd), "home": str(home)}
        return editor.lua(
            "local path, refused = require('fimble.program').find(...)"
            " return { path or vim.NIL, refused or vim.NIL }",
            name,
            {**around, "windows": windows},
        )

    assert find(".", "", cwd, theirs.parent, ours.parent) == [str(ours), None]
    assert find(".", "", theirs.parent) == [None, str(theirs)]
    assert find(".", "", tmp_path) == [None, None]
    assert find(theirs.parent, home=cwd) == [str(theirs), None], "all of home is no project"
    assert find(name=str(theirs)) == [str(theirs), None], "somebody chose it"
    if windows:
        shouted = str(cwd).replace("Project", "PROJECT")
        (tmp_path / "PROJECT").symlink_to(cwd.parent)
        assert find(shouted) == [None, f"{shouted}/fimble"]


def test_a_planted_program_is_named_and_never_run(plain_bench: Bench, tmp_path: Path) -> None:
    planted, ran = plain_bench.folder / "planted", tmp_path / "ran"
    program = plant(planted, ran)
    plain_bench.write("h.py", "")
    editor = plain_bench.editor(
        "h.py",
        init=f"vim.env.PATH = '{planted}:' .. vim.fn.getcwd()",
        setup="{ cmd = { 'fimble', 'serve' } }",
        ready=False,
    )
    assert f"{program} lies in the folder that is edited" in told(editor)
    editor.lua("vim.lsp.enable('fimble')")
    for command in ("edit!", "Fimble doctor", "checkhealth fimble"):
        editor.command(command)
    assert f"{program} lies in the folder that is edited" in "\n".join(editor.lines)
    assert not editor.lua("return vim.lsp.get_clients()") and not ran.exists()


def test_what_is_no_setting_is_named_by_the_server(plain_bench: Bench) -> None:
    plain_bench.write("d.py", "")
    editor = plain_bench.editor("d.py", setup="{ settings = { completion = { multiline = 3 } } }")
    editor.until(lambda: "completion.multiline must be" in told(editor))


def test_no_key_is_taken_but_that_which_accepts(plain_bench: Bench) -> None:
    plain_bench.write("e.py", "")
    editor = plain_bench.editor("e.py")
    ours = "return vim.tbl_map(function(map) return map.lhs end, vim.tbl_filter(function(map)"
    ours += " return vim.startswith(map.desc or '', 'fimble') and not map.lhs:find('Plug') end,"
    for mode in "nvxsoic":
        for maps in ("vim.api.nvim_get_keymap(...)", "vim.api.nvim_buf_get_keymap(0, ...)"):
            wanted = ["<Tab>"] if mode == "i" and "buf" in maps else []
            assert editor.lua(f"{ours} {maps}))", mode) == wanted, (mode, maps)


def test_checkhealth_says_what_is_missing(plain_bench: Bench) -> None:
    plain_bench.write("f.py", "")
    editor = plain_bench.editor("f.py", cmd=["no-such-program"], ready=False)
    editor.command("checkhealth fimble")
    report = "\n".join(editor.lines)
    assert "no-such-program is not an executable program" in report
    assert "name it in setup's cmd" in report
    assert "No server runs" in report


def test_the_help_has_every_command_and_option(plain_bench: Bench, tmp_path: Path) -> None:
    shutil.copytree(PLUGIN, tmp_path / "nvim")
    plain_bench.write("b.py", "")
    editor = plain_bench.editor("b.py", setup=None, ready=False)
    editor.command(f"helptags {tmp_path / 'nvim' / 'doc'}")
    editor.lua("vim.opt.runtimepath:prepend(...)", str(tmp_path / "nvim"))
    for tag in ("fimble", ":Fimble", "fimble.setup()", "fimble-keys", "<Plug>(fimble-accept)"):
        editor.command(f"help {tag}")
        assert "fimble.txt" in editor.lua("return vim.api.nvim_buf_get_name(0)")
    text = "\n".join(editor.lines)
    for name in editor.lua("return vim.fn.getcompletion('Fimble ', 'cmdline')"):
        assert re.search(rf"^:(\[range\])?Fimble {name}\b", text, re.MULTILINE), name
    for name in editor.lua("return vim.tbl_keys(require('fimble.options').defaults)"):
        assert re.search(rf"^    {name} +\(", text, re.MULTILINE), name
