"""Other files in prompts: indexed in the background, followed, and never those that are secret."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fimble import system
from tests.lsp.wire import Session, in_process
from tests.support.scripted_engine import ScriptedEngine, prompt_as_text
from tests.support.waiting import PATIENCE

SHAPES = "def area_of(width: int, height: int) -> int:\n    return width * height\n"
USER = "from shapes import area_of\n\nprint(area_of())\n"
PLACE = {"line": 2, "character": 14}


def project(folder: Path, **files: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in {"shapes.py": SHAPES, "main.py": USER, **files}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


async def opened(session: Session, *folders: Path, **more: Any) -> None:
    listed = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    await session.wire.initialize(workspaceFolders=listed, **more)


def generation(session: Session) -> int:
    """Counts what the index has learned."""
    workspace = session.server.workspace_host.workspace
    return 0 if workspace is None else workspace.index.generation


def indexed(session: Session) -> Callable[[], bool]:
    host = session.server.workspace_host
    return lambda: host.workspace is not None and host.workspace.status.phase == "idle"


async def sections(session: Session, file: Path) -> list[dict[str, Any]]:
    params = {"command": "fimble.showPrompt", "arguments": [file.as_uri(), PLACE]}
    shown = await session.wire.request("workspace/executeCommand", params)
    found: list[dict[str, Any]] = shown["sections"]
    return found


async def until_section(session: Session, file: Path, path: str, text: str) -> dict[str, Any]:
    """The section about ``path`` that has ``text``, once the index knows."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for section in await sections(session, file):
            if section["path"] == path and text in section["text"]:
                return section
        await asyncio.sleep(0.025)
    raise AssertionError(f"no section of {path}")


async def test_a_definition_in_another_file_is_in_the_prompt(tmp_path: Path) -> None:
    folder = project(tmp_path / "a b%20")
    engine = ScriptedEngine(["2, 3"])
    async with in_process(lambda model: engine) as session:
        await opened(session, folder)
        session.wire.open((folder / "main.py").as_uri(), USER)
        section = await until_section(session, folder / "main.py", "shapes.py", "area_of")
        assert section["reason"]
        await session.wire.complete((folder / "main.py").as_uri(), 2, 14)
    prompt = prompt_as_text(engine.requests[0].prompt)
    assert "<file_sep>shapes.py\ndef area_of(width: int, height: int)" in prompt
    assert "<file_sep>main.py\n<fim_prefix>" in prompt
    assert str(tmp_path) not in prompt


async def test_an_open_documents_text_counts_and_not_the_files(tmp_path: Path) -> None:
    folder = project(tmp_path)
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        await opened(session, folder)
        wire = session.wire
        wire.open((folder / "main.py").as_uri(), USER)
        wire.open((folder / "shapes.py").as_uri(), SHAPES)
        changed = SHAPES.replace("width", "breadth")
        await session.wire.until(indexed(session))
        before = generation(session)
        wire.change((folder / "shapes.py").as_uri(), 2, {"text": changed})
        await wire.until(lambda: generation(session) > before)
        await until_section(session, folder / "main.py", "shapes.py", "breadth")


async def test_files_changed_outside_of_the_editor_are_followed(tmp_path: Path) -> None:
    folder = project(tmp_path)
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        await opened(session, folder)
        session.wire.open((folder / "main.py").as_uri(), USER)
        await until_section(session, folder / "main.py", "shapes.py", "width")
        before = generation(session)
        (folder / "shapes.py").write_text(SHAPES.replace("width", "breadth"), encoding="utf-8")
        change = {"uri": (folder / "shapes.py").as_uri(), "type": 2}
        session.wire.notify("workspace/didChangeWatchedFiles", {"changes": [change]})
        await session.wire.until(lambda: generation(session) > before)
        await until_section(session, folder / "main.py", "shapes.py", "breadth")


async def test_folders_come_and_go(tmp_path: Path) -> None:
    first, second = project(tmp_path / "one"), project(tmp_path / "two")
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        await opened(session, first)
        session.wire.open((second / "main.py").as_uri(), USER)
        event = {
            "added": [{"uri": second.as_uri(), "name": "two"}],
            "removed": [{"uri": first.as_uri(), "name": "one"}],
        }
        session.wire.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        await until_section(session, second / "main.py", "shapes.py", "area_of")


async def test_the_users_home_is_no_workspace_but_the_projects_in_it_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kate names the home where it knows no project; all of it would be read and indexed."""
    monkeypatch.setattr(system, "user_folder", lambda: tmp_path)
    project(tmp_path)  # what lies about there
    (tmp_path / ".git").mkdir()  # a repository of settings
    first, second = project(tmp_path / "one"), project(tmp_path / "two")
    for folder in (first, second):
        (folder / "pyproject.toml").touch()
    (second / ".git").mkdir()
    (second / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        await opened(session, tmp_path)
        wire, host = session.wire, session.server.workspace_host
        wire.open((tmp_path / "main.py").as_uri(), USER)
        own = {each["reason"] for each in await sections(session, tmp_path / "main.py")}
        assert own == {"text before the cursor", "text after the cursor"}
        assert host.workspace is None
        for folder, shown in ((first, "shapes.py"), (second, "two/shapes.py")):
            wire.open((folder / "main.py").as_uri(), USER)
            await until_section(session, folder / "main.py", shown, "area_of")
        wire.open((second / "ignored.py").as_uri(), USER)
        assert await wire.complete((second / "ignored.py").as_uri(), 2, 14) == []
        assert host.policy.folders == (first, second)


async def test_secret_ignored_and_excluded_files_are_in_no_prompt(tmp_path: Path) -> None:
    """Also when they are open beside the document, with names that it uses."""
    secret = "def area_of(secret_width: int) -> int:\n    return 1\n"
    names = (".env", "ignored.py", "excluded.py")
    folder = project(tmp_path, **dict.fromkeys(names, secret))
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    options = {"completion": {"excludePatterns": ["excluded.py"]}}
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        await opened(session, folder, initializationOptions=options)
        wire = session.wire
        for name in names:
            wire.open((folder / name).as_uri(), secret)
            wire.change((folder / name).as_uri(), 2, {"text": secret + "# edited\n"})
            assert await wire.complete((folder / name).as_uri(), 0, 0) == []
            assert await sections(session, folder / name) == []
        wire.open((folder / "main.py").as_uri(), USER)
        await until_section(session, folder / "main.py", "shapes.py", "area_of")
        assert "secret_width" not in str(await sections(session, folder / "main.py"))
        assert "secret_width" not in str(wire.messages)


async def test_a_file_outside_of_all_folders_is_completed(tmp_path: Path) -> None:
    folder = project(tmp_path / "in")
    engine = ScriptedEngine(["1"])
    async with in_process(lambda model: engine) as session:
        await opened(session, folder)
        outside = (tmp_path / "outside.py").as_uri()
        session.wire.open(outside, "x = ")
        assert len(await session.wire.complete(outside, 0, 4)) == 1


@pytest.mark.parametrize("can", [True, False])
async def test_watching_is_registered_only_where_the_editor_can(can: bool) -> None:
    watched = {"dynamicRegistration": can}
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = session.wire
        await wire.initialize(capabilities={"workspace": {"didChangeWatchedFiles": watched}})
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        await wire.until(lambda: bool(wire.sent("client/registerCapability")) == can)
