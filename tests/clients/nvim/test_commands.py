"""``:Fimble``: edits that are seen before they are made, reports, completion of arguments."""

from __future__ import annotations

import json

import pytest

from tests.clients.nvim.conftest import Bench, told, wait_ready
from tests.support.neovim import Neovim

TEXT = "def total(prices):\n    return sum(price)\n\n\nprint(total([1]))\n"
MENDED = "def total(prices):\n    return sum(prices)"
DIFF = ["-    return sum(price)", "+    return sum(prices)"]


def fence(code: str) -> str:
    return f"```python\n{code}\n```\n"


def shown(editor: Neovim) -> list[str]:
    """The lines of the current buffer, once it is the preview."""
    editor.until(lambda: editor.lua("return vim.api.nvim_buf_get_name(0)") == "fimble://preview")
    return editor.lines


def test_an_edit_is_a_diff_until_it_is_accepted(plain_bench: Bench) -> None:
    plain_bench.says(("Sum the right name", fence(MENDED)))
    editor = plain_bench.open(TEXT, "price.py")
    editor.command("1,2Fimble edit Sum the right name")
    lines = shown(editor)
    assert [line for line in lines if line.startswith(("-  ", "+  "))] == DIFF
    assert "--- price.py" in lines
    editor.keys("<CR>")
    editor.until(lambda: editor.lines[1] == "    return sum(prices)")
    editor.command("silent write")
    assert (plain_bench.folder / "price.py").read_text() == TEXT.replace("(price)", "(prices)")
    editor.keys("u")
    assert editor.lines == TEXT.splitlines()


def test_a_discarded_edit_changes_nothing(plain_bench: Bench) -> None:
    plain_bench.says(("Sum the right name", fence(MENDED)))
    editor = plain_bench.open(TEXT)
    editor.command("1,2Fimble edit Sum the right name")
    shown(editor)
    editor.keys("q")
    editor.until(lambda: editor.lines == TEXT.splitlines())
    assert editor.lua("return #vim.api.nvim_list_wins()") == 1
    editor.command("Fimble accept")
    assert "no change to accept" in told(editor)
    assert editor.lines == TEXT.splitlines()


def test_an_edit_of_text_that_was_changed_since_is_not_made(plain_bench: Bench) -> None:
    plain_bench.says(("Sum the right name", fence(MENDED)))
    editor = plain_bench.open(TEXT)
    editor.command("1,2Fimble edit Sum the right name")
    shown(editor)
    editor.keys("<C-w>p")
    editor.command("$delete")
    editor.command("Fimble accept")
    assert "changed since" in told(editor)
    assert editor.lines == TEXT.splitlines()[:-1]


def test_without_words_an_edit_asks_for_them(plain_bench: Bench) -> None:
    plain_bench.says(("Sum the right name", fence(MENDED)))
    editor = plain_bench.open(TEXT)
    editor.command("2")
    editor.keys(":Fimble edit<CR>")
    editor.sees("Edit:")
    editor.keys("Sum the right name<CR>")
    assert [line for line in shown(editor) if line.startswith(("-  ", "+  "))] == DIFF


def test_a_selection_is_what_an_edit_is_about(plain_bench: Bench) -> None:
    plain_bench.says(("Another name", fence("    return sum(prices)")))
    editor = plain_bench.open(TEXT)
    editor.command("2")
    editor.keys("V:Fimble edit Another name<CR>")
    assert [line for line in shown(editor) if line.startswith(("-  ", "+  "))] == DIFF


def test_fix_sends_the_diagnostics(plain_bench: Bench) -> None:
    plain_bench.says(("price is not defined", fence(MENDED)))
    editor = plain_bench.open(TEXT)
    editor.lua(
        "vim.diagnostic.set(vim.api.nvim_create_namespace('lint'), 0, {{ lnum = 1, col = 15,"
        " end_col = 20, message = 'price is not defined', source = 'lint' }})"
    )
    editor.command("2Fimble fix")
    assert [line for line in shown(editor) if line.startswith(("-  ", "+  "))] == DIFF


def test_document_takes_the_documentation(plain_bench: Bench) -> None:
    code = 'def total(prices):\n    """Sum of the prices."""\n    return sum(price)'
    plain_bench.says(("def total", fence(code)))
    editor = plain_bench.open(TEXT)
    editor.command("1Fimble document")
    assert '+    """Sum of the prices."""' in shown(editor)
    editor.command("Fimble accept")
    editor.until(lambda: editor.lines[1] == '    """Sum of the prices."""')


def test_tests_go_into_a_new_file(plain_bench: Bench) -> None:
    code = "from sums import total\n\n\ndef test_total():\n    assert total([1]) == 1"
    plain_bench.says(("def total", fence(code)))
    editor = plain_bench.open(TEXT, "sums.py")
    editor.command("1Fimble tests")
    lines = shown(editor)
    assert "--- /dev/null" in lines
    assert "+def test_total():" in lines
    editor.keys("<CR>")
    editor.until(lambda: editor.lua("return #vim.api.nvim_list_wins()") == 1)
    editor.command("silent wall")
    (made,) = plain_bench.folder.rglob("test_sums.py")
    assert "def test_total():" in made.read_text()


def test_a_refusal_says_why(plain_bench: Bench) -> None:
    plain_bench.says(("Do what cannot be done", "I would rather not."))
    editor = plain_bench.open(TEXT)
    editor.command("1,2Fimble edit Do what cannot be done")
    editor.until(lambda: "fimble: " in told(editor))
    assert "fimble://preview" not in editor.lua("return vim.api.nvim_buf_get_name(0)")
    editor.command("only | buffer part* | ")


