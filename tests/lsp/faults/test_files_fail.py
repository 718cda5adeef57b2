"""Files under a window and its engine: removed, replaced, damaged, not to be written.

What the window owes whatever fails is checked at its end.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.engine.address import address_path
from tests.lsp.faults.window import Window, window
from tests.lsp.process import ended_engine, engine_pid
from tests.support.tiny import make_tiny_package


@pytest.fixture
def package(tiny: Path, tmp_path: Path) -> Path:
    """A package that a test may do anything to."""
    return Path(shutil.copytree(tiny, tmp_path / "package"))


def replace_by_seed(package: Path, seed: int) -> None:
    shutil.rmtree(package)
    make_tiny_package(package, seed=seed)


async def told_once(editor: Window, requests: int = 2) -> str:
    """What the user is told, once, while nothing can be completed and typing goes on."""
    for _ in range(requests):
        editor.type()
        await editor.answer(editor.ask())
    await editor.types_on()
    assert len(editor.told) == 1, editor.told
    return editor.told[0]


# --- the model's files -------------------------------------------------------------------


async def test_a_model_that_is_removed_is_named_once_and_works_when_it_is_back(
    home: Path, package: Path, tmp_path: Path
) -> None:
    async with window(home, tmp_path / "work", ["--model", str(package)]) as editor:
        before = await editor.completes()
        aside = package.rename(tmp_path / "aside")
        assert str(package) in await told_once(editor, requests=3)
        aside.rename(package)
        assert await editor.completes() == before


async def test_a_model_that_is_replaced_is_the_one_that_answers(
    home: Path, package: Path, tmp_path: Path
) -> None:
    async with window(home, tmp_path / "work", ["--model", str(package)]) as editor:
        before = await editor.completes()
        engine = engine_pid(home)
        replace_by_seed(package, 7)
        await editor.types_on()
        assert await editor.completes() != before
        assert engine_pid(home) == engine
        assert not editor.told


async def test_weights_that_are_cut_short_under_it_are_told_of_once(
    home: Path, package: Path, tmp_path: Path
) -> None:
    """Put in place as a download does it; in the same file the memory of a process would change."""
    async with window(home, tmp_path / "work", ["--model", str(package)]) as editor:
        before = await editor.completes()
        whole = Path(shutil.copytree(package, tmp_path / "whole"))
        shutil.rmtree(package)
        shutil.copytree(whole, package, copy_function=_half)
        await told_once(editor, requests=3)
        shutil.rmtree(package)
        shutil.copytree(whole, package, copy_function=shutil.copyfile)
        assert await editor.completes() == before


def _half(source: str, target: str) -> str:
    data = Path(source).read_bytes()
    Path(target).write_bytes(data[: len(data) // 2] if source.endswith(".data") else data)
    return target


# --- what fimble keeps for itself ----------------------------------------------------------


def damage(home: Path) -> list[str]:
    """Overwrites every file that is kept between sessions; their names."""
    files = [file for file in home.rglob("*") if file.is_file()]
    for file in files:
        file.write_bytes(b"\xff\x00 no file of ours " * 64)
    return [file.name for file in files]


async def test_damaged_files_of_former_sessions_disturb_nothing(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    arguments = ["--model", str(tiny)]
    async with window(home, tmp_path / "work", arguments, workspace=True) as editor:
        assert await editor.completes()
    with ended_engine(home):
        pass
    names = damage(home)
    assert any("counts" in name for name in names), names
    assert len([name for name in names if name.endswith(".sqlite")]) >= 2, names
    async with window(home, tmp_path / "work", arguments, workspace=True) as editor:
        await editor.types_on()
        assert await editor.completes()
        assert not editor.told


@pytest.mark.parametrize("content", [None, b"", b"\xff{"])
async def test_an_engine_whose_runtime_file_is_lost_is_found_again(
    home: Path, tiny: Path, tmp_path: Path, content: bytes | None
) -> None:
    """A window that is open and one that comes later."""
    arguments = ["--model", str(tiny)]
    async with window(home, tmp_path / "one", arguments) as one:
        before = await one.completes()
        engine = engine_pid(home)
        if content is None:
            address_path().unlink()
        else:
            address_path().write_bytes(content)
        assert await one.completes() == before
        async with window(home, tmp_path / "two", arguments) as two:
            assert await two.completes() == before
            assert engine_pid(home) == engine
            assert not two.told
        assert not one.told


async def test_a_stale_runtime_file_disturbs_nothing(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    arguments = ["--model", str(tiny)]
    async with window(home, tmp_path / "work", arguments) as editor:
        before = await editor.completes()
        stale = address_path().read_bytes()
    with ended_engine(home):
        pass
    address_path().write_bytes(stale)
    async with window(home, tmp_path / "work", arguments) as editor:
        assert await editor.completes() == before
        assert not editor.told


# --- a home that cannot be written to ------------------------------------------------------


@pytest.mark.parametrize("what", ["run/engine.json", "logs/engine.log", "run/engine.lock", "run"])
async def test_where_the_engine_cannot_write_it_is_told_once(
    home: Path, tiny: Path, tmp_path: Path, what: str
) -> None:
    """In place of a file a folder, and the other way round, fails on every system and for
    every user: a stand-in for rights that are missing.
    """
    place = home / what
    if place.suffix:
        (place / "x").mkdir(parents=True)
    else:
        home.mkdir()
        place.write_bytes(b"")
    async with window(home, tmp_path / "work", ["--model", str(tiny)]) as editor:
        message = await told_once(editor)
        assert str(place) in message or str(home) in message, message
        shutil.rmtree(place) if place.is_dir() else place.unlink()


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    """FIMBLE_HOME on a file system of its own, of 256 KB."""
    home.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(home)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no file system can be mounted here: no `mount`")
    if done.returncode:
        pytest.skip("no file system can be mounted here")
    yield home
    with ended_engine(home):
        pass
    subprocess.run(["umount", "--lazy", str(home)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as stream:
        try:
            while stream.write(b"x" * 1024):
                pass
        except OSError:
            return filler
    raise AssertionError


async def test_a_disk_that_fills_up_in_a_session_disturbs_nothing(
    small_disk: Path, tiny: Path, tmp_path: Path
) -> None:
    async with window(small_disk, tmp_path / "work", ["--model", str(tiny)]) as editor:
        before = await editor.completes()
        fill(small_disk)
        await editor.types_on()
        assert await editor.completes() == before
        assert not editor.told


async def test_a_full_disk_is_told_of_once_and_it_works_when_there_is_room(
    small_disk: Path, tiny: Path, tmp_path: Path
) -> None:
    filler = fill(small_disk)
    async with window(small_disk, tmp_path / "work", ["--model", str(tiny)]) as editor:
        assert str(small_disk) in await told_once(editor)
        filler.unlink()
    async with window(small_disk, tmp_path / "work", ["--model", str(tiny)]) as editor:
        assert await editor.completes()
        assert not editor.told


async def test_a_read_only_home_is_told_of_once(
    small_disk: Path, tiny: Path, tmp_path: Path
) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    async with window(small_disk, tmp_path / "work", ["--model", str(tiny)]) as editor:
        assert str(small_disk) in await told_once(editor)
