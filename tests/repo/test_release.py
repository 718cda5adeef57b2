"""A release is made of a clean commit whose parts agree, and of nothing else: same bytes each time.

The extension's part is in tests/clients/vscode.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.version import Version
from release.refusal import ReleaseRefused
from release.tree import Commit, agreed_version, clean_commit, export

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore", ".gitattributes")
FOLDERS = ("server", "context", "examples", "clients")
#: Where packages are, of which there are files in a wheel.
SOURCES = ("server", "context", "examples")
LEFTOVERS = ("node_modules", "dist", "build", "__pycache__", "*.egg-info", "*.vsix", ".*_cache")


def git(repository: Path, *arguments: str) -> str:
    me = {f"GIT_{who}_{what}": "fimble" for who in ("AUTHOR", "COMMITTER") for what in ("NAME",)}
    me |= {"GIT_AUTHOR_EMAIL": "f@example.org", "GIT_COMMITTER_EMAIL": "f@example.org"}
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(
        ["git", "-C", str(repository), *arguments],
        env={**os.environ, **me, **quiet},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with these sources, committed."""
    if shutil.which("git") is None:
        pytest.skip("there is no git")
    repository = tmp_path_factory.mktemp("original")
    for name in PARTS:
        shutil.copy(ROOT / name, repository / name)
    for name in FOLDERS:
        unwanted = shutil.ignore_patterns(*LEFTOVERS)
        shutil.copytree(ROOT / name, repository / name, ignore=unwanted)
    git(repository, "init", "--quiet")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "All of it")
    return repository


@pytest.fixture
def repository(original: Path, tmp_path: Path) -> Path:
    """One to be changed."""
    return Path(shutil.copytree(original, tmp_path / "repository"))


def exported(repository: Path, folder: Path) -> Path:
    export(repository, clean_commit(repository), folder)
    return folder


# --- what is refused ---------------------------------------------------------------------


def test_a_clean_commit_is_exported_as_it_is(repository: Path, tmp_path: Path) -> None:
    stale = repository / "server" / "fimble" / "__pycache__" / "stale.pyc"
    stale.parent.mkdir()
    stale.write_bytes(b"stale")
    tree = exported(repository, tmp_path / "tree")
    files = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    assert files == set(git(repository, "ls-files").splitlines())


@pytest.mark.parametrize("name", ["server/fimble/errors.py", "server/fimble/new.py", "notes.txt"])
def test_a_checkout_that_is_not_clean_is_refused(repository: Path, name: str) -> None:
    with (repository / name).open("a", encoding="utf-8") as file:
        file.write("# more\n")
    with pytest.raises(ReleaseRefused, match="not clean") as caught:
        clean_commit(repository)
    assert name in str(caught.value)


def test_no_clone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseRefused, match="Run this in a clone"):
        clean_commit(tmp_path)


def release_notes(tree: Path, heading: str) -> None:
    file = tree / "CHANGELOG.md"
    text = file.read_text(encoding="utf-8")
    before, found, after = text.partition("\n## ")
    assert found
    file.write_text(f"{before}\n## {heading}\n\n## {after}", encoding="utf-8", newline="\n")


def test_parts_of_one_version_agree(repository: Path) -> None:
    said = json.loads((repository / "clients/vscode/package.json").read_text("utf-8"))["version"]
    release_notes(repository, f"{said} (2026-12-24)")
    assert agreed_version(repository) == said


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pyproject.toml", '\nversion = "'),
        ("server/fimble/__init__.py", '__version__ = "'),
        ("clients/nvim/lua/fimble/init.lua", 'M.version = "'),
        ("clients/vscode/package.json", '"version": "'),
        ("clients/vscode/package-lock.json", '"": {\n      "name": "fimble",\n      "version": "'),
    ],
)
def test_a_part_of_another_version_is_refused(repository: Path, name: str, found: str) -> None:
    release_notes(repository, agreed_version(repository, rehearsal=True))
    file = repository / name
    text = file.read_text(encoding="utf-8")
    assert text.count(found) == 1
    file.write_text(text.replace(found, f"{found}9"), encoding="utf-8", newline="\n")
    with pytest.raises(ReleaseRefused, match="do not agree") as caught:
        agreed_version(repository)
    assert f"{name} 9" in str(caught.value)


def test_a_changelog_that_does_not_name_the_version_is_refused(repository: Path) -> None:
    release_notes(repository, "Unreleased")
    with pytest.raises(ReleaseRefused, match=r"CHANGELOG\.md Unreleased"):
        agreed_version(repository)
    assert agreed_version(repository, rehearsal=True)


# --- what is built -----------------------------------------------------------------------

BUILD = """
import os, sys, time
from pathlib import Path
from release.build import build_plugin, build_sdist, build_wheel

folder, umask, seconds = Path(sys.argv[1]), int(sys.argv[2], 8), int(sys.argv[3])
os.umask(umask)
(folder / "dist").mkdir()
sdist = build_sdist(folder / "tree", folder / "dist", seconds)
build_wheel(sdist, folder / "dist", seconds, folder / "source")
build_plugin(folder / "tree", folder / "dist", "1.2.3", seconds)
"""


