"""Where a new file for tests goes: by the project's habits, not by an answer's word, and never
through a link that the project brought along to somewhere else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.assist.edit.destination import Destination, find_destination
from fimble.cli.app import main
from fimble.errors import EditRefused
from fimble_context.syntax import Document
from tests.edit.places import OneFolder, fence, request_for, service_on
from tests.support.scripted_engine import ScriptedEngine

SOURCE = "def «»f(n):\n    return n\n"
TESTS = "from a import f\n\n\ndef test_f():\n    assert f(1) == 1\n"
MINE = "# mine\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mine.py").write_text(MINE, encoding="utf-8")
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text(SOURCE.replace("«»", ""), encoding="utf-8", newline="\n")
    return root


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    try:
        path.symlink_to(target, target_is_directory=target.is_dir())
    except OSError:
        pytest.skip("links cannot be made here")


LINKS = {
    "a folder": ("tests", "outside"),
    "a file that is there": ("tests/test_a.py", "outside/mine.py"),
    "a file that would be made": ("tests/test_a.py", "outside/new.py"),
    "a way up": ("tests", "."),
    "a file beside": ("test_a.py", "outside/mine.py"),
}


@pytest.mark.parametrize(("name", "target"), LINKS.values(), ids=LINKS)
async def test_a_link_out_of_the_project_is_no_place(root: Path, name: str, target: str) -> None:
    link(root / name, root.parent / target)
    found = await find_destination(Document("", path=str(root / "a.py")), OneFolder(root))
    assert isinstance(found, Destination) and MINE not in found.document.text
    assert found.path.resolve().is_relative_to(root.resolve())


async def test_a_link_within_the_project_is_one(root: Path) -> None:
    (root / "checks").mkdir()
    link(root / "tests", root / "checks")
    found = await find_destination(Document("", path=str(root / "a.py")), OneFolder(root))
    assert isinstance(found, Destination) and found.path == root / "tests" / "test_a.py"


async def test_where_every_place_is_a_link_it_is_refused(root: Path) -> None:
    (root / "a.go").write_text("package a\n", encoding="utf-8")
    link(root / "a_test.go", root.parent / "outside" / "mine.py")
    source = "package a\n\nfunc «»f() int {\n\treturn 1\n}\n"
    request = request_for(source, "tests", path=str(root / "a.go"), instruction="")
    engine = ScriptedEngine([fence("package a\n")])
    with pytest.raises(EditRefused, match="a link that leads out of the project"):
        await service_on(engine, root).edit(request)
    assert engine.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        f"```python ../../outside/mine.py\n{TESTS}```",
        f"Write this to `/etc/cron.d/x`:\n\n```python title=/etc/cron.d/x\n{TESTS}```",
        f"```../outside/mine.py\n{TESTS}```",
        f"```python\n# file: C:\\Windows\\x.py\n{TESTS}```",
        f"```python\n# tests/../../outside/new.py\n{TESTS}```",
    ],
)
async def test_no_answer_chooses_the_place(root: Path, answer: str) -> None:
    service = service_on(ScriptedEngine([answer]), root)
    request = request_for(SOURCE, "tests", path=str(root / "a.py"), instruction="")
    outcome = await service.edit(request)
    assert Path(outcome.path) == root / "test_a.py"
    assert outcome.after.endswith(TESTS)


@pytest.mark.parametrize(("name", "target"), LINKS.values(), ids=LINKS)
def test_nothing_outside_is_written_by_the_command(
    root: Path, name: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ScriptedEngine([fence(TESTS.rstrip())])
    monkeypatch.setattr("fimble.cli.edit.engine_for", lambda *chosen: engine)
    monkeypatch.chdir(root)
    link(root / name, root.parent / target)
    assert main(["edit", "a.py:1", "--task", "tests", "--apply"]) == 0
    made = [each for each in root.parent.rglob("*") if each.is_file() and not each.is_symlink()]
    assert {each.relative_to(root.parent).as_posix() for each in made} >= {"outside/mine.py"}
    assert (root.parent / "outside" / "mine.py").read_text(encoding="utf-8") == MINE
    assert [each.name for each in (root.parent / "outside").iterdir()] == ["mine.py"]
    tests = [each for each in made if each.name in ("test_a.py", "a_test.py")]
    assert [each.is_relative_to(root) for each in tests] == [True]


async def test_a_test_file_too_large_to_be_one_is_left(root: Path) -> None:
    (root / "test_a.py").write_bytes(b"# " + b"x" * 2_000_000)
    request = request_for(SOURCE, "tests", path=str(root / "a.py"), instruction="")
    with pytest.raises(EditRefused, match="is too large to add tests"):
        await service_on(ScriptedEngine([fence(TESTS)]), root).edit(request)
