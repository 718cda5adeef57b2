"""Which words of a message are commands and mentions, and which only look like some."""

from __future__ import annotations

import pytest

from fimble.assist.chat.mentions import Slash, mentions_in, slash_in

#: message, mentions as kind and name
MENTIONS: dict[str, list[tuple[str, str]]] = {
    "what is @file:src/app.py?": [("file", "src/app.py")],
    "look at @file:src/app.py.": [("file", "src/app.py")],
    "(see @file:a.py, @file:b.py)": [("file", "a.py"), ("file", "b.py")],
    'and @file:"my notes.txt" too': [("file", "my notes.txt")],
    "@file:größe🙂.py": [("file", "größe🙂.py")],
    "@symbol:Cart.total and @symbol:place_order": [
        ("symbol", "Cart.total"),
        ("symbol", "place_order"),
    ],
    "@workspace where are prices? @diff": [("workspace", ""), ("diff", "")],
    "#selection explain": [("selection", "")],
    "@file:a.py @file:a.py": [("file", "a.py")],
    "@file:C:\\src\\a.py": [("file", "C:\\src\\a.py")],
    # no mentions
    "@property and @pytest.fixture": [],
    "write to me@file:x": [],
    "npm i @types/node @workspace/a": [],
    "@differ @workspaces #selections": [],
    "@file: @symbol:": [],
    "issue #12, a##selection": [],
    "": [],
}


@pytest.mark.parametrize("message", MENTIONS)
def test_mentions(message: str) -> None:
    assert [(item.kind, item.name) for item in mentions_in(message)] == MENTIONS[message]
    assert all(item.text in message for item in mentions_in(message))


SLASHES: dict[str, Slash | None] = {
    "/explain": Slash("explain", ""),
    "  /explain why\nso slow?": Slash("explain", "why\nso slow?"),
    "/nonsense x": Slash("nonsense", "x"),
    "/usr/bin is what?": None,
    "/Explain": None,
    "what does /explain do": None,
    "/": None,
    "//": None,
    "": None,
}


@pytest.mark.parametrize("message", SLASHES)
def test_slash_commands(message: str) -> None:
    assert slash_in(message) == SLASHES[message]
