"""``:Fimble chat`` and ``explain``: an answer streams into a split, is stopped, is applied."""

from __future__ import annotations

from tests.clients.nvim.conftest import Bench, told
from tests.support.neovim import Neovim

TEXT = "def total(prices):\n    return sum(price)\n\n\nprint(total([1]))\n"
CODE = "```python\ndef total(prices):\n    return sum(prices)\n```\n"


def said(editor: Neovim) -> list[str]:
    """The lines of the conversation, wherever the cursor is."""
    found: list[str] = editor.lua(
        "local buf = vim.fn.bufnr('^fimble://chat$')"
        " return buf == -1 and {} or vim.api.nvim_buf_get_lines(buf, 0, -1, true)"
    )
    return found


def window(editor: Neovim) -> str:
    """The name of the buffer that the cursor is in."""
    found: str = editor.lua("return vim.api.nvim_buf_get_name(0)")
    return found


def answered(editor: Neovim, text: str) -> None:
    """Waits for an answer with this line to be complete: a blank line follows it then."""
    editor.until(lambda: text in said(editor) and said(editor)[-2:] == ["", ""])


def opened(bench: Bench, text: str = TEXT) -> Neovim:
    editor = bench.open(text)
    editor.command("Fimble chat /clear")
    editor.command("1wincmd w")
    return editor


def test_an_answer_streams_and_is_stopped(plain_bench: Bench) -> None:
    plain_bench.says(("Why so", "First there was a word, and then another."), piece=20, hold=600)
    editor = opened(plain_bench)
    editor.command("Fimble chat Why so?")
    editor.sees("First there was")
    assert "another" not in "\n".join(said(editor))
    assert window(editor) == "fimble://chat/message"
    editor.keys("<C-c>")
    answered(editor, "> Stopped.")
    plain_bench.says(("Why not", "Because of it."))
    editor.keys("iWhy not?<CR>")
    answered(editor, "Because of it.")
    assert "## Why not?" in said(editor)
    assert editor.lines == [""]


def test_only_one_answer_is_made_at_a_time(plain_bench: Bench) -> None:
    plain_bench.says(("Why so", "First there was a word."), piece=10, hold=600)
    editor = opened(plain_bench)
    editor.command("Fimble chat Why so?")
    editor.sees("First ther")
    editor.keys("iAnd then?<CR>")
    editor.until(lambda: "an answer is being made" in told(editor))
    assert editor.lines == ["And then?"]
    editor.keys("<Esc>")
    editor.command("Fimble stop")
    answered(editor, "> Stopped.")


def test_code_of_an_answer_is_applied_where_it_belongs(plain_bench: Bench) -> None:
    plain_bench.says(("Mend it", CODE))
    editor = opened(plain_bench)
    name = window(editor)
    editor.command("1,2Fimble chat Mend it")
    answered(editor, "    return sum(prices)")
    editor.keys("<C-\\><C-n><C-w>k")
    assert window(editor) == "fimble://chat"
    editor.keys("gg/return sum<CR>a")
    editor.until(lambda: window(editor) == "fimble://preview")
    assert "+    return sum(prices)" in editor.lines
    editor.keys("<CR>")
    editor.command(f"buffer {name}")
    editor.until(lambda: editor.lines[1] == "    return sum(prices)")
    editor.command("silent write")
    assert editor.lua("return vim.bo.modified") is False
    assert "sum(prices)" in plain_bench.saved(name)


def test_what_is_no_code_is_not_applied(plain_bench: Bench) -> None:
    plain_bench.says(("Say it", "In words."))
    editor = opened(plain_bench)
    editor.command("Fimble chat Say it")
    answered(editor, "In words.")
    editor.keys("<C-\\><C-n><C-w>ka")
    editor.until(lambda: "no code of an answer" in told(editor))


def test_explain_is_about_the_selection(plain_bench: Bench) -> None:
    plain_bench.says(("return sum(price)", "It adds the prices."))
    editor = opened(plain_bench)
    editor.command("1,2Fimble explain")
    answered(editor, "It adds the prices.")
    assert said(editor)[0] == "## /explain"


def test_a_failure_is_told_in_the_conversation(plain_bench: Bench) -> None:
    plain_bench.says()
    editor = opened(plain_bench)
    editor.command("Fimble chat /nonsense")
    editor.until(lambda: any(line.startswith("> ") for line in said(editor)))
    assert "/nonsense" in "\n".join(said(editor)[1:])


def test_names_in_a_message_are_completed(plain_bench: Bench) -> None:
    plain_bench.says()
    editor = opened(plain_bench)
    editor.command("Fimble chat")
    editor.keys("i/expl<C-x><C-o>")
    editor.until(lambda: editor.lines[0].startswith("/explain"))
    editor.keys("<C-e><Esc>")
