"""The store: a package is there in full or not at all, and nothing outside is touched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fimble.errors import (
    FimbleError,
    ImportFailed,
    ModelError,
    ModelNotFound,
    PackageError,
    UsageError,
)
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.names import is_name, name_from_stem
from fimble.models.store import CONFIG_FILE, Package, Store
from fimble.progress import ProgressEvent
from tests.support.tiny_gguf import make_tiny_gguf

NESTED = "Upload Qwen2.5 ONNX files"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "models")


def make_package(folder: Path, text: str = "{}") -> Path:
    folder.mkdir(parents=True)
    (folder / CONFIG_FILE).write_text(text, encoding="utf-8")
    return folder


def names(store: Store) -> list[str]:
    return [package.name for package in store.packages()]


# --- listing and adding --------------------------------------------------------------------


def test_a_store_that_does_not_exist_yet_is_empty(store: Store) -> None:
    assert store.packages() == []
    assert not store.root.exists()


def test_the_default_root_is_the_users_models_folder(own_home: Path) -> None:
    assert Store().root == own_home / "models"


def test_an_added_package_is_seen_only_when_it_is_whole(store: Store) -> None:
    def fill_slowly(folder: Path) -> None:
        make_package(folder / "sub")
        shutil.move(folder / "sub" / CONFIG_FILE, folder / CONFIG_FILE)
        assert store.packages() == []

    package = store.add("one", fill_slowly)
    assert package == Package("one", store.root / "one")
    assert store.packages() == [package]


def test_what_fails_to_be_filled_is_never_seen_and_may_be_resumed(store: Store) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("1", encoding="utf-8")
        raise ImportFailed("It broke.")

    def resume(folder: Path) -> None:
        assert (folder / "half").exists()
        (folder / CONFIG_FILE).write_text("{}", encoding="utf-8")

    with pytest.raises(ImportFailed):
        store.add("one", fail)
    assert store.packages() == []
    store.add("one", resume)
    assert names(store) == ["one"]


def test_a_package_of_the_same_name_is_replaced_when_the_new_one_is_whole(store: Store) -> None:
    old = store.add("one", lambda folder: make_package(folder / "x", "old"))
    assert old.path == store.root / "one" / "x"

    def replace(folder: Path) -> None:
        assert store.find("one") == old
        make_package(folder / "y", "new")

    new = store.add("one", replace)
    assert (new.path / CONFIG_FILE).read_text(encoding="utf-8") == "new"
    assert sorted(p.name for p in (store.root / "one").iterdir()) == ["y"]
    assert not list((store.root / ".partial").rglob(CONFIG_FILE))


def test_a_folder_without_a_configuration_is_not_added(store: Store) -> None:
    with pytest.raises(PackageError, match=CONFIG_FILE):
        store.add("one", lambda folder: None)
    assert store.packages() == []


def test_hidden_and_strange_folders_are_not_packages(store: Store) -> None:
    make_package(store.root / "b")
    make_package(store.root / "a" / NESTED)
    make_package(store.root / ".hidden")
    (store.root / "empty").mkdir()
    (store.root / "file").write_text("", encoding="utf-8")
    assert store.packages() == [
        Package("a", store.root / "a" / NESTED),
        Package("b", store.root / "b"),
    ]


def test_a_name_that_is_being_worked_on_is_left_alone(store: Store) -> None:
    make_package(store.root / "one")
    with store.lock("one", timeout=0), pytest.raises(ModelError, match="Another process"):
        store.remove("one")
    assert names(store) == ["one"]


# --- finding -------------------------------------------------------------------------------


def test_an_installed_package_is_found_by_name(store: Store) -> None:
    make_package(store.root / "one" / NESTED)
    assert store.find("one") == Package("one", store.root / "one" / NESTED)


def test_a_package_is_found_by_path(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_package(tmp_path / "home" / "mine")
    found = Package("mine", folder)
    assert store.find(str(folder)) == found
    assert store.find(str(folder / CONFIG_FILE)) == found
    monkeypatch.chdir(tmp_path / "home")
    assert store.find("mine") == found
    assert store.find(f".{os.sep}mine") == found
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    assert store.find("~/mine") == found


def test_a_nested_package_has_the_outer_folders_name(store: Store, tmp_path: Path) -> None:
    inner = make_package(tmp_path / "Qwen2.5-Coder-14B" / NESTED)
    assert store.find(str(inner.parent)) == Package("Qwen2.5-Coder-14B", inner)


def test_two_packages_in_one_folder_are_refused_by_name(store: Store, tmp_path: Path) -> None:
    one, two = make_package(tmp_path / "p" / "one"), make_package(tmp_path / "p" / "two")
    with pytest.raises(PackageError, match="more than one package") as raised:
        store.find(str(tmp_path / "p"))
    assert str(one) in raised.value.message and str(two) in raised.value.message


def test_a_catalogue_model_that_is_not_installed_is_told_how_to_get(store: Store) -> None:
    with pytest.raises(ModelNotFound, match="is not installed") as raised:
        store.find("qwen2.5-coder-7b")
    assert raised.value.next_step == "Run `fimble model pull qwen2.5-coder-7b`."


def test_nothing_of_that_name_lists_what_there_is(store: Store) -> None:
    with pytest.raises(ModelNotFound) as raised:
        store.find("nothing")
    assert "fimble model pull qwen2.5-coder-0.5b" in raised.value.next_step
    make_package(store.root / "one")
    with pytest.raises(ModelNotFound) as raised:
        store.find("nothing")
    assert raised.value.next_step == "Installed: one."


@pytest.mark.parametrize("text", ["", " ", "a\0b", "~nobody-of-that-name/x", "no/such/folder"])
def test_what_is_no_path_is_not_found(store: Store, text: str) -> None:
    with pytest.raises(ModelNotFound):
        store.find(text)


def test_an_empty_folder_and_a_gguf_file_are_no_packages(store: Store, tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="not a model package"):
        store.find(str(tmp_path))
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"GGUF")
    with pytest.raises(PackageError, match="is a file") as raised:
        store.find(str(gguf))
    assert f"fimble model import {gguf}" in raised.value.next_step


# --- removing ------------------------------------------------------------------------------


def test_a_removed_package_is_gone_with_its_unfinished_work(store: Store) -> None:
    make_package(store.root / "one")
    make_package(store.partial("one") / "package")
    store.remove("one")
    assert store.packages() == []
    assert not list((store.root / ".partial").rglob(CONFIG_FILE))
    with pytest.raises(ModelNotFound):
        store.remove("one")


def test_a_broken_package_can_be_removed(store: Store) -> None:
    folder = store.root / "broken"
    folder.mkdir(parents=True)
    locked = folder / "read-only"
    locked.write_text("", encoding="utf-8")
    locked.chmod(0o400)
    store.remove("broken")
    assert not folder.exists()


def test_unfinished_work_alone_can_be_removed(store: Store) -> None:
    make_package(store.partial("one") / "package")
    store.remove("one")
    assert not store.partial("one").exists()


@pytest.mark.parametrize(
    "name",
    [
        *("../outside", "..", ".", "", "a/b", "a\\b", "/etc", "C:", "C:\\x", "a:b", ".partial"),
        *("con", "NUL", "nul.txt", "COM1", "lpt9.gguf", "a ", "a.", "-a", "a\n", "ä", "a" * 101),
    ],
)
def test_a_name_that_is_no_plain_folder_is_refused_everywhere(store: Store, name: str) -> None:
    make_package(store.root.parent / "outside")
    for act in (store.remove, store.partial, lambda n: store.add(n, lambda folder: None)):
        with pytest.raises(UsageError, match="cannot be the name of a model"):
            act(name)
    assert (store.root.parent / "outside" / CONFIG_FILE).exists()


def test_removing_a_link_leaves_what_it_points_to(store: Store, tmp_path: Path) -> None:
    target = make_package(tmp_path / "elsewhere")
    store.root.mkdir()
    try:
        (store.root / "one").symlink_to(target, target_is_directory=True)
    except OSError:
        pytest.skip("this user may not make links")
    store.remove("one")
    assert names(store) == []
    assert (target / CONFIG_FILE).exists()


# --- names ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("qwen2.5-coder-0.5b-instruct-q4_k_m", "qwen2.5-coder-0.5b-instruct-q4_k_m"),
        ("Qwen2.5 Coder (7B)", "qwen2.5-coder-7b"),
        ("..\\evil", "evil"),
        ("--x", "x"),
        ("ü-model.", "model"),
    ],
)
def test_a_file_name_is_made_a_package_name(stem: str, name: str) -> None:
    assert name_from_stem(stem) == name
    assert is_name(name)


@pytest.mark.parametrize("stem", ["", "...", "漢字", "con"])
def test_a_file_name_of_which_none_can_be_made_asks_for_one(stem: str) -> None:
    with pytest.raises(UsageError, match="No model name") as raised:
        name_from_stem(stem)
    assert "--name" in raised.value.next_step


# --- importing a file ----------------------------------------------------------------------


def test_a_gguf_file_is_imported_under_its_own_name(store: Store, tmp_path: Path) -> None:
    gguf = make_tiny_gguf(tmp_path / "Tiny Coder Q8.gguf")
    package = store.import_file(gguf)
    assert package == store.find("tiny-coder-q8")
    assert inspect_package(package).whole
    assert gguf.exists()


def test_a_name_and_a_precision_can_be_chosen(store: Store, tmp_path: Path) -> None:
    package = store.import_file(make_tiny_gguf(tmp_path / "x.gguf"), "mine", "int8")
    assert package.name == "mine"
    assert read_provenance(package).precision == "int8"


def test_an_interrupted_import_goes_on_and_ends_as_if_it_had_not_been(
    store: Store, tmp_path: Path
) -> None:
    gguf = make_tiny_gguf(tmp_path / "x.gguf")
    whole = store.import_file(gguf, "whole")

    def interrupt(event: ProgressEvent) -> None:
        if event.stage == "finish":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.import_file(gguf, "cut", progress=interrupt)
    assert names(store) == ["whole"]
    resumed = store.import_file(gguf, "cut")
    assert contents(resumed) == contents(whole)


def contents(package: Package) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in package.path.iterdir()}


def test_a_file_that_is_none_or_no_gguf_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="There is no file"):
        store.import_file(tmp_path / "none.gguf")
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(FimbleError):
        store.import_file(bad)
    assert store.packages() == []


# --- the default ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installed", "chosen"),
    [
        (["mine"], "mine"),
        (["a", "qwen2.5-coder-0.5b", "z"], "qwen2.5-coder-0.5b"),
        ([], "Run `fimble model pull qwen2.5-coder-0.5b`."),
        (["a", "z"], "Choose one: `--model a`, or the setting `model`."),
    ],
)
def test_the_model_that_runs_where_none_is_named(
    store: Store, installed: list[str], chosen: str
) -> None:
    for name in installed:
        make_package(store.root / name)
    try:
        assert store.default().name == chosen
    except ModelNotFound as error:
        assert error.next_step == chosen
