"""``fimble model pull`` from the hub: a real HTTP server, the real importer."""

from __future__ import annotations

import dataclasses
import errno
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from fimble.errors import DownloadError, ImportFailed, ModelNotFound
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.pull import pull, pull_entry
from fimble.models.store import Store
from fimble.progress import ProgressEvent
from tests.support.hub_server import StandInHub
from tests.support.pulling import NOWHERE, Puller, make_entry
from tests.support.tiny_gguf import make_tiny_gguf
from tests.support.waiting import PATIENCE


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf").read_bytes()


@pytest.fixture
def hub(content: bytes) -> Iterator[StandInHub]:
    with StandInHub(content) as server:
        yield server


@pytest.fixture
def puller(hub: StandInHub, tmp_path: Path) -> Puller:
    return Puller(tmp_path / "models", hub.endpoint)


def test_a_pulled_model_is_installed_and_nothing_else_is_left(
    hub: StandInHub, puller: Puller
) -> None:
    package = puller.pull(make_entry(hub))
    assert puller.store.find("tiny-coder") == package
    assert inspect_package(package).whole
    assert read_provenance(package).source_sha256 == hub.sha256
    assert read_provenance(package).source_file == hub.file
    assert puller.leftovers() == []


def test_licence_and_source_are_said_before_anything_is_fetched(
    hub: StandInHub, tmp_path: Path
) -> None:
    requests_when_said: list[tuple[str, int]] = []
    puller = Puller(tmp_path, hub.endpoint)
    pull_entry(
        make_entry(hub),
        store=puller.store,
        hub=puller.hub,
        say=lambda text: requests_when_said.append((text, len(hub.asked))),
    )
    text, requests = requests_when_said[0]
    assert "CC0" in text and "https://example.invalid/tiny" in text
    assert requests == 0


def test_every_stage_of_progress_begins_and_ends(hub: StandInHub, puller: Puller) -> None:
    puller.pull(make_entry(hub))
    stages = list(dict.fromkeys(event.stage for event in puller.events))
    assert stages[:2] == ["download", "verify"] and len(stages) > 2
    for stage in stages:
        last = [event for event in puller.events if event.stage == stage][-1]
        assert last.done == last.total, stage


def test_a_second_pull_fetches_nothing(hub: StandInHub, puller: Puller) -> None:
    first = puller.pull(make_entry(hub))
    requests = len(hub.asked)
    assert puller.pull(make_entry(hub)) == first
    assert len(hub.asked) == requests
    assert puller.said[-1] == "tiny-coder is installed already."


def test_another_precision_replaces_the_package_and_a_broken_one_is_mended(
    hub: StandInHub, puller: Puller
) -> None:
    entry = make_entry(hub)
    puller.pull(entry)
    package = pull_entry(
        entry, store=puller.store, hub=puller.hub, precision="int8", say=puller.said.append
    )
    assert read_provenance(package).precision == "int8"
    (package.path / "tokenizer.json").unlink()
    mended = pull_entry(
        entry, store=puller.store, hub=puller.hub, precision="int8", say=puller.said.append
    )
    assert inspect_package(mended).whole
    assert any("tokenizer.json is missing" in text for text in puller.said)


def test_a_dropped_connection_is_taken_up_where_it_broke_off(
    hub: StandInHub, puller: Puller
) -> None:
    hub.drops = [10_000, 200_001]
    puller.pull(make_entry(hub))
    assert hub.served == len(hub.content)
    starts = [asked.start for asked in hub.asked if asked.server == "content"]
    assert starts == [0, 10_000, 200_001]


def test_a_later_pull_fetches_only_what_is_missing(hub: StandInHub, puller: Puller) -> None:
    hub.drops, hub.goes_away = [150_000], True
    with pytest.raises(DownloadError, match="goes on where it stopped"):
        puller.pull(make_entry(hub))
    assert puller.store.packages() == []
    hub.status = 200
    puller.pull(make_entry(hub))
    assert hub.served == len(hub.content)


def test_a_server_without_ranges_is_read_from_the_beginning(
    hub: StandInHub, puller: Puller
) -> None:
    hub.ranges = False
    hub.drops = [10_000]
    package = puller.pull(make_entry(hub))
    assert hub.served == len(hub.content) + 10_000
    assert read_provenance(package).source_sha256 == hub.sha256


def test_a_file_that_changed_meanwhile_is_begun_anew(hub: StandInHub, puller: Puller) -> None:
    entry = make_entry(hub, pinned=False)
    good, hub.content = hub.content, bytes(reversed(hub.content))
    hub.drops, hub.goes_away = [10_000], True
    with pytest.raises(DownloadError):
        puller.pull(entry)
    hub.content, hub.status = good, 200
    assert read_provenance(puller.pull(entry)).source_sha256 == hub.sha256
    assert [a.start for a in hub.asked if a.server == "content"] == [0, 10_000, 0]


@pytest.mark.parametrize("pinned", [True, False])
def test_content_that_is_not_what_the_hub_says_is_refused_and_deleted(
    hub: StandInHub, puller: Puller, pinned: bool
) -> None:
    entry = make_entry(hub, pinned=pinned)
    hub.claimed_sha256 = hub.sha256
    hub.content = hub.content[:-1] + b"!"
    with pytest.raises(DownloadError, match="has the SHA-256") as raised:
        puller.pull(entry)
    assert "run the same command again" in raised.value.next_step.lower()
    assert puller.store.packages() == []
    assert "hub.part" not in puller.leftovers()


