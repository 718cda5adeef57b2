"""``FILE:LINE:COL``: positions, bad files, and the JSON that comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble import system
from fimble.assist.complete_file import complete_in_file, parse_place, read_document
from fimble.assist.settings import CompletionSettings
from fimble.assist.workspace import project_root
from fimble.errors import DocumentError, UsageError
from tests.support.scripted_engine import Answer, ScriptedEngine, prompt_as_text


def write(folder: Path, data: bytes) -> Path:
    path = folder / "a.py"
    path.write_bytes(data)
    return path


async def test_result_as_json(tmp_path: Path) -> None:
    path = write(tmp_path, b"def f(x):\r\n    \r\n")
    engine = ScriptedEngine([Answer("y = x\n    return y", reused_tokens=3)])
    result = await complete_in_file(engine, path, 2, 5, CompletionSettings())
    data = result.to_json(explain=True)
    total = data["timings_ms"].pop("total")
    assert total >= 0
    prompt = engine.count(prompt_as_text(engine.requests[0].prompt))
    assert data == {
        "text": "y = x\r\n    return y",
        "range": {"start": {"line": 2, "column": 5}, "end": {"line": 2, "column": 5}},
        "usage": {
            "prompt_tokens": prompt,
            "reused_tokens": 3,
            "computed_tokens": prompt - 3,
            "completion_tokens": 5,
        },
        "timings_ms": {"queued": 0.0, "prefill": 0.0, "decode": 0.0},
        "model": "scripted",
        "provider": "none",
        "sections": [
            {
                "path": str(path),
                "kind": "prefix",
                "reason": "text before the cursor",
                "tokens": data["sections"][0]["tokens"],
                "text": "def f(x):\n    ",
            },
            {
                "path": str(path),
                "kind": "suffix",
                "reason": "text after the cursor",
                "tokens": 1,
                "text": "\n",
            },
        ],
        "typed": "",
        "layout": "fim",
        "budget_tokens": 2048,
        "left_out": [],
    }
    assert set(result.to_json()) == {"text", "range", "usage", "timings_ms", "model", "provider"}


async def test_columns_count_characters_and_a_byte_order_mark_is_none(tmp_path: Path) -> None:
    path = write(tmp_path, '\ufeffs = "µ漢😀"\n'.encode())
    engine = ScriptedEngine(["!"])
    result = await complete_in_file(engine, path, 1, 9, CompletionSettings())
    assert prompt_as_text(engine.requests[0].prompt) == (
        '<fim_prefix>s = "µ漢😀<fim_suffix>"\n<fim_middle>'
    )
    assert result.start == result.end == (1, 9)


@pytest.mark.parametrize(
    ("line", "column", "complaint"),
    [
        (0, 1, "has no line 0: its lines are 1 to 2"),
        (3, 1, "has no line 3: its lines are 1 to 2"),
        (1, 0, "has no column 0: its columns are 1 to 3"),
        (1, 4, "has no column 4: its columns are 1 to 3"),
    ],
)
async def test_positions_outside_the_file(
    tmp_path: Path, line: int, column: int, complaint: str
) -> None:
    path = write(tmp_path, b"ab\r\n")
    with pytest.raises(DocumentError, match=complaint):
        await complete_in_file(ScriptedEngine([""]), path, line, column, CompletionSettings())


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\x7fELF\0\0", "is a binary file"),
        ("x = 1".encode("utf-16"), "is a binary file"),
        (b"x = '\xe9'", "is not UTF-8 text: byte 5"),
        (b"x" * 2_000_001, "is larger than 2 MB"),
    ],
)
def test_files_that_are_no_source(tmp_path: Path, data: bytes, complaint: str) -> None:
    with pytest.raises(DocumentError, match=complaint):
        read_document(write(tmp_path, data))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        read_document(tmp_path / "none.py")
    with pytest.raises(DocumentError, match="is a folder"):
        read_document(tmp_path)


async def test_the_ends_of_a_file_are_places(tmp_path: Path) -> None:
    path = write(tmp_path, b"")
    assert (await complete_in_file(ScriptedEngine(["x"]), path, 1, 1, CompletionSettings())).start
    path = write(tmp_path, b"a\n")
    result = await complete_in_file(ScriptedEngine(["x"]), path, 2, 1, CompletionSettings())
    assert result.start == (2, 1)


def test_places() -> None:
    assert parse_place("app.py:12:5") == (Path("app.py"), 12, 5)
    assert parse_place("C:\\a b\\app.py:1:2") == (Path("C:\\a b\\app.py"), 1, 2)


@pytest.mark.parametrize("text", ["app.py", "app.py:1", "app.py:1:x", ":1:2", "app.py:-1:2", ""])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageError, match="is not a place in a file"):
        parse_place(text)


async def test_the_projects_other_files_are_in_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    shapes = "def area_of(width: int, height: int) -> int:\n    return width * height\n"
    (tmp_path / "shapes.py").write_text(shapes, encoding="utf-8")
    path = write(tmp_path, b"from shapes import area_of\n\nprint(area_of())\n")
    engine = ScriptedEngine(["2, 3"])
    result = await complete_in_file(engine, path, 3, 15, CompletionSettings())
    sections = result.to_json(explain=True)["sections"]
    assert [(part["path"], part["kind"]) for part in sections] == [
        ("shapes.py", "definition"),
        ("a.py", "prefix"),
        ("a.py", "suffix"),
    ]
    prompt = prompt_as_text(engine.requests[0].prompt)
    assert prompt.startswith(f"<repo_name>{tmp_path.name}\n<file_sep>shapes.py\ndef area_of(")
    assert str(tmp_path) not in prompt


@pytest.mark.parametrize("name", [".env", "server.pem", "ignored.py"])
async def test_secret_and_ignored_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    (tmp_path / name).write_text("KEY = 1\n", encoding="utf-8")
    engine = ScriptedEngine(["x"])
    with pytest.raises(DocumentError, match="No prompt is made of"):
        await complete_in_file(engine, tmp_path / name, 1, 1, CompletionSettings())
    assert not engine.requests


def test_a_repository_of_settings_in_the_users_home_is_no_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "user_folder", lambda: tmp_path / "me")
    for folder in (".git", "me/.git", "me/work/a/src"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "me/work/a/go.mod").touch()
    assert project_root(tmp_path / "me/notes.py") is None
    assert project_root(tmp_path / "me/work/a/src/a.go") == tmp_path / "me/work/a"
    assert project_root(tmp_path / "other/a.py") is None
