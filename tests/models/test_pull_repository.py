"""``fimble model pull owner/name``: a whole package from a hub, a real HTTP server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fimble.errors import DownloadError, FimbleError, ModelError, PackageError
from fimble.models.catalogue import catalogue
from fimble.models.hub import Hub, HubUnreachable
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.pull import pull_entry
from fimble.models.pull_repository import is_repository, pull_repository
from fimble.models.store import Package, Store
from fimble.progress import ProgressEvent
from tests.support.amd_packages import AMD_PACKAGES, NESTED
from tests.support.amd_repository import LARGE, amd_repository
from tests.support.hub_server import StandInHub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[StandInHub]:
    """Row B: nested in a folder with spaces in its name."""
    with amd_repository(tmp_path / "made", "B") as server:
        yield server


@dataclass
class Puller:
    """Pulls into a store of its own, and remembers what it was told."""

    store: Store
    hub: Hub
    said: list[str] = field(default_factory=list)
    events: list[ProgressEvent] = field(default_factory=list)

    def pull(self, repo: str, name: str | None = None) -> Package:
        return pull_repository(
            repo,
            store=self.store,
            name=name,
            hub=self.hub,
            progress=self.events.append,
            say=self.said.append,
        )


def patient(endpoint: str, token: str | None = None) -> Hub:
    return Hub(endpoint, token, open_timeout=60, read_timeout=60, attempts=3, pause=0.01)


@pytest.fixture
def puller(hub: StandInHub, tmp_path: Path) -> Puller:
    return Puller(Store(tmp_path / "models"), patient(hub.endpoint))


def asked_for(hub: StandInHub, file: str) -> int:
    """How often the hub itself was asked for a file; "" for the listing."""
    return sum(1 for each in hub.asked if each.server == "hub" and each.file == file)


# --- it is installed -----------------------------------------------------------------------


@pytest.mark.parametrize("letter", AMD_PACKAGES)
def test_each_of_amds_packages_is_pulled_whole(tmp_path: Path, letter: str) -> None:
    row = AMD_PACKAGES[letter]
    with amd_repository(tmp_path / "made", letter) as hub:
        puller = Puller(Store(tmp_path / "models"), patient(hub.endpoint))
        package = puller.pull(row.repo)
        assert puller.store.find(package.name) == package
        assert (package.path.name == NESTED) == row.nested
        found = inspect_package(package)
        assert found.problem is None
        assert (found.window.tokens, found.fim, found.release) == (
            row.window[0],
            row.fim,
            row.release,
        )
        assert (package.path / row.data).read_bytes() == hub.content
        assert not list(puller.store.partial(package.name).rglob("*"))


def test_its_origin_is_noted_and_the_name_of_the_catalogue_loses_nothing(
    tmp_path: Path,
) -> None:
    entry = next(e for e in catalogue() if e.hub.repo == AMD_PACKAGES["E"].repo)
    with amd_repository(tmp_path / "made", "E") as hub:
        said: list[str] = []
        store = Store(tmp_path / "models")
        package = pull_entry(entry, store=store, hub=patient(hub.endpoint), say=said.append)
        assert package.name == entry.name
        origin = read_provenance(package)
        assert (origin.repo, origin.revision) == (entry.hub.repo, hub.revision)
        assert origin.licence == "apache-2.0"
        # The release is in the repository's name only.
        assert inspect_package(package).release == "1.7.1"


def test_size_and_licence_are_said_before_a_file_is_fetched(
    hub: StandInHub, tmp_path: Path
) -> None:
    requests: list[tuple[str, int]] = []
    pull_repository(
        hub.repo,
        store=Store(tmp_path / "models"),
        hub=patient(hub.endpoint),
        say=lambda text: requests.append((text, len(hub.asked))),
    )
    text, count = requests[0]
    assert re.search(r"\d+ files, 0\.0 GB\. Licence: apache-2\.0\. Source: http", text)
    assert count == 1  # the listing
    assert f"{hub.file}  {LARGE:,} bytes" in requests[1][0]


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ({}, "not stated; see the model card"),
        ({"tags": ["onnx", "license:mit"]}, "mit"),
        ({"cardData": {"license": "other", "license_name": "amd-rai"}}, "amd-rai"),
        ({"cardData": {"license": ["mit", "apache-2.0"]}}, "mit, apache-2.0"),
        ({"cardData": None, "tags": 3}, "not stated"),
    ],
)
def test_the_licence_is_what_the_hub_says(
    hub: StandInHub, puller: Puller, card: dict[str, Any], licence: str
) -> None:
    hub.card = card
    puller.pull(hub.repo)
    assert f"Licence: {licence}" in puller.said[0]


def test_hidden_files_are_left_where_they_are(hub: StandInHub, puller: Puller) -> None:
    package = puller.pull(hub.repo)
    names = {path.name for path in (puller.store.root / package.name).rglob("*")}
    assert "README.md" in names and ".gitattributes" not in names
    assert asked_for(hub, ".gitattributes") == 0


def test_progress_grows_to_the_size_of_all_files(hub: StandInHub, puller: Puller) -> None:
    puller.pull(hub.repo)
    downloads = [event for event in puller.events if event.stage == "download"]
    done = [event.done for event in downloads]
    size = sum(len(data) for path, data in hub.files.items() if path[0] != ".") + LARGE
    assert done == sorted(done) and done[-1] == size
    assert {event.total for event in downloads} == {size}


def test_a_second_pull_asks_nobody(hub: StandInHub, puller: Puller) -> None:
    first = puller.pull(hub.repo)
    requests = len(hub.asked)
    puller.hub = replace(puller.hub, offline=True)
    assert puller.pull(hub.repo) == first
    assert len(hub.asked) == requests
    assert puller.said[-1].endswith("is installed already.")


def test_a_package_that_was_damaged_is_mended(hub: StandInHub, puller: Puller) -> None:
    package = puller.pull(hub.repo)
    (package.path / "tokenizer.json").unlink()
    mended = puller.pull(hub.repo)
    assert inspect_package(mended).whole
    assert any("tokenizer.json is missing" in text for text in puller.said)


def test_a_name_that_is_taken_is_not_overwritten(hub: StandInHub, puller: Puller) -> None:
    package = puller.pull(hub.repo, "mine")
    assert package.name == "mine"
    other = read_provenance(package)
    with pytest.raises(ModelError, match=r"mine is taken by another package \(amd/Qwen2.5-Coder"):
        puller.pull("somebody/Else", "mine")
    assert read_provenance(package) == other


# --- it is interrupted, and things change ---------------------------------------------------


def test_a_dropped_connection_is_taken_up_where_it_broke_off(
    hub: StandInHub, puller: Puller
) -> None:
    hub.drops = [10_000, 200_001]
    puller.pull(hub.repo)
    assert hub.served == LARGE
    starts = [asked.start for asked in hub.asked if asked.server == "content"]
    assert starts == [0, 10_000, 200_001]


def test_a_later_pull_fetches_only_what_is_missing(hub: StandInHub, puller: Puller) -> None:
    hub.drops, hub.goes_away = [150_000], True
    with pytest.raises(HubUnreachable, match=r"The connection to .* failed"):
        puller.pull(hub.repo)
    assert puller.store.packages() == []
    hub.status = 200
    puller.pull(hub.repo)
    assert hub.served == LARGE
    assert asked_for(hub, f"{NESTED}/tokenizer.json") == 1


def test_a_repository_that_changed_meanwhile_keeps_what_is_still_the_same(
    hub: StandInHub, puller: Puller
) -> None:
    hub.drops, hub.goes_away = [150_000], True
    with pytest.raises(HubUnreachable):
        puller.pull(hub.repo)
    hub.status, hub.revision = 200, "2" * 40
    hub.files["README.md"] = b"# A better model\n"
    del hub.files[f"{NESTED}/model_config.json"]
    package = puller.pull(hub.repo)
    assert hub.served == LARGE, "the weights are the same, and go on"
    assert (package.path.parent / "README.md").read_bytes() == b"# A better model\n"
    assert not (package.path / "model_config.json").exists()
    assert asked_for(hub, "README.md") == 2
    assert asked_for(hub, f"{NESTED}/tokenizer.json") == 1
    assert read_provenance(package).revision == "2" * 40


def test_weights_that_changed_meanwhile_are_begun_anew(hub: StandInHub, puller: Puller) -> None:
    hub.drops, hub.goes_away = [150_000], True
    with pytest.raises(HubUnreachable):
        puller.pull(hub.repo)
    hub.status, hub.revision = 200, "2" * 40
    hub.content = bytes(reversed(hub.content))
    package = puller.pull(hub.repo)
    assert (package.path / "text.onnx.data").read_bytes() == hub.content
    assert [a.start for a in hub.asked if a.server == "content"] == [0, 0]


def test_content_that_is_not_what_the_listing_says_is_refused(
    hub: StandInHub, puller: Puller
) -> None:
    listed = hub.listed()
    hub.listing = json.dumps(listed).encode()
    hub.files["README.md"] = b"# Another one\n"
    with pytest.raises(DownloadError, match=r"downloaded as README\.md is not what"):
        puller.pull(hub.repo)
    assert puller.store.packages() == []


def test_weights_that_are_not_the_listed_ones_are_refused_before_a_byte_is_kept(
    hub: StandInHub, puller: Puller
) -> None:
    hub.listing = json.dumps(hub.listed()).encode()
    hub.content = hub.content[:-1] + b"!"
    with pytest.raises(DownloadError, match="not the file that the hub's own listing names"):
        puller.pull(hub.repo)
    assert not list(puller.store.root.rglob("hub.part"))


# --- it is refused -------------------------------------------------------------------------


def test_a_pointer_in_place_of_the_weights_is_recognised(hub: StandInHub, puller: Puller) -> None:
    hub.pointers = True
    with pytest.raises(DownloadError, match=r"a Git LFS pointer in place of .*text\.onnx\.data"):
        puller.pull(hub.repo)
    assert puller.store.packages() == []


def test_a_gated_repository_is_explained_twice(hub: StandInHub, puller: Puller) -> None:
    hub.gated = True
    with pytest.raises(DownloadError, match="is gated") as raised:
        puller.pull(hub.repo)
    assert re.search(r"Accept its terms at .*hf auth login.*HF_TOKEN", raised.value.next_step)
    # Before the first file already, where no token is set.
    assert any(text.startswith("It is gated: accept its terms at") for text in puller.said)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (401, "RepoNotFound", "does not exist, is private, or the token"),
        (403, "GatedRepo", "is gated"),
        (404, "", "has no model repository amd/"),
        (404, "RepoNotFound", "has no model repository amd/"),
        (500, "", "answered 500"),
    ],
)
def test_a_refusal_is_explained(
    hub: StandInHub, puller: Puller, status: int, code: str, message: str
) -> None:
    hub.status, hub.error_code = status, code
    with pytest.raises(DownloadError, match=message) as raised:
        puller.pull(hub.repo)
    assert raised.value.next_step


def test_the_token_goes_to_the_hub_and_to_no_other_host(hub: StandInHub, puller: Puller) -> None:
    puller.hub = patient(hub.endpoint, "hf_secret")
    puller.pull(hub.repo)
    assert {a.token for a in hub.asked if a.server == "hub"} == {"Bearer hf_secret"}
    assert {a.token for a in hub.asked if a.server == "content"} == {None}


def test_offline_nothing_is_asked(hub: StandInHub, puller: Puller) -> None:
    puller.hub = replace(puller.hub, offline=True)
    with pytest.raises(HubUnreachable, match="HF_HUB_OFFLINE is set"):
        puller.pull(hub.repo)
    assert hub.asked == []


def test_too_little_disk_is_said_before_a_file_is_fetched(hub: StandInHub, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"needs 0\.\d GB of free disk space"):
        pull_repository(
            hub.repo,
            store=Store(tmp_path / "models"),
            hub=patient(hub.endpoint),
            say=lambda text: None,
            free_bytes=lambda path: 1000,
        )
    assert {asked.file for asked in hub.asked} == {""}


def test_a_repository_without_a_package_says_what_it_may_be_good_for(
    hub: StandInHub, puller: Puller
) -> None:
    del hub.files[f"{NESTED}/genai_config.json"]
    with pytest.raises(PackageError, match="is no package for onnxruntime-genai"):
        puller.pull(hub.repo)
    hub.files["x.gguf"] = b"GGUF"
    with pytest.raises(PackageError) as raised:
        puller.pull(hub.repo)
    assert "fimble model import" in raised.value.next_step


def test_two_packages_in_a_repository_are_both_named(hub: StandInHub, puller: Puller) -> None:
    hub.files["cpu/genai_config.json"] = b"{}"
    with pytest.raises(PackageError) as raised:
        puller.pull(hub.repo)
    assert "cpu/genai_config.json" in raised.value.message
    assert f"{NESTED}/genai_config.json" in raised.value.message


def test_a_package_that_is_incomplete_on_the_hub_is_not_installed(
    hub: StandInHub, puller: Puller
) -> None:
    del hub.files[f"{NESTED}/tokenizer.json"]
    with pytest.raises(PackageError, match=r"no whole package: tokenizer\.json is missing"):
        puller.pull(hub.repo)
    assert puller.store.packages() == []


@pytest.mark.parametrize(
    "path",
    [
        "../outside.json",
        "/etc/passwd",
        "C:/Windows/x.json",
        "a\\..\\b.json",
        "a/../../b.json",
        "nul.json",
        "a//b.json",
        "trailing. ",
        "tab\there",
        "what?.json",
    ],
)
def test_a_file_name_that_leads_elsewhere_is_refused(
    hub: StandInHub, puller: Puller, tmp_path: Path, path: str
) -> None:
    hub.files[path] = b"{}"
    with pytest.raises(DownloadError, match=r"outside the package|cannot be kept"):
        puller.pull(hub.repo)
    assert {asked.file for asked in hub.asked} == {""}


def test_names_that_differ_in_case_only_are_refused(hub: StandInHub, puller: Puller) -> None:
    hub.files["readme.MD"] = b"x"
    with pytest.raises(DownloadError, match="one file on some systems"):
        puller.pull(hub.repo)


@pytest.mark.parametrize(
    "listing",
    [
        b"<html>Please log in</html>",
        b"[]",
        b"{}",
        b'{"sha": "main", "siblings": []}',
        b'{"sha": 1, "siblings": []}',
        b'{"sha": "%s", "siblings": {}}' % (b"1" * 40),
        b'{"sha": "%s", "siblings": [{"rfilename": "a"}]}' % (b"1" * 40),
        b'{"sha": "%s", "siblings": [{"rfilename": "a", "size": -1}]}' % (b"1" * 40),
        b'{"sha": "%s", "siblings": [{"size": 1}, 3]}' % (b"1" * 40),
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_an_answer_that_is_no_listing_is_an_error(
    hub: StandInHub, puller: Puller, listing: bytes
) -> None:
    hub.listing = listing
    with pytest.raises(FimbleError) as raised:
        puller.pull(hub.repo)
    assert "HF_ENDPOINT" in raised.value.next_step


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("amd/Qwen2.5-14B-Instruct_gpuep_1.0_gpu_128", True),
        ("qwen2.5-coder-0.5b", False),
        ("../x", False),
        ("a/b/c", False),
        ("a/..", False),
        ("/etc", False),
        ("a/b?x=1", False),
    ],
)
def test_what_names_a_repository(name: str, answer: bool) -> None:
    assert is_repository(name) == answer
