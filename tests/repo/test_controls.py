"""What a terminal or a message must not get, wherever it came from."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from fimble.cli.output import readable
from fimble.controls import without_controls
from fimble.engine.remote.problems import in_short
from fimble.errors import FimbleError
from fimble.lsp.messages import Messages

NASTY = {
    "clears the screen": "\x1b[2J",
    "sets the title": "\x1b]0;evil\x07",
    "sets the clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "a link that hides": "\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\",
    "eight bits": "\x9b2J",
    "goes back": "safe\x08\x08\x08\x08evil\r",
    "reads backwards": "\u202egnp.exe",
    "isolates": "\u2066if admin\u2069",
    "another line": "a\u2028b\u2029c\x85d",
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_nothing_of_it_is_left(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[types.ShowMessageParams] = []
    messages = Messages(shown.append)
    messages.notice(text)
    messages.warning(text)
    messages.error(FimbleError(text, next_step=text))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    said = [each.message for each in shown]
    assert len(said) == 3
    for each in (*said, readable(text), without_controls(text), in_short(text)):
        assert each.replace("\n", "").isprintable()


def test_a_pipe_gets_a_result_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: False)
    assert readable("\x1b[2J") == "\x1b[2J"


@given(st.text())
def test_only_what_steers_is_taken(text: str) -> None:
    kept = without_controls(text)
    assert kept == without_controls(kept)
    gone = [char for char in text if char not in kept]
    assert all(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in gone)
    one_line = without_controls(text, " ")
    assert "\n" not in one_line and "\t" not in one_line


def test_what_people_write_stays() -> None:
    text = "\tdef grüße():\n    return '漢字 שלום 👩‍👩‍👧'\n"
    assert without_controls(text) == text