def build(repository: Path, folder: Path, umask: str, **environ: str) -> dict[str, bytes]:
    """The bytes by name of what is built in ``folder`` in a process with these surroundings."""
    commit = clean_commit(repository)
    export(repository, commit, folder / "tree")
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    ended = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder), umask, str(commit.time)],
        env={**os.environ, "PYTHONPATH": paths, **environ},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return {file.name: file.read_bytes() for file in (folder / "dist").iterdir()}


@pytest.fixture(scope="module")
def built(original: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Built twice, with the same bytes; the files by their endings."""
    try:
        new_enough = Version(version("setuptools")) >= Version("77")
    except PackageNotFoundError:
        new_enough = False
    if not new_enough:
        pytest.skip("needs the extra e2e: pip install '.[e2e]'")
    one = tmp_path_factory.mktemp("one")
    other = tmp_path_factory.mktemp("another folder, with a longer name")
    first = build(original, one, "077", TZ="Asia/Tokyo", LC_ALL="C", PYTHONHASHSEED="1")
    second = build(original, other, "000", TZ="America/Lima", LC_ALL="C.UTF-8")
    assert sorted(first) == sorted(second)
    for name in first:
        assert first[name] == second[name], f"{name} differs"
    assert len(first) == 3
    return {ending: one / "dist" / name for name in first for ending in [name.rpartition("-")[2]]}


def sources(repository: Path) -> set[str]:
    """The packages' files, by their paths in the repository; what is told beside them is none."""
    listed = git(repository, "ls-files", *SOURCES).splitlines()
    return {name for name in listed if not name.endswith((".md", ".svg"))}


def test_a_wheel_holds_the_packages_and_nothing_else(
    original: Path, built: dict[str, Path]
) -> None:
    with zipfile.ZipFile(built["any.whl"]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        about = {Path(name).name for name in wheel.namelist() if ".dist-info/" in name}
        assert wheel.testzip() is None
    assert names == {source.partition("/")[2] for source in sources(original)}
    assert about == {"LICENSE", "METADATA", "RECORD", "WHEEL", "entry_points.txt", "top_level.txt"}


def test_a_source_distribution_holds_what_makes_the_wheel(
    original: Path, built: dict[str, Path]
) -> None:
    (path,) = (path for ending, path in built.items() if path.name == f"fimble-{ending}")
    with tarfile.open(path) as sdist:
        names = {member.name.partition("/")[2] for member in sdist}
    top = {"LICENSE", "PKG-INFO", "README.md", "pyproject.toml", "setup.cfg"}
    assert {name for name in names if not name.startswith("fimble.egg-info/")} == {
        *top,
        *sources(original),
    }


def test_members_belong_to_nobody_and_have_the_commits_time(
    original: Path, built: dict[str, Path]
) -> None:
    seconds = clean_commit(original).time
    for path in built.values():
        if path.suffix == ".whl":
            continue
        with tarfile.open(path) as archive:
            for member in archive:
                assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
                assert (member.mtime, member.mode) == (seconds, 0o644), member.name


def test_the_plugin_is_a_folder_that_neovim_can_load(built: dict[str, Path]) -> None:
    with tarfile.open(built["nvim.tar.gz"]) as plugin:
        names = set(plugin.getnames())
    lua = ROOT / "clients" / "nvim" / "lua" / "fimble"
    assert names == {
        *(f"fimble/{name}" for name in ("LICENSE", "README.md", "doc/fimble.txt")),
        *("fimble/lsp/fimble.lua", "fimble/plugin/fimble.lua"),
        *(f"fimble/lua/fimble/{file.name}" for file in lua.glob("*.lua")),
    }


# --- what it is made of ------------------------------------------------------------------


@pytest.mark.skipif(
    importlib.util.find_spec("cyclonedx") is None, reason="needs the extra e2e: '.[e2e]'"
)
def test_a_bill_of_materials_names_each_part_and_its_licence() -> None:
    from release.resolve import Package
    from release.sbom import server_sbom

    told = {"name": "Told", "version": "1", "license_expression": "MIT OR Apache-2.0"}
    needed = {"name": "needed", "version": "2", "classifier": ["License :: OSI Approved :: BSD"]}
    packages = [
        Package(
            {**told, "requires_dist": ["needed>=1", "not-here; extra == 'x'"]}, {""}, {"linux"}
        ),
        Package(needed, {"cpu"}, {"linux", "windows"}),
    ]
    about = {"name": "fimble", "version": "1.2.3", "requires_dist": ["told"]}
    commit = Commit("0" * 40, 1_700_000_000)
    text = server_sbom(packages, about, "ab" * 32, commit)
    assert server_sbom(packages, about, "ab" * 32, commit) == text
    bom = json.loads(text)
    assert bom["metadata"]["component"]["purl"] == "pkg:pypi/fimble@1.2.3"
    first, second = sorted(bom["components"], key=lambda part: str(part["version"]))
    assert first["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert first["scope"] == "required" and second["scope"] == "optional"
    assert second["licenses"] == [{"license": {"name": "BSD"}}]
    assert {"name": "fimble:extra", "value": "cpu"} in second["properties"]
    depends = {each["ref"]: each.get("dependsOn", []) for each in bom["dependencies"]}
    assert depends["fimble==1.2.3"] == ["told==1"] and depends["told==1"] == ["needed==2"]
    with pytest.raises(ReleaseRefused, match="names no licence"):
        server_sbom([Package({"name": "bare", "version": "3"})], about, "ab" * 32, commit)
