"""What is remembered is what was inserted, also where it is not what the model wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.manner import Manner
from fimble.assist.place import place_of
from fimble.assist.trim import trim
from tests.assist.places import at_mark
from tests.assist.typing import Typist
from tests.support.scripted_engine import ScriptedEngine

TABS = "def f():\n\tif a:\n\t\tb()\n\n\ndef g():\n\t│\n"
SPACES = TABS.replace("\t", "  ")

#: what is rewritten, language, source, answer, insertion
FIXTURES = [
    (
        "spaces to tabs",
        "python",
        TABS,
        "if c:\n        d()\n    e()",
        "if c:\n\t\td()\n\te()",
    ),
    ("tabs to spaces", "python", SPACES, "if c:\n\t\td()\n\te()", "if c:\n    d()\n  e()"),
    (
        "two spaces a level to tabs",
        "python",
        TABS,
        "if c:\n    d()\n  e()",
        "if c:\n\t\td()\n\te()",
    ),
    ("indentation that is there", "python", "def f():\n    │\n", "    return 1", "return 1"),
    (
        "a fence in front",
        "python",
        "def f():\n    │\n",
        "```python\nreturn 1\n```\nThis returns 1.",
        "return 1",
    ),
    (
        "line ends",
        "python",
        "def f():\n    │\n",
        "a = 1\r\n    return a",
        "a = 1\n    return a",
    ),
    (
        "nothing, of a body between braces",
        "javascript",
        "function f() {\n  a();\n}\nfunction g() {│\n}\n",
        "\n  b();\n  {\n    c();\n  }",
        "\n  b();\n  {\n    c();\n  }",
    ),
]
IDS = [fixture[0] for fixture in FIXTURES]
CASES = [fixture[1:] for fixture in FIXTURES]


@pytest.mark.parametrize("piece", [0, 1, 3])
@pytest.mark.parametrize(("language", "source", "answer", "insertion"), CASES, ids=IDS)
async def test_it_is_typed_through_without_a_call(
    language: str, source: str, answer: str, insertion: str, piece: int
) -> None:
    typist = Typist(ScriptedEngine([answer], piece=piece), source)
    typist.document, typist.cursor = at_mark(source, path="", language=language)
    shown = await typist.ask()
    assert insertion.startswith(shown)
    for number, character in enumerate(insertion[:-1], 1):
        typist.type(character)
        text = await typist.ask()
        # What is shown then is what follows, up to the end of its line at least.
        assert insertion[number:].startswith(text)
        assert text or not insertion[number:].split("\n")[0].strip()
    assert typist.calls == 1


@pytest.mark.parametrize(("language", "source", "answer", "insertion"), CASES, ids=IDS)
async def test_deleting_back_into_it_finds_it_again(
    language: str, source: str, answer: str, insertion: str
) -> None:
    typist = Typist(ScriptedEngine([answer]), source)
    typist.document, typist.cursor = at_mark(source, path="", language=language)
    assert await typist.ask() == insertion
    typist.type(insertion)
    typist.delete(len(insertion))
    assert await typist.ask() == insertion
    assert typist.calls == 1


def test_a_fence_behind_what_was_typed_ends_it() -> None:
    place = place_of(*at_mark("def f():\n    return 1│\n"))
    assert trim("\n```\nThis returns 1.", place, continued=True) == ""


PIECES = st.lists(
    st.sampled_from(
        ["if a:", "b()", "\n", "\r\n", "\r", "    ", "  ", "\t", "```", "~", "`py", "x"]
    ),
    max_size=12,
)
SOURCES = [TABS, SPACES, "x = │\n", "│", "def f():\n    │\n", "def f():│\n", "# a│\n", "\t│"]


@given(st.sampled_from(SOURCES), PIECES)
def test_more_of_an_answer_never_changes_what_there_was(source: str, pieces: list[str]) -> None:
    place = place_of(*at_mark(source))
    growing, former, answer = Manner(place), "", ""
    for piece in pieces:
        for character in piece:
            answer += character
            text = growing.of(answer, complete=False)
            assert text.startswith(former)
            former = text
    whole = growing.of(answer)
    assert whole.startswith(former)
    # However it came.
    assert whole == Manner(place).of(answer)
