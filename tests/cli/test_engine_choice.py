"""``fimble engine use`` and ``key``: choosing a server is the user's own act, and reversible."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.cli import main
from fimble.engine.remote.choice import FORBID_VARIABLE
from tests.cli.conftest import Ran
from tests.support.openai_server import StandInServer

LOCAL = {"completion": None, "chat": None, "fall_back": False}


class Here:
    """Runs ``fimble`` in this process: two dozen commands, none of which starts an engine."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Ran:
        self._capsys.readouterr()
        code = main(arguments)
        return Ran(code, *self._capsys.readouterr())


@pytest.fixture
def bare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Here:
    """A home with nothing in it, and nothing on standard input."""
    home = tmp_path / "home"
    monkeypatch.setenv("FIMBLE_HOME", str(home))
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    return Here(home, capsys)


@pytest.fixture
def server() -> Iterator[StandInServer]:
    with StandInServer() as server:
        yield server


def chosen(bare: Here) -> object:
    return bare("engine", "status", "--json").json.get("chosen", LOCAL)


def test_a_server_is_asked_then_kept_then_left(bare: Here, server: StandInServer) -> None:
    assert chosen(bare) == LOCAL
    used = bare("engine", "use", server.url, "--for", "chat")
    assert used.code == 0
    assert used.out.splitlines() == [
        "completions: the engine of this machine",
        f"chat and edits: {server.url} (on this machine)",
    ]
    assert used.out in bare("engine", "status").out
    assert server.asked, "it was asked what it can"
    local = bare("engine", "use", "local", "--json")
    assert local.json == LOCAL == chosen(bare)


def test_each_purpose_has_its_own(bare: Here, server: StandInServer) -> None:
    bare("engine", "use", server.url, "--model", "coder", "--fall-back")
    left = bare("engine", "use", "local", "--for", "completion", "--json").json
    assert left["completion"] is None
    assert (left["chat"]["url"], left["chat"]["model"]) == (server.url, "coder")
    assert left["fall_back"]


def test_a_server_that_does_not_answer_changes_nothing(bare: Here, server: StandInServer) -> None:
    bare("engine", "use", server.url)
    before = chosen(bare)
    with StandInServer() as gone:
        pass
    used = bare("engine", "use", gone.url)
    assert used.code == 1
    assert gone.url.split("/")[2] in used.err
    assert chosen(bare) == before


def test_a_model_that_the_server_has_not_is_named_with_those_it_has(
    bare: Here, server: StandInServer
) -> None:
    used = bare("engine", "use", server.url, "--model", "larger")
    assert used.code == 1
    assert "no model larger" in used.err and "coder" in used.err
    assert chosen(bare) == LOCAL


def test_one_that_only_chats_is_said_to_see_half(bare: Here, server: StandInServer) -> None:
    server.controls = False
    used = bare("engine", "use", server.url)
    assert used.code == 0
    assert "before the cursor only" in used.err


@pytest.mark.parametrize(
    "url", ["box", "ftp://box/v1", "https://me:secret@box/v1", "http://box:99999/v1"]
)
def test_what_is_no_address(bare: Here, url: str) -> None:
    used = bare("engine", "use", url)
    assert used.code == 1
    assert "address" in used.err and "secret" not in used.err


def test_where_engines_elsewhere_are_forbidden(
    bare: Here, server: StandInServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare("engine", "use", server.url)
    monkeypatch.setenv(FORBID_VARIABLE, "1")
    assert chosen(bare) == LOCAL
    used = bare("engine", "use", server.url)
    assert used.code == 1 and FORBID_VARIABLE in used.err


def test_a_damaged_choice_is_named_and_can_be_replaced(bare: Here, server: StandInServer) -> None:
    bare("engine", "use", server.url)
    (bare.home / "engine.json").write_text("{", encoding="utf-8")
    status = bare("engine", "status")
    assert status.code == 1
    assert "engine.json" in status.err and "fimble engine use local" in status.err
    used = bare("engine", "use", "local")
    assert used.code == 0 and "replaced" in used.err
    assert chosen(bare) == LOCAL


def test_a_key_is_never_an_argument(bare: Here) -> None:
    assert bare("engine", "key", "https://box.example/v1", "sesame").code == 2
    empty = bare("engine", "key", "https://box.example/v1")
    assert empty.code == 2 and "No key" in empty.err


def test_what_is_chosen_is_asked_for_completions_and_edits(
    bare: Here, server: StandInServer, tmp_path: Path
) -> None:
    source = tmp_path / "sum.py"
    source.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    server.answer = " a + b"  # the blank before the cursor is taken back and said again
    bare("engine", "use", server.url)
    before = len(server.streamed)
    completed = bare("complete", f"{source}:2:12", "--json")
    assert completed.json["text"] == "a + b"
    assert completed.json["provider"].startswith("remote: 127.0.0.1")
    edited = bare("edit", f"{source}:1-2", "swap a and b", "--json")
    assert edited.code == 1, "what the stand-in says is no code"
    assert len(server.streamed) >= before + 2
    assert all(body["model"] == "coder" for body in server.streamed)
    assert not (bare.home / "run").exists(), "no engine of this machine was started"


def test_a_named_model_is_this_machines(bare: Here, server: StandInServer, tmp_path: Path) -> None:
    source = tmp_path / "sum.py"
    source.write_text("def add(a, b):\n    return \n", encoding="utf-8")
    bare("engine", "use", server.url)
    asked = len(server.asked)
    completed = bare("complete", f"{source}:2:12", "--model", "nothing-of-that-name")
    assert completed.code == 1 and "nothing-of-that-name" in completed.err
    assert len(server.asked) == asked
    bare("engine", "stop")
