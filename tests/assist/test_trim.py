"""From the model's answer to the insertion: source with a cursor, answer, result."""

from __future__ import annotations

import pytest

from fimble.assist.place import place_of
from fimble.assist.trim import trim
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


#: language, source, answer, insertion
SYNTAX = {
    "a call keeps the bracket that is its own": (
        "python",
        "print(│)\n",
        "len(x)",
        "len(x)",
    ),
    "what closes a call may open another one": ("python", "f(│)\n", "x) + g(y)", "x) + g(y"),
    "the rest of the line, and more": ("python", "f(│, z)\n", "x, z) + g(y)", "x"),
    "lines below are not repeated": (
        "python",
        "def f():\n    a = 1\n    │\n    return a\n",
        "for x in a:\n        b()\n    return a",
        "for x in a:\n        b()",
    ),
    "a brace that is there already": (
        "javascript",
        "function f() {\n  │\n}\n",
        "return 1;\n}",
        "return 1;",
    ),
    "a brace that is missing": (
        "javascript",
        "function f() {│\n",
        "\n  return 1;\n}",
        "\n  return 1;\n}",
    ),
    "a bracket and a brace that are missing": (
        "javascript",
        "it('works', () => {│\n",
        "\n  run();\n});",
        "\n  run();\n});",
    ),
    "an end that is there already": ("ruby", "def f\n  │\nend\n", "run\nend", "run"),
    "an end that is missing": ("ruby", "def f\n  │\n", "run\nend", "run\nend"),
    "the indentation that the line has already": (
        "python",
        "def f():\n    │\n",
        "    return 1",
        "return 1",
    ),
    "tabs stay tabs": (
        "python",
        "def f():\n\tif a:\n\t\tb()\n\n\ndef g():\n\t│\n",
        "if c:\n        d()\n    e()",
        "if c:\n\t\td()\n\te()",
    ),
    "spaces stay spaces": (
        "python",
        "def f():\n  if a:\n    b()\n\n\ndef g():\n  │\n",
        "if c:\n\t\td()\n\te()",
        "if c:\n    d()\n  e()",
    ),
    "a fence around the code": (
        "python",
        "def f():\n│\n",
        "```python\n    return 1\n```\nThis function returns 1.",
        "    return 1",
    ),
    "a fence and an explanation behind the code": (
        "python",
        "def f():\n    │\n",
        "return 1\n```\nThis returns 1.",
        "return 1",
    ),
    "a fence is text in Markdown": ("markdown", "# A\n│", "```\nx\n```", "```\nx\n```"),
    "lines that go round": (
        "python",
        "def f():\n    │\n",
        "a()\n    b()\n    b()\n    b()\n    b()",
        "a()\n    b()",
    ),
    "a line that goes round": (
        "python",
        "x = │\n",
        "[1, " + "2, " * 30,
        "[1, 2",
    ),
    "closing brackets may repeat": (
        "javascript",
        "f(() => {│\n",
        "\n  g([\n    [\n      [\n      ]\n    ]\n  ]);\n});",
        "\n  g([\n    [\n      [\n      ]\n    ]\n  ]);\n});",
    ),
}


@pytest.mark.parametrize("name", SYNTAX)
def test_by_syntax(name: str) -> None:
    language, source, answer, insertion = SYNTAX[name]
    assert trim(answer, place_of(*at_mark(source, language=language, path=""))) == insertion


def test_a_last_line_that_was_cut_off_is_left_out() -> None:
    place = place_of(*at_mark("def f():\n    │\n"))
    assert trim("a = 1\n    b = (a +", place, complete=False) == "a = 1"
    assert trim("a = (1 +", place, complete=False) == "a = (1 +"
