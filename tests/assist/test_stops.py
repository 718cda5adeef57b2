"""Where an answer ends while it grows: source with a cursor, answer, the part that is kept."""

from __future__ import annotations

import pytest

from fimble.assist.place import place_of
from fimble.assist.stops import Stops
from tests.assist.places import at_mark

#: what it shows, language, source, shape, answer, what is kept of it
FIXTURES = [
    (
        "a body ends where its function ends",
        "python",
        "def f():\n    │\n",
        "body",
        "a = 1\n\n    # more\n    return a\n\n\ndef g():\n    pass\n",
        "a = 1\n\n    # more\n    return a\n\n\n",
    ),
    (
        "an else clause is no sibling",
        "python",
        "def f():\n    if a:│\n",
        "body",
        "\n        b()\n    else:\n        c()\n    d()\n",
        "\n        b()\n    else:\n        c()\n",
    ),
    (
        "a body whose header is a clause",
        "python",
        "if a:\n    b()\nelse:│\n",
        "body",
        "\n    c()\n    d()\ne()\n",
        "\n    c()\n    d()\n",
    ),
    (
        "a statement ends at its sibling",
        "python",
        "def f():\n    a = 1\n    │\n    return a\n",
        "statement",
        "for x in a:\n        b(x)\n        c(x)\n    d()\n",
        "for x in a:\n        b(x)\n        c(x)\n",
    ),
    (
        "a statement goes on over lines that look like siblings",
        "python",
        "a = 1\n│\n",
        "statement",
        "b = f(\n1,\n2,\n)\nc = 3\n",
        "b = f(\n1,\n2,\n)\n",
    ),
    (
        "text in a string may be at any depth",
        "python",
        "def f():\n    │\n",
        "body",
        's = """\nno code\n"""\n    return s\nx = 1\n',
        's = """\nno code\n"""\n    return s\n',
    ),
    (
        "one line in a comment",
        "python",
        "# add │\n",
        "line",
        "two numbers\ndef add(a, b):\n",
        "two numbers",
    ),
    (
        "one line inside brackets",
        "python",
        "f(\n    a,\n    │\n)\n",
        "line",
        "b,\n    c,\n",
        "b,",
    ),
    ("one line where a line goes on", "python", "x = │\n", "line", "1\ny = 2\n", "1"),
    (
        "a brace ends its node, and is kept",
        "javascript",
        "function f() {│\n",
        "body",
        "\n  a();\n  if (b) {\n    c();\n  }\n}\n\nfunction g() {\n",
        "\n  a();\n  if (b) {\n    c();\n  }\n}",
    ),
    (
        "inside a class that is not closed yet",
        "java",
        "class A {\n  void f() {\n    │\n  }\n}\n",
        "body",
        "a();\n    b();\n  }\n\n  void g() {\n    c();\n",
        "a();\n    b();\n  }",
    ),
    (
        "a statement in a block of braces",
        "go",
        "func f() {\n\ta := 1\n\t│\n\treturn\n}\n",
        "statement",
        "if a > 0 {\n\t\tb()\n\t}\n\tc()\n",
        "if a > 0 {\n\t\tb()\n\t}\n",
    ),
    (
        "a chain of calls is one statement",
        "javascript",
        "function f() {\n  a();\n  │\n}\n",
        "statement",
        "p.then(b)\n    .then(c);\n  d();\n",
        "p.then(b)\n    .then(c);\n",
    ),
    (
        "a word ends a body",
        "ruby",
        "def f\n  │\n",
        "body",
        "a\n  if b\n    c\n  end\nend\n\ndef g\n",
        "a\n  if b\n    c\n  end\nend",
    ),
    (
        "below a line that is whole comes one statement",
        "python",
        "a = 1│\n",
        "statement",
        "\nfor b in c:\n    d()\ne()\n",
        "\nfor b in c:\n    d()\n",
    ),
    (
        "plain text goes by indentation",
        "some-language",
        "one:\n  │\n",
        "statement",
        "a\n  b\nc\n",
        "a\n  b\n",
    ),
]

IDS = [fixture[0] for fixture in FIXTURES]
PATHS = {"some-language": "a.unknown"}


@pytest.mark.parametrize(
    ("language", "source", "shape", "answer", "kept"), [f[1:] for f in FIXTURES], ids=IDS
)
def test_where_an_answer_ends(
    language: str, source: str, shape: str, answer: str, kept: str
) -> None:
    document, offset = at_mark(source, language=language, path=PATHS.get(language, ""))
    place = place_of(document, offset, "always" if source.startswith("a = 1│") else "auto")
    assert place.shape == shape
    assert answer[: Stops(place).end(answer, complete=True)] == kept


@pytest.mark.parametrize(
    ("language", "source", "answer", "kept"),
    [(f[1], f[2], f[4], f[5]) for f in FIXTURES],
    ids=IDS,
)
def test_the_end_is_found_while_the_answer_grows_and_stays(
    language: str, source: str, answer: str, kept: str
) -> None:
    """Character by character; the end is known a word after it, not at the answer's end."""
    document, offset = at_mark(source, language=language, path=PATHS.get(language, ""))
    whole = source.startswith("a = 1│")
    stops = Stops(place_of(document, offset, "always" if whole else "auto"))
    ends = [stops.end(answer[:length]) for length in range(len(answer) + 1)]
    assert [end for end in ends if end is not None][:1] == [len(kept)]
    assert {end for end in ends if end is not None} == {len(kept)}


@pytest.mark.parametrize(
    ("multiline", "source", "shape"),
    [
        ("never", "def f():│\n", "line"),
        ("never", "│\n", "line"),
        ("always", "x = │\n", "statement"),
        ("always", "f(│)\n", "line"),
        ("auto", "class A:\n\n    │", "body"),
        ("auto", "def f():\n    │\n    return 1\n", "statement"),
        ("auto", 'def f():\n    """Says what."""\n    # how\n    │\n', "body"),
        ("auto", 'def f():\n    """Says.\n\n    More.\n    """\n    │\n\nx = 1\n', "body"),
        ("auto", "def f():\n    a = 'b'\n    │\n", "statement"),
        ("auto", 'x = """\n│\n"""\n', "line"),
        ("auto", "x = {│\n", "line"),
    ],
)
def test_one_line_or_a_block(multiline: str, source: str, shape: str) -> None:
    assert place_of(*at_mark(source), multiline=multiline).shape == shape  # type: ignore[arg-type]


def test_a_line_that_is_whole_already_goes_on_with_the_next_one() -> None:
    place = place_of(*at_mark("x = 1│\n"))
    assert Stops(place).end("\ny = 2\nz = 3") == 0
    assert Stops(place, continued=True).end("\ny = 2\nz = 3") == len("\ny = 2")
