"""What goes on being made behind a line that is shown: what syntax calls for, and no more.

Counted in tokens of the answer (here four bytes each, one character a piece).
"""

from __future__ import annotations

import asyncio

import pytest

from fimble.assist.fit import calls_for_more
from fimble.assist.place import place_of
from tests.assist.places import at_mark
from tests.assist.typing import Typist
from tests.support.scripted_engine import ScriptedEngine

MUCH = "\n".join(f"more_{number} = {number}" for number in range(50))

#: what it shows, language, source, answer, what is made of it
FIXTURES = [
    ("a line that is whole", "python", "x = │\n", f"1\n{MUCH}", "1"),
    ("the end of a call", "python", "print(│\n", f"x)\n{MUCH}", "x)"),
    ("a line among others", "javascript", "let x = │\nlet y;\n", f"1;\n{MUCH}", "1;"),
    ("plain text", "some-language", "Dear │\n", f"reader,\n{MUCH}", "reader,"),
    ("an item inside brackets", "python", "f(\n    a, │\n)\n", f"b,\n    c,\n{MUCH}", "b,"),
    ("the line below one that is whole", "python", "x = 1│\n", f"\ny = 2\n{MUCH}", "\ny = 2"),
    (
        "a header and its body",
        "python",
        "def │\n",
        f"f(x):\n    a()\n    b()\n{MUCH}",
        "f(x):\n    a()\n    b()\n",
    ),
    (
        "a header below a line that is whole",
        "python",
        "x = 1│\n",
        f"\nfor y in x:\n    a()\n{MUCH}",
        "\nfor y in x:\n    a()\n",
    ),
    (
        "open brackets",
        "python",
        "x = │\n",
        f"f(\n    1,\n    2,\n)\n{MUCH}",
        "f(\n    1,\n    2,\n)\n",
    ),
    ("a long string", "python", "x = │\n", f'"""a\nb\n"""\n{MUCH}', '"""a\nb\n"""\n'),
    (
        "what a decorator is for",
        "python",
        "@│\n",
        f"cache\ndef f():\n    a()\n{MUCH}",
        "cache\ndef f():\n    a()\n",
    ),
    (
        "a block of braces",
        "javascript",
        "if (│\n",
        "a) {\n  b();\n}\n" + "c();\n" * 50,
        "a) {\n  b();\n}\n",
    ),
]


@pytest.mark.parametrize(
    ("language", "source", "answer", "made"),
    [fixture[1:] for fixture in FIXTURES],
    ids=[fixture[0] for fixture in FIXTURES],
)
async def test_the_answer_ends(language: str, source: str, answer: str, made: str) -> None:
    engine = ScriptedEngine([answer], piece=1)
    typist = Typist(engine, source)
    typist.document, typist.cursor = at_mark(source, path="", language=language)
    shown = await typist.ask()
    while typist.service.is_at_work("a"):
        await asyncio.sleep(0)
    growing = typist.service._growing["a"]
    assert growing.text == made
    assert shown == made.split("\n")[0]
    # What tells that it is over is the line end, or the beginning of what comes after.
    beyond = answer[: len(made)] + answer[len(made) :].split("=")[0]
    assert growing.usage.completion_tokens <= engine.count(beyond)
    assert engine.cancelled == engine.requests


@pytest.mark.parametrize(
    ("source", "text", "more"),
    [
        ("x = │\n", "1", False),
        ("x = │\n", "1 + \\", True),
        ("if a:│\n    b()\n", "  # why", False),
        ("if a│\n", ":", True),
        ("x = │\n", "{  # [", True),
    ],
)
def test_what_calls_for_more(source: str, text: str, more: bool) -> None:
    assert calls_for_more(place_of(*at_mark(source)), text) == more
