"""The real model while a real function is typed over stdio: work, responses, what is shown."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fimble.bench.fimble_editor import fimble_editor
from fimble.bench.player import Played, play
from fimble.bench.session import Passage, Session, keys_for

pytestmark = pytest.mark.model

BEFORE = '''import math


def area(radius):
    """Return the area of a circle."""
    return math.pi * radius ** 2
'''
TYPED = '''

def is_even(n):
    """Return True if n is even, False otherwise."""
    return n % 2 == 0'''
AFTER = '''


def is_odd(n):
    """Return True if n is odd, False otherwise."""
    return n % 2 == 1
'''
#: How long the user looks at the last line for a suggestion, which ends as soon as it is read.
PATIENCE = 120.0


def session(file: Path) -> Session:
    """Types ``TYPED`` with an error or two, and waits for a suggestion in its last line."""
    keys = list(keys_for(TYPED, Random(27)))
    assert any(key.delete for key in keys)
    last = TYPED.index("return n")
    keys = [replace(key, pause=PATIENCE) if key.at == last else key for key in keys]
    passage = Passage(len(BEFORE), TYPED, tuple(keys))
    return Session(file, BEFORE + AFTER, BEFORE + TYPED + AFTER, (passage,))


def echoes(text: str) -> bool:
    """Whether a suggestion ends with the line that follows it in the document."""
    following = AFTER.strip().splitlines()[0]
    return text.rstrip().splitlines()[-1].strip() == following


async def test_a_function_is_typed(real_package: Path, tmp_path: Path) -> None:
    file = tmp_path / "numbers_of_mine.py"
    file.write_text(BEFORE + AFTER, encoding="utf-8", newline="\n")
    played = Played()
    shown: list[str] = []
    async with fimble_editor(real_package, tmp_path) as editor:
        await play(session(file), editor, played, on_shown=shown.append)
        text = editor.editor.document.text
        asked, responses = editor.editor.asked, editor.editor.responses
    # The server has shut down: no response comes after this.
    assert [responses[identifier] for identifier in asked] == [1] * len(asked)
    tokens = sorted(each.computed_tokens for each in played.keystrokes)
    assert tokens[len(tokens) // 2] <= 4
    # One anchor for all of it: what is computed is the file once, and what was typed.
    assert played.work.computed_tokens < 300
    assert played.accepted >= 1
    assert not [each for each in shown if each.strip() and echoes(each)]
    assert text == BEFORE + TYPED + AFTER
    ast.parse(text)