def test_an_edit_is_stopped(plain_bench: Bench) -> None:
    plain_bench.says(("Sum the right name", fence(MENDED)), delay=600)
    editor = plain_bench.open(TEXT)
    editor.command("1,2Fimble edit Sum the right name")
    editor.command("Fimble stop")
    editor.until(lambda: "Stopped" in told(editor))
    editor.command("Fimble stop")
    assert "nothing is being made" in told(editor)


def test_the_servers_own_menu_asks_for_an_instruction(plain_bench: Bench) -> None:
    plain_bench.says(("Sum the right name", fence(MENDED)))
    editor = plain_bench.open(TEXT)
    editor.command("2")
    editor.lua(
        "vim.lsp.buf.code_action({ apply = true, filter = function(action)"
        " return vim.startswith(action.title, 'Edit with') end })"
    )
    editor.sees("Edit:")
    editor.keys("Sum the right name<CR>")
    assert [line for line in shown(editor) if line.startswith(("-  ", "+  "))] == DIFF


MADE = '    """Sum of the prices."""'
DOCUMENTED = f"def total(prices):\n{MADE}\n    return sum(price)"


def choose_document(editor: Neovim) -> None:
    """Takes it from Neovim's own menu of code actions."""
    editor.lua(
        "vim.lsp.buf.code_action({ apply = true, filter = function(action)"
        " return vim.startswith(action.title, 'Document') end })"
    )


def test_an_edit_of_the_servers_own_menu_is_a_diff_first(bench: Bench) -> None:
    bench.says(("def total", fence(DOCUMENTED)))
    editor = bench.open(TEXT, "menu.py")
    choose_document(editor)
    assert f"+{MADE}" in shown(editor)
    editor.keys("q")
    editor.until(lambda: editor.lines == TEXT.splitlines())
    choose_document(editor)
    assert f"+{MADE}" in shown(editor)
    editor.keys("<CR>")
    editor.until(lambda: editor.lines[1] == MADE)
    editor.command("silent write")
    assert bench.saved("menu.py").startswith(f"{DOCUMENTED}\n")


def test_an_edit_of_the_servers_own_menu_is_made_at_once_if_so_wished(bench: Bench) -> None:
    bench.says(("def total", fence(DOCUMENTED)))
    bench.write("once.py", TEXT)
    editor = bench.editor("once.py", setup="{ settings = { edit = { confirm = false } } }")
    choose_document(editor)
    editor.until(lambda: editor.lines[1] == MADE)
    editor.command("silent write")
    assert bench.saved("once.py").startswith(f"{DOCUMENTED}\n")


def test_prompt_shows_what_a_suggestion_is_made_of(plain_bench: Bench) -> None:
    plain_bench.says()
    editor = plain_bench.open(TEXT)
    editor.keys("2G$")
    editor.command("Fimble prompt")
    editor.until(lambda: any("sum(price" in line for line in prompt(editor)))
    assert any(line.startswith("## ") and "tokens)" in line for line in prompt(editor))


def prompt(editor: Neovim) -> list[str]:
    found: list[str] = editor.lua(
        "local buf = vim.fn.bufnr('^fimble://prompt$')"
        " return buf == -1 and {} or vim.api.nvim_buf_get_lines(buf, 0, -1, true)"
    )
    return found


def test_status_and_statusline(plain_bench: Bench) -> None:
    editor = plain_bench.open(TEXT)
    editor.command("Fimble status")
    assert "model: scripted on none" in told(editor)
    assert "suggestions: on" in told(editor)
    assert editor.lua("return require('fimble').statusline()") == "fimble: ready (scripted)"
    editor.command("enew")
    assert editor.lua("return require('fimble').statusline()") == ""


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("Fimble do", ["doctor", "document"]),
        ("2Fimble ex", ["explain"]),
        ("Fimble chat /cl", ["/clear"]),
        ("Fimble fix no", []),
    ],
)
def test_arguments_are_completed(plain_bench: Bench, typed: str, found: list[str]) -> None:
    editor = plain_bench.open(TEXT)
    assert editor.lua("return vim.fn.getcompletion(..., 'cmdline')", typed) == found


def test_what_is_no_subcommand_is_named(plain_bench: Bench) -> None:
    editor = plain_bench.open(TEXT)
    editor.command("Fimble dance")
    assert "no dance; one of accept, chat, " in told(editor)


def test_restart_starts_another_server(plain_bench: Bench) -> None:
    editor = plain_bench.open(TEXT)
    find = "local c = vim.lsp.get_clients({ name = 'fimble' })[1] return c and c.id"
    first = editor.lua(find)
    editor.command("Fimble restart")
    editor.until(lambda: editor.lua(find) not in (first, None))
    wait_ready(editor)


def test_doctor_runs_the_program_beside_the_server(plain_bench: Bench) -> None:
    editor = plain_bench.open(TEXT)
    options = "require('fimble.options').current"
    editor.lua(f"_G.cmd = {options}.cmd; {options}.cmd = vim.json.decode(...)", json.dumps(DOCTOR))
    try:
        editor.command("Fimble doctor")
        editor.until(lambda: "asked for doctor" in editor.lines)
    finally:
        editor.lua(f"{options}.cmd = _G.cmd")


#: In place of a program that looks at a machine, whatever that is.
DOCTOR = ["sh", "-c", 'echo "asked for $0"', "serve"]
