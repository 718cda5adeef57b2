"""Sessions are data: real code, typed again to the letter, and the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.bench.packages import copy_packages
from fimble.bench.session import Key, Session, draw_sessions, keys_for


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return copy_packages(["click", "starlette"], tmp_path_factory.mktemp("sessions"))


def typed(keys: tuple[Key, ...]) -> str:
    """What stands there after the keys; each must begin where it says it does."""
    text = ""
    for key in keys:
        assert key.at <= len(text)
        text = text + key.text if key.text else text[: len(text) - key.delete]
    return text


def after(session: Session) -> str:
    text = session.text
    for passage in session.passages:
        assert typed(passage.keys) == passage.text
        text = text[: passage.offset] + passage.text + text[passage.offset :]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_a_session_types_the_file_as_it_was(folders: list[Path], seed: int) -> None:
    sessions = draw_sessions(folders, 4, 150, seed)
    assert len({session.file for session in sessions}) == 4
    for session in sessions:
        assert after(session) == session.whole == session.file.read_text(encoding="utf-8")
        assert 100 <= session.keystrokes <= 150
        # What is typed is not there before.
        assert len(session.text) == len(session.whole) - sum(len(p.text) for p in session.passages)


def test_a_session_jumps_to_the_imports_and_back(folders: list[Path]) -> None:
    jumps = [s.passages for s in draw_sessions(folders, 6, 150, 1) if len(s.passages) == 3]
    assert jumps
    for first, elsewhere, back in jumps:
        assert "import " in elsewhere.text
        assert elsewhere.offset < first.offset < back.offset
        assert back.offset == first.offset + len(first.text) + len(elsewhere.text)


def test_the_same_seed_draws_the_same_sessions(folders: list[Path]) -> None:
    assert draw_sessions(folders, 2, 120, 7) == draw_sessions(folders, 2, 120, 7)
    assert draw_sessions(folders, 2, 120, 7) != draw_sessions(folders, 2, 120, 8)


def test_people_err_and_pause() -> None:
    text = "\n    def area(self):\n        return self.width * self.height\n    x = 1" * 8
    keys = list(keys_for(text, Random(1)))
    assert any(key.wrong and "\n" not in key.text for key in keys)
    assert any(key.delete == 4 for key in keys)  # a block's end
    pauses = sorted(key.pause for key in keys)
    assert 0.1 < pauses[len(pauses) // 2] < 0.3
    assert pauses[-1] > 1.0


@given(st.text("ab (:\n", max_size=60), st.integers(0, 99))
def test_keys_type_any_text(text: str, seed: int) -> None:
    lines = "\n".join(line.rstrip() for line in text.split("\n"))
    assert typed(tuple(keys_for(lines, Random(seed)))) == lines
