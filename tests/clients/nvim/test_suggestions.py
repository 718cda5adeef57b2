"""Suggestions in a real Neovim: seen on the screen, taken by keys, undone, repeated.

The same tests for 0.11, where the plugin draws, and 0.12, where Neovim does.
"""

from __future__ import annotations

import json
from datetime import date
from xml.etree import ElementTree

import pytest

from fimble.assist import statistics_store
from tests.clients.nvim.conftest import KEYS, Bench, server_of, silenced, told, wait_ready
from tests.support.neovim import Neovim

ADD = "def add(left, right):\n    \n\n\nprint(1)\n"


def offered(
    bench: Bench, answer: str | list[str] = "return left + right", text: str = ADD
) -> Neovim:
    """An editor in insert mode at the end of line 2, with the answer on the screen."""
    bench.says(("def add", answer))
    editor = bench.open(text)
    editor.command("2")
    editor.keys("A")
    first = answer if isinstance(answer, str) else answer[0]
    editor.sees(first.split("\n")[0])
    return editor


def test_ghost_text_is_on_the_screen_and_not_in_the_buffer(bench: Bench) -> None:
    editor = offered(bench)
    assert editor.screen[1] == "    return left + right"
    assert editor.lines == ["def add(left, right):", "    ", "", "", "print(1)"]


def test_a_picture_shows_the_ghost_text_in_its_own_colour(bench: Bench) -> None:
    editor = offered(bench)
    # Kept for who wants to look.
    file = bench.folder.parent / "suggestion.svg"
    file.write_text(editor.picture(), encoding="utf-8", newline="\n")
    texts = ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")
    colours = {text.text or "": text.get("fill") for text in texts}
    (code,) = {colour for text, colour in colours.items() if text.startswith("def")}
    assert colours["return left + right"] not in (None, code)


def test_tab_accepts(bench: Bench) -> None:
    editor = offered(bench)
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return left + right")
    assert editor.mode == "i"
    assert editor.cursor == (2, len("    return left + right"))


def test_what_was_accepted_is_counted(bench: Bench) -> None:
    bench.says(("def add", "return left + right"))
    bench.write("counted.py", ADD)
    home = bench.folder.parent / "counted"
    editor = bench.editor("counted.py", setup=KEYS, home=home)
    editor.command("2")
    editor.keys("A")
    editor.sees("return left + right")
    editor.keys("<M-w>")
    editor.until(lambda: editor.lines[1] == "    return")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return left + right")
    editor.until(lambda: not editor.lua(WAITING))
    editor.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIMBLE_HOME", str(home))
        # The server writes them down at its end, which Neovim does not wait for.
        editor.until(lambda: counted("accepted"))
        assert counted("accepted") == 1
        assert counted("partial_words") == 1


#: Whether the server has something to answer still.
WAITING = "return next(vim.lsp.get_clients({ name = 'fimble' })[1].requests) ~= nil"


def counted(measure: str) -> int:
    """What the statistics of FIMBLE_HOME hold of ``measure``."""
    found = statistics_store.read(date.min)
    return sum(count for key, count in found.items() if key.measure == measure)


def test_a_key_without_a_suggestion_does_what_it_did(bench: Bench) -> None:
    bench.says()
    editor = bench.open(ADD)
    editor.lua(
        "vim.keymap.set('i', '<M-w>', 'mapped')"
        "vim.keymap.set('i', '<M-l>', function() return 'a' .. 'b' end, { expr = true })"
    )
    editor.command("set expandtab shiftwidth=4 softtabstop=4")
    editor.command("5")
    editor.keys("o<Tab>x<M-w><M-l><M-d>")
    editor.until(lambda: editor.lines[5].startswith("    xmappedab"))


def test_words_and_lines_are_accepted_one_by_one(bench: Bench) -> None:
    editor = offered(bench, "total = left\n    return total")
    with silenced(editor):  # what is shown is what is left, and no other answer
        editor.keys("<M-w>")
        editor.until(lambda: editor.lines[1] == "    total")
        editor.sees("    total = left")
        editor.keys("<M-w>")
        editor.until(lambda: editor.lines[1] == "    total =")
        editor.sees("    return total")
        editor.keys("<M-l>")
        editor.until(lambda: editor.lines[1] == "    total = left")
        assert editor.lines[2] == ""
        editor.sees("    return total")
        editor.keys("<M-l>")
        editor.until(lambda: editor.lines[2] == "    return total")


