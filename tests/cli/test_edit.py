"""``fimble edit`` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.cli.app import main
from tests.cli.conftest import CommandLine
from tests.edit.places import fence
from tests.support.scripted_engine import ScriptedEngine

SOURCE = b"\xef\xbb\xbfdef f(n):\r\n\tx = n\r\n\treturn x"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.py"
    path.write_bytes(SOURCE)
    return path


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngine:
    """The engine of the command, which says ``return n`` for the whole function."""
    engine = ScriptedEngine([fence("def f(n):\n    return n")])
    monkeypatch.setattr("fimble.cli.edit.engine_for", lambda *chosen: engine)
    return engine


DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,2 @@\n def f(n):\r\n-\tx = n\r\n-\treturn x\n"


def test_a_diff_is_printed_and_the_file_stays(
    file: Path, says: ScriptedEngine, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert main(["edit", "a.py:1", "--task", "simplify"]) == 0
    out = capfdbinary.readouterr().out.decode()
    assert out.replace("\r\n", "\n").startswith(DIFF.replace("\r\n", "\n"))
    assert "+\treturn n" in out and file.read_bytes() == SOURCE


def test_applied_with_mark_line_ends_and_tabs(
    file: Path, says: ScriptedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["edit", "a.py:1-3", "say less", "--apply", "--json"]) == 0
    assert file.read_bytes() == b"\xef\xbb\xbfdef f(n):\r\n\treturn n"
    shown = json.loads(capsys.readouterr().out)
    assert (shown["applied"], shown["task"], shown["is_new"]) == (True, "custom", False)
    assert shown["usage"]["completion_tokens"] > 0 and shown["diff"].startswith("--- a/a.py")


TWO = "def f(n):\n    x = n\n\n    return x\n\n\ndef g(n):\n    return n\n"


@pytest.mark.parametrize(
    ("place", "task", "about"),
    [
        ("4", "simplify", "Simplify f"),
        ("2", "optimise", "Optimise f"),
        ("2", "errors", "Add error handling to f"),
        ("4", "rename", "Rename for clarity in f"),
        ("8", "document", "Document g"),
        ("4", "fix", "Fix f"),
        ("4", "custom", "Edit line 4"),
        ("4-4", "custom", "Edit line 4"),
        ("2-4", "custom", "Edit lines 2 to 4"),
    ],
)
def test_a_line_alone_is_a_place(
    file: Path, says: ScriptedEngine, capsys: pytest.CaptureFixture[str],
    place: str, task: str, about: str,
) -> None:  # fmt: skip
    file.write_text(TWO, encoding="utf-8", newline="\n")
    name = "g" if about.endswith(" g") else "f"
    code = f'def {name}(n):\n    """Gives n back."""\n    return n + 0'
    says.answers = [fence("x = n + 1" if task == "custom" else code)]
    assert main(["edit", f"a.py:{place}", "more", "--task", task, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["about"] == about


def test_what_is_wrong_with_a_line_is_told_as_a_problem(file: Path, says: ScriptedEngine) -> None:
    assert main(["edit", "a.py:2", "n may be None", "--task", "fix"]) == 0
    assert "\n- at x = n: n may be None\n" in says.requests[0].messages[-1].content


def test_tests_are_written_into_a_new_file(
    file: Path, says: ScriptedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    says.answers = [fence("from a import f\n\n\ndef test_f():\n    assert f(1) == 1")]
    assert main(["edit", "a.py:1", "--task", "tests", "--apply"]) == 0
    assert "--- /dev/null" in capsys.readouterr().out
    made = file.parent / "test_a.py"
    assert made.read_bytes().startswith(b"from a import f\r\n")
    assert file.read_bytes() == SOURCE


def test_a_refusal_shows_the_answer_and_exits_with_1(
    file: Path, says: ScriptedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    says.answers = ["I would rather not. \x1b[31m"]
    assert main(["edit", "a.py:1", "--task", "simplify", "--apply"]) == 1
    err = capsys.readouterr().err
    assert "Nothing was changed." in err and "I would rather not. [31m" in err
    assert main(["edit", "a.py:1", "--task", "simplify", "--json"]) == 1
    assert '"name": "prose"' in capsys.readouterr().out
    assert file.read_bytes() == SOURCE


def test_a_file_that_was_changed_meanwhile_is_left(
    file: Path, says: ScriptedEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: object) -> str:
        file.write_bytes(b"other\n")
        return fence("def f(n):\n    return n")

    says.answers = answer
    assert main(["edit", "a.py:1", "--task", "simplify", "--apply"]) == 1
    assert "changed meanwhile" in capsys.readouterr().err
    assert file.read_bytes() == b"other\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a.py:1"], 2),
        (["a.py:3-1", "x"], 2),
        (["a.py:1", "--task", "nonsense"], 2),
        (["none.py:1", "x"], 1),
        (["a.py:9-9", "x"], 1),
    ],
)
def test_exit_codes(file: Path, says: ScriptedEngine, arguments: list[str], code: int) -> None:
    assert main(["edit", *arguments]) == code
    assert not says.requests


def test_a_template_that_fails_is_named(
    file: Path,
    says: ScriptedEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    own = tmp_path / "home" / "templates" / "edit" / "simplify.jinja"
    own.parent.mkdir(parents=True)
    own.write_text("{% for x in y %}", encoding="utf-8", newline="\n")
    assert main(["edit", "a.py:1", "--task", "simplify"]) == 1
    assert str(own) in capsys.readouterr().err and not says.requests


@pytest.fixture(scope="module")
def real(real_home: Path) -> Iterator[CommandLine]:
    run = CommandLine(real_home)
    yield run
    run("engine", "stop")


@pytest.mark.model
def test_the_real_model_corrects_a_name(real: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "price.py"
    source = "def total(prices):\n    return sum(price)\n"
    path.write_text(source, encoding="utf-8", newline="\n")
    ran = real("edit", f"{path}:1-2", 'undefined name "price"', "--task", "fix", "--apply")
    assert ran.code == 0, ran
    assert path.read_text(encoding="utf-8") == source.replace("sum(price)", "sum(prices)")


@pytest.mark.model
def test_the_benchmark_runs_and_damages_nothing(real: CommandLine) -> None:
    ran = real("bench", "edit", "--tasks", "2", "--json")
    assert ran.code == 0, ran
    assert ran.json["tasks"] == 2 and ran.json["damaged"] == 0
    assert {score["task"] for score in ran.json["scores"]} == {"document", "types"}
