"""Mentions that lead out of the workspace: nothing there is read, nor even looked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble import system
from fimble.assist.chat import collect
from fimble.assist.chat.folder import FolderSources
from fimble.assist.chat.service import ChatService, Question
from fimble.assist.settings import ChatSettings
from fimble.assist.templates import Templates
from tests.chat.places import tree
from tests.support.scripted_engine import ScriptedEngine

OUTSIDE = "outside = 'not for any prompt'\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tree(tmp_path, {"outside.py": OUTSIDE, "beside/outside.py": OUTSIDE})
    return tree(tmp_path / "shop")


@pytest.fixture
def sources(root: Path) -> Iterator[FolderSources]:
    sources = FolderSources(root)
    yield sources
    sources.close()


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths that the disk is asked about."""
    asked: list[Path] = []
    ask = collect._is_file

    def note(path: Path) -> bool:
        asked.append(path)
        return ask(path)

    monkeypatch.setattr(collect, "_is_file", note)
    return asked


NAMES = (
    "../outside.py",
    "shop/../../outside.py",
    "./../beside/outside.py",
    "{outside}",
    "..\\outside.py",
    "\\\\machine.example\\share\\a.py",
    "//machine.example/share/a.py",
    "\\\\?\\C:\\Windows\\win.ini",
    "\\\\.\\pipe\\engine",
    "C:\\Windows\\win.ini",
    "C:win.ini",
    "~/.ssh/config",
    "/dev/zero",
    "/proc/self/environ",
    "CON",
    "shop/NUL.txt",
    "shop/cart.py:stream",
    "%2e%2e/outside.py",
    "..%2foutside.py",
    "file:///etc/passwd",
    "shop/..",
    "../",
    "/",
)


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_that_leads_elsewhere(
    name: str, root: Path, sources: FolderSources, looked_for: list[Path]
) -> None:
    name = name.replace("{outside}", str(root.parent / "outside.py"))
    await refused(f"@file:{name}", sources)
    assert all(path.is_relative_to(root) for path in looked_for)


@pytest.mark.parametrize(
    "name", ["x" * 5000, "a/" * 3000 + "a", "a\0b.py", "\u202eyp.a", "a\x1b[2Jb", "\ud800.py"]
)
async def test_a_name_that_no_file_has(name: str, sources: FolderSources) -> None:
    await refused(f"@file:{name}", sources)


async def refused(mention: str, sources: FolderSources) -> None:
    """Asks about it: one thing is left out, and the prompt is the question alone."""
    engine = ScriptedEngine(["a"])
    service = ChatService(lambda: engine, sources, Templates, ChatSettings)
    answer = await service.ask(Question(f"What about {mention} ?"))
    assert answer.context == () and len(answer.left_out) == 1
    (request,) = engine.requests
    prompt = request.messages[-1].content
    assert prompt.startswith("What about @file:") and prompt.endswith(" ?") and "\n" not in prompt


@pytest.mark.parametrize("link", ["file", "folder", "chain", "itself", "nothing", "device"])
async def test_a_link_that_leads_elsewhere(link: str, root: Path, sources: FolderSources) -> None:
    outside, name = root.parent / "outside.py", "link.py"
    try:
        if link == "folder":
            (root / "link").symlink_to(root.parent / "beside", target_is_directory=True)
            name = "link/outside.py"
        elif link == "chain":
            (root / "between.py").symlink_to(outside)
            (root / name).symlink_to(root / "between.py")
        else:
            device, nothing = Path("/dev/zero"), root.parent / "x"
            targets = {"itself": root / name, "nothing": nothing, "device": device}
            (root / name).symlink_to(targets.get(link, outside))
    except OSError:
        pytest.skip("links cannot be made here")
    await refused(f"@file:{name}", sources)


async def test_a_pipe_is_not_waited_for(root: Path, sources: FolderSources) -> None:
    if sys.platform == "win32":
        pytest.skip("there are no named pipes in folders here")
    os.mkfifo(root / "pipe.py")
    await refused("@file:pipe.py", sources)


async def test_other_names_of_a_secret_file_are_no_way_around(
    root: Path, sources: FolderSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they would be on Windows, where this file exists by that name too."""
    plain = system.is_plain_name
    monkeypatch.setattr(system, "is_plain_name", lambda path: plain(path, "win32"))
    try:
        (root / ".env::$DATA").write_text("TOKEN=hidden-one\n", encoding="utf-8")
    except OSError:
        pytest.skip("this system takes no such name")
    await refused("@file:.env::$DATA", sources)