def test_several_lines_stand_between_the_lines(bench: Bench) -> None:
    editor = offered(bench, "total = left + right\n    return total")
    assert editor.screen[1:4] == ["    total = left + right", "    return total", ""]
    assert len(editor.lines) == 5
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1:3] == ["    total = left + right", "    return total"])
    assert editor.cursor == (3, len("    return total"))


BLOCK = "total = left\n    total += right\n    return total"
#: The engine makes the first line, and then nothing for the time being.
SLOWLY = {"speed": 5.0, "piece": len("total = left\n  "), "stopped": True}


def growing(bench: Bench) -> Neovim:
    """The first line of a block is on the screen, and the rest is being made."""
    bench.says(("def add", BLOCK), **SLOWLY)
    editor = bench.open(ADD)
    editor.command("2")
    editor.keys("A")
    editor.sees("    total = left")
    return editor


def test_what_is_shown_grows_when_the_rest_of_it_is_there(bench: Bench) -> None:
    editor = growing(bench)
    assert editor.screen[2] == ""
    bench.says(("def add", "something else"), speed=5.0)
    editor.sees("    total += right")
    assert editor.screen[1:4] == f"    {BLOCK}".split("\n")
    assert len(editor.lines) == 5
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[3] == "    return total")


def test_what_was_dismissed_or_left_does_not_grow(bench: Bench) -> None:
    editor = growing(bench)
    editor.lua(COUNT_GROWN)
    editor.keys("<M-d>")
    editor.sees_no("total = left")
    bench.says(("def add", "something else"), speed=5.0)
    editor.until(lambda: editor.lua("return _G.grown") == 1)
    editor.until(lambda: not editor.lua(WAITING))
    assert editor.screen[1] == ""


#: Counts how often the server told of a suggestion that grew, after the plugin has heard it.
COUNT_GROWN = """
_G.grown = 0
local handlers = vim.lsp.get_clients({ name = "fimble" })[1].handlers
local hear = handlers["fimble/suggestionGrew"]
handlers["fimble/suggestionGrew"] = function(...)
  hear(...)
  _G.grown = _G.grown + 1
end
"""


def test_typing_on_keeps_what_fits_and_drops_what_does_not(bench: Bench) -> None:
    editor = offered(bench)
    editor.keys("return")
    editor.sees("    return left + right")
    assert editor.lines[1] == "    return"
    editor.keys(" 1")
    editor.sees_no("left + right")
    assert editor.lines[1] == "    return 1"


def test_dismissed_by_key_and_gone_when_the_cursor_moves(bench: Bench) -> None:
    editor = offered(bench)
    editor.keys("<M-d>")
    editor.sees_no("return left + right")
    assert editor.mode == "i"
    editor.keys("r")
    editor.sees("return left + right")
    # There, too, something may be suggested; but no longer here.
    editor.keys("<Down><Down><Down>")
    editor.until(lambda: editor.screen[1] == "    r")
    editor.keys("<Esc>")
    editor.sees_no("return left + right")


def test_next_and_previous_ask_for_several(bench: Bench) -> None:
    editor = offered(bench, ["return left + right", "return right + left"])
    editor.keys("<M-n>")
    editor.sees("    return right + left (2/2)")
    editor.keys("<M-n>")
    editor.sees("    return left + right (1/2)")
    editor.keys("<M-p>")
    editor.sees("    return right + left (2/2)")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return right + left")


def test_an_accepted_suggestion_is_one_undo_step(bench: Bench) -> None:
    editor = offered(bench)
    editor.keys("ret")
    editor.sees("    return left + right")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return left + right")
    editor.keys("  # sum<Esc>")
    assert editor.lines[1] == "    return left + right  # sum"
    editor.keys("u")
    assert editor.lines[1] == "    return left + right"
    editor.keys("u")
    assert editor.lines[1] == "    ret"
    editor.keys("u")
    assert editor.lines[1] == "    "
    editor.keys("<C-r><C-r>")
    assert editor.lines[1] == "    return left + right"


