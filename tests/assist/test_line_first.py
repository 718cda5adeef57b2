"""What goes on being made behind a line that is shown: what syntax calls for, and no more.

Counted in tokens of the answer (here four bytes each, one character a piece).
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from fimble.assist.fit import calls_for_more
from fimble.assist.place import place_of
from fimble.assist.suggestion import Suggestion
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


#: what it shows, language, source, answer, what a user of a slow model has at first, and at last
BODIES = [
    (
        "a body on a line of its own",
        "python",
        "def f(x):\n    │\n",
        f"a = g(x)\n    return a\n\n\n{MUCH}",
        "a = g(x)",
        "a = g(x)\n    return a",
    ),
    (
        "a body below the cursor",
        "python",
        "def f(x):│\n",
        f"\n    a = g(x)\n    return a\n\n\n{MUCH}",
        "\n    a = g(x)",
        "\n    a = g(x)\n    return a",
    ),
    (
        "a body in braces",
        "javascript",
        "function f(x) {\n  │\n}\n",
        f"let a = g(x);\n  return a;\n}}\n{MUCH}",
        "let a = g(x);",
        "let a = g(x);\n  return a;",
    ),
    (
        "a language without a grammar",
        "some-language",
        "begin\n    │\nend\n",
        f"a := g(x)\n    return a\nend\n{MUCH}",
        "a := g(x)",
        "a := g(x)\n    return a",
    ),
    (
        "a body that begins with a header",
        "python",
        "def f(x):\n    │\n",
        f"for y in x:\n        g(y)\n\n\n{MUCH}",
        "for y in x:\n        g(y)",
        "for y in x:\n        g(y)",
    ),
    (
        "a body that begins with an open bracket",
        "python",
        "def f(x):\n    │\n",
        f"return g(\n        x\n    )\n\n\n{MUCH}",
        "return g(\n        x\n    )",
        "return g(\n        x\n    )",
    ),
]


def typist_on(speed: float, language: str, source: str, answer: str) -> Typist:
    engine = ScriptedEngine([answer], piece=1)
    engine.info = replace(engine.info, decode_tokens_per_s=speed)
    typist = Typist(engine, source)
    typist.document, typist.cursor = at_mark(source, path="", language=language)
    return typist


async def in_a_hurry(typist: Typist) -> Suggestion:
    return await typist.service.complete(
        typist.document, typist.cursor, typist.settings, name="a", hurried=True
    )


@pytest.mark.parametrize(
    ("language", "source", "answer", "first", "last"),
    [body[1:] for body in BODIES],
    ids=[body[0] for body in BODIES],
)
async def test_a_slow_model_shows_the_first_line_of_a_body_and_goes_on(
    language: str, source: str, answer: str, first: str, last: str
) -> None:
    typist = typist_on(20.0, language, source, answer)
    suggestion = await in_a_hurry(typist)
    assert suggestion.text == first
    assert suggestion.growing == (first != last)
    if suggestion.growing:
        # The line and its end, and nothing of what follows.
        assert suggestion.usage.completion_tokens == typist.engine.count(f"{first}\n")
    assert await typist.ask() == last
    assert typist.calls == 1


@pytest.mark.parametrize("speed", [0.0, 200.0], ids=["unknown", "quick"])
async def test_a_quick_model_shows_all_of_a_body(speed: float) -> None:
    _, language, source, answer, _, last = BODIES[0]
    suggestion = await in_a_hurry(typist_on(speed, language, source, answer))
    assert (suggestion.text, suggestion.growing) == (last, False)


async def test_the_rest_of_a_body_is_there_when_its_first_line_was_accepted() -> None:
    _, language, source, answer, first, last = BODIES[0]
    typist = typist_on(20.0, language, source, answer)
    typist.type((await in_a_hurry(typist)).text)
    assert first + await typist.ask() == last
    assert typist.calls == 1