def test_a_changed_file_is_refused_before_a_byte_of_it_is_kept(
    hub: StandInHub, puller: Puller
) -> None:
    entry = make_entry(hub)
    hub.content = hub.content[:-1] + b"!"
    with pytest.raises(DownloadError, match="not the file that this version of fimble knows"):
        puller.pull(entry)
    assert puller.events == []
    assert "hub.part" not in puller.leftovers()


def test_a_hub_that_gives_no_checksum_cannot_be_trusted_with_an_unpinned_file(
    hub: StandInHub, puller: Puller
) -> None:
    hub.claimed_sha256 = "no-checksum"
    with pytest.raises(DownloadError, match="cannot be checked"):
        puller.pull(make_entry(hub, pinned=False))
    assert puller.pull(make_entry(hub)).name == "tiny-coder"


@pytest.mark.parametrize(
    ("status", "code", "message", "next_step"),
    [
        (401, "GatedRepo", "gated", "Accept its terms at .*/someone/Tiny-Coder-GGUF"),
        (403, "GatedRepo", "gated", "hf auth login"),
        (401, "RepoNotFound", "does not exist, is private, or the token", "HF_TOKEN"),
        (403, "RepoNotFound", "refuses access", "HF_TOKEN"),
        (404, "EntryNotFound", "has no file tiny-coder-q4_k_m.gguf", "fimble model import"),
        (451, "", "answered 451", "browser"),
    ],
)
def test_a_refusal_is_explained(
    hub: StandInHub, puller: Puller, status: int, code: str, message: str, next_step: str
) -> None:
    hub.status, hub.error_code = status, code
    with pytest.raises(DownloadError, match=message) as raised:
        puller.pull(make_entry(hub))
    assert re.search(next_step, raised.value.next_step)


def test_the_token_goes_to_the_hub_and_to_no_other_host(hub: StandInHub, tmp_path: Path) -> None:
    puller = Puller(tmp_path, hub.endpoint, token="hf_secret")
    hub.drops = [10_000]
    puller.pull(make_entry(hub))
    assert {a.token for a in hub.asked if a.server == "hub"} == {"Bearer hf_secret"}
    assert {a.token for a in hub.asked if a.server == "content"} == {None}


def test_a_host_that_accepts_and_says_nothing_is_given_up_in_time(
    hub: StandInHub, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        puller = Puller(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        puller.hub = dataclasses.replace(puller.hub, open_timeout=0.2, read_timeout=60)
        with pytest.raises(DownloadError, match=r"no answer within 0\.2 seconds"):
            puller.pull(make_entry(hub))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "nonsense://127.0.0.1:9"),
        pytest.param(
            *("SSL_CERT_FILE", "/no/such/file.pem"),
            marks=pytest.mark.skipif(
                httpx.__version__.startswith("0.27."), reason="ignored by that version"
            ),
        ),
    ],
)
def test_settings_that_cannot_work_are_named(
    hub: StandInHub, puller: Puller, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    with pytest.raises(DownloadError, match="proxy or certificate settings") as raised:
        puller.pull(make_entry(hub))
    assert variable in raised.value.next_step


def test_without_another_source_an_unreachable_hub_is_an_error(
    hub: StandInHub, tmp_path: Path
) -> None:
    with pytest.raises(DownloadError, match=f"connection to {NOWHERE} failed"):
        Puller(tmp_path, NOWHERE).pull(make_entry(hub))


def test_too_little_disk_is_said_before_anything_is_fetched(
    hub: StandInHub, puller: Puller
) -> None:
    for pinned in (True, False):
        with pytest.raises(DownloadError, match=r"needs 0\.\d GB of free disk.* 0\.0 GB are free"):
            pull_entry(
                make_entry(hub, pinned=pinned),
                store=puller.store,
                hub=puller.hub,
                say=puller.said.append,
                free_bytes=lambda path: 1000,
            )
    assert "hub.part" not in puller.leftovers()


def test_a_full_disk_in_the_middle_is_an_error_that_says_so(
    hub: StandInHub, puller: Puller
) -> None:
    def full(event: ProgressEvent) -> None:
        if event.stage == "verify":
            raise OSError(errno.ENOSPC, "No space left on device", "model.gguf")

    with pytest.raises(DownloadError, match="No space left on device") as raised:
        pull_entry(
            make_entry(hub),
            store=puller.store,
            hub=puller.hub,
            progress=full,
            say=puller.said.append,
        )
    assert "Free some disk space" in raised.value.next_step
    puller.pull(make_entry(hub))
    assert hub.served == len(hub.content)


def test_a_file_that_cannot_be_imported_leaves_no_package(tmp_path: Path) -> None:
    with StandInHub(b"GGUF, but not really") as hub:
        puller = Puller(tmp_path, hub.endpoint)
        with pytest.raises(ImportFailed):
            puller.pull(make_entry(hub))
        assert puller.store.packages() == []


def test_two_pulls_at_once_fetch_the_file_once(hub: StandInHub, puller: Puller) -> None:
    hub.hold_at = 100_000
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(puller.pull, make_entry(hub))
        assert hub.held.wait(PATIENCE)
        second = pool.submit(puller.pull, make_entry(hub))
        waiting = "Another process is working on tiny-coder; waiting for it."
        while waiting not in puller.said:
            time.sleep(0.01)
        hub.release.set()
        assert first.result() == second.result()
    assert hub.served == len(hub.content)


def test_an_unknown_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound):
        pull("gpt-9", store=Store(tmp_path), say=lambda text: None)