def test_dot_repeats_what_was_accepted(bench: Bench) -> None:
    editor = offered(bench)
    editor.keys("ret")
    editor.sees("    return left + right")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return left + right")
    editor.keys(" + 1<Esc>4G.")
    assert editor.lines[3] == "return left + right + 1"
    assert editor.lines[1] == "    return left + right + 1"


def test_what_stands_right_of_the_cursor_is_replaced_where_the_server_says_so(
    bench: Bench,
) -> None:
    bench.says(("total", "left, right)"))
    editor = bench.open("def total(left, right):\n    print()\n")
    editor.command("2")
    editor.keys("A<Left>")
    editor.sees("    print(left, right")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    print(left, right)")


def test_crlf_and_wide_characters(bench: Bench) -> None:
    bench.says(("def add", "return '漢'\n    # 😀"))
    editor = bench.open("# µ漢😀\r\ndef add(left, right):\r\n    \r\n", "crlf.py")
    editor.command("3")
    editor.keys("A")
    editor.sees("return '漢")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[2:] == ["    return '漢'", "    # 😀"])
    editor.keys("<Esc>")
    editor.command("write")
    written = (bench.folder / "crlf.py").read_bytes()
    assert written == "# µ漢😀\r\ndef add(left, right):\r\n    return '漢'\r\n    # 😀\r\n".encode()


def test_two_buffers_have_their_own_suggestions(bench: Bench) -> None:
    bench.says(("def sub", "return left - right"), ("def add", "return left + right"))
    bench.write("sub.py", ADD.replace("add", "sub"))
    editor = bench.open(ADD, "add.py")
    editor.command("2")
    editor.keys("A")
    editor.sees("return left + right")
    editor.keys("<Esc>")
    editor.command(f"edit {bench.folder}/sub.py | 2")
    editor.keys("A")
    editor.sees("return left - right")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return left - right")
    editor.keys("<Esc>")
    editor.command("silent write | buffer add.py")
    assert editor.lines[1] == "    "
    assert editor.lua("return #vim.lsp.get_clients({ name = 'fimble' })") == 1


def test_toggle_is_for_all_buffers(bench: Bench) -> None:
    editor = offered(bench)
    editor.keys("<Esc>")
    editor.command("Fimble toggle")
    assert "off" in told(editor)
    assert editor.lua("return require('fimble').statusline()").startswith("fimble: off")
    editor.keys("A")
    editor.keys("r")
    editor.sees_no("return left + right")
    editor.keys("<Esc>u")
    editor.command("Fimble toggle")
    editor.keys("A")
    editor.sees("return left + right")


def test_the_config_entry_is_enough(bench: Bench) -> None:
    bench.says(("def add", "return left + right"))
    bench.write("add.py", ADD)
    cmd = json.dumps(json.dumps(bench.serve))
    init = f"vim.lsp.config('fimble', {{ cmd = vim.json.decode({cmd}) }}); vim.lsp.enable('fimble')"
    editor = bench.editor("add.py", init=init, setup=None)
    editor.command("2")
    editor.keys("A")
    editor.sees("return left + right")
    editor.keys("<Tab>")
    editor.until(lambda: editor.lines[1] == "    return left + right")


def test_a_server_that_was_killed_comes_back(bench: Bench) -> None:
    bench.says(("def add", "return left + right"))
    bench.write("add.py", ADD)
    editor = bench.editor("add.py", setup="{ restart_ms = 50 }")
    find = "return vim.lsp.get_clients({ name = 'fimble' })[1].id"
    first = editor.lua(find)
    server_of(editor).kill()
    editor.until(lambda: "starting it again" in told(editor))
    editor.until(lambda: editor.lua("return #vim.lsp.get_clients({ name = 'fimble' })") == 1)
    editor.until(lambda: editor.lua(find) != first)
    wait_ready(editor)
    editor.command("2")
    editor.keys("A")
    editor.sees("return left + right")
