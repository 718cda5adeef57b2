"""What the user has chosen, and where nothing else may choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.engine.client import LocalEngine
from fimble.engine.connect import connect
from fimble.engine.remote.choice import (
    FORBID_VARIABLE,
    EngineChoice,
    choice_file,
    read_choice,
    write_choice,
)
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.fall_back import FallBackEngine
from fimble.errors import SettingsError

BOX = Endpoint.at("https://box.example", model="coder")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(FORBID_VARIABLE, raising=False)


def test_nothing_chosen_is_this_machine() -> None:
    assert read_choice() == EngineChoice()
    assert isinstance(connect("completion"), LocalEngine)


def test_a_choice_is_kept() -> None:
    write_choice(EngineChoice(chat=BOX, fall_back=True))
    assert read_choice() == EngineChoice(chat=BOX, fall_back=True)
    assert isinstance(connect("completion"), LocalEngine)
    assert isinstance(connect("chat"), FallBackEngine)
    write_choice(EngineChoice(completion=BOX, chat=BOX))
    assert isinstance(connect("completion"), RemoteEngine)


def test_what_forbids_it() -> None:
    write_choice(EngineChoice(completion=BOX, chat=BOX))
    assert isinstance(connect("chat", remote=False), LocalEngine)
    assert read_choice({FORBID_VARIABLE: "1"}) == EngineChoice()
    assert read_choice({FORBID_VARIABLE: "0"}).chat == BOX


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"chat": 1}', '{"chat": {"url": "x"}}', '{"fall_back": "yes"}', "\xff"]
)
def test_a_damaged_choice_is_no_other_choice(content: str) -> None:
    write_choice(EngineChoice())
    choice_file().write_text(content, encoding="latin-1", newline="")
    with pytest.raises(SettingsError, match=r"engine\.json") as caught:
        connect("completion")
    assert "engine use" in caught.value.next_step
