"""From the model's answer to the insertion: source with a cursor, answer, result."""

from __future__ import annotations

import pytest

from fimble.assist.trim import block_end, place_of, trim
from tests.assist.places import at_mark

#: source, answer, insertion
OVERLAP = [
    ("f(│)", "x)", "x"),
    ("print(│)", "len(x)", "len(x)"),
    ("f(│)", "g(x)", "g(x)"),
    ("f(g(│))", "x))", "x"),
    ("a[│]", "i]", "i"),
    ("x = │;", "1;", "1"),
    ('s = "│"', 'hello"', "hello"),
    ("f(│, y)", "x, y)", "x"),
    ("max│x)", "x + x", "x + x"),
    ("call(│)  # why", "a)", "a"),
    ("f(│)", ")", ""),
]

BLOCKS = [
    (
        "a line less indented ends it",
        "def f():\n    │\n",
        "a = 1\n    return a\nb = 2",
        "a = 1\n    return a",
    ),
    (
        "the next definition ends it",
        "│",
        "def f():\n    return 1\n\n\ndef g():\n    pass",
        "def f():\n    return 1",
    ),
    (
        "blank lines inside belong to it",
        "def f():\n    │",
        "a = 1\n\n    return a",
        "a = 1\n\n    return a",
    ),
    (
        "an else at the line's own depth stays",
        "    if a:│",
        "\n        b()\n    else:\n        c()",
        "\n        b()\n    else:\n        c()",
    ),
    ("tabs count as indentation", "\tif a:│", "\n\t\tb()\nc()", "\n\t\tb()"),
    (
        "at the left margin its first line says how deep it is",
        "class A:\n    def f(self):\n│\n",
        "        a()\n\n    def g(self):\n        b()",
        "        a()",
    ),
    ("white space at the end goes", "x = │", "1   \n\n", "1"),
    ("white space alone is nothing", "x = │", "  \n\n  ", ""),
    (
        "line ends are the document's",
        "if a:│\r\nb()\r\n",
        "\n    c()\r\n    d()",
        "\r\n    c()\r\n    d()",
    ),
    ("a spelled control token ends it", "x = │", "1<|endoftext|>garbage", "1"),
    (
        "unless the file has it itself",
        "A = '<|endoftext|>'\nB = │",
        "'<|endoftext|>'",
        "'<|endoftext|>'",
    ),
]


@pytest.mark.parametrize(("source", "answer", "insertion"), OVERLAP)
def test_what_stands_right_of_the_cursor_is_not_repeated(
    source: str, answer: str, insertion: str
) -> None:
    assert trim(answer, place_of(*at_mark(source))) == insertion


@pytest.mark.parametrize(
    ("source", "answer", "insertion"), [case[1:] for case in BLOCKS], ids=[c[0] for c in BLOCKS]
)
def test_blocks(source: str, answer: str, insertion: str) -> None:
    assert trim(answer, place_of(*at_mark(source))) == insertion


@pytest.mark.parametrize("answer", [case[2] for case in BLOCKS])
def test_an_end_that_was_found_while_the_answer_grew_stays(answer: str) -> None:
    """The engine is stopped at the first end seen: more text must not move it."""
    text = answer.replace("\r\n", "\n")
    ends = [block_end(text[:length], "    ") for length in range(len(text) + 1)]
    found = [end for end in ends if end is not None]
    assert len(set(found)) <= 1
    assert ends[-1] == (found[0] if found else None)
