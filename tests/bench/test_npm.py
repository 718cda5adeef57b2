"""npm packages as data: what is taken out of a tarball, and what never is."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from fimble import system
from fimble.bench.npm import fetch_npm_package, unpack_sources
from fimble.bench.packages import copy_packages
from fimble.errors import UsageError

CODE = "export const a = 1;\n"


def tarball(path: Path, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> Path:
    """A package with these files, named from its root."""
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def unpacked(folder: Path) -> list[str]:
    return sorted(
        file.relative_to(folder).as_posix() for file in folder.rglob("*") if not file.is_dir()
    )


@pytest.mark.parametrize(
    ("inside", "taken"),
    [
        (["lib/a.js", "lib/b.mjs", "c.ts", "d.tsx"], ["c.ts", "d.tsx", "lib/a.js", "lib/b.mjs"]),
        (["lib/a.js", "a.d.ts", "a.min.js", "dist/a.js"], ["lib/a.js"]),
        (["lib/a.js", "README.md", "run.sh", "a.node"], ["lib/a.js"]),
        # What is beside src is made of it: it would give the answers away.
        (["src/a.ts", "a.js", "v4/a.js"], ["src/a.ts"]),
        (["src/a.ts", "package.json"], ["package.json", "src/a.ts"]),
    ],
)
def test_source_is_taken_and_nothing_else(
    tmp_path: Path, inside: list[str], taken: list[str]
) -> None:
    archive = tarball(tmp_path / "p.tgz", {f"package/{name}": CODE for name in inside})
    unpack_sources(archive, tmp_path / "out")
    assert unpacked(tmp_path / "out") == taken


def test_nothing_leads_out_of_the_folder(tmp_path: Path) -> None:
    hostile = ["package/../../a.js", "package/..\\..\\b.js", "/etc/c.js", "package/x:y.js", "d.js"]
    files = dict.fromkeys([*hostile, "package/fine.js"], CODE)
    archive = tarball(tmp_path / "p.tgz", files, {"package/link.js": "../../../outside.js"})
    unpack_sources(archive, tmp_path / "in" / "out")
    # The first folder of a name is the package's own, whatever it is called.
    assert unpacked(tmp_path) == ["in/out/etc/c.js", "in/out/fine.js", "p.tgz"]


@pytest.mark.parametrize(
    ("files", "said"),
    [({"package/readme.md": "x"}, "no JavaScript"), ({"package/package.json": "{}"}, "no Java")],
)
def test_a_package_without_source(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        unpack_sources(tarball(tmp_path / "p.tgz", files), tmp_path / "out")


def test_a_file_that_is_no_package(tmp_path: Path) -> None:
    (tmp_path / "p.tgz").write_bytes(b"no archive")
    with pytest.raises(UsageError, match="is no npm package"):
        copy_packages([str(tmp_path / "p.tgz")], tmp_path / "out")


@pytest.mark.parametrize(
    "spec", ["rxjs", "rxjs@latest", "rxjs@^7.0.0", "../x@1.0.0", "a@1.0.0 --global", "git+x@1.2.3"]
)
def test_only_exact_versions_are_fetched(spec: str) -> None:
    with pytest.raises(UsageError, match="names no version"):
        fetch_npm_package(spec)


@pytest.fixture
def fake_npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of npm: notes how it is called, and packs what lies ready."""
    if os.name == "nt":
        pytest.skip("a shell script stands for npm here")
    folder = tmp_path / "bin"
    folder.mkdir()
    packed = tarball(tmp_path / "packed.tgz", {"package/lib/a.js": CODE})
    script = folder / "npm"
    script.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> "{tmp_path}/calls"\n'
        f'[ "$2" = missing@1.0.0 ] && echo "404 Not Found" >&2 && exit 1\n'
        f'for last; do :; done\ncp "{packed}" "$last/made.tgz"\n',
        encoding="utf-8",
        newline="\n",
    )
    script.chmod(0o755)
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(system, "find_program", lambda name, **_: script)
    return tmp_path / "calls"


def test_a_package_is_fetched_once_and_without_scripts(fake_npm: Path, tmp_path: Path) -> None:
    for number in range(2):
        (made,) = copy_packages(["npm:@scope/thing@1.2.3"], tmp_path / f"out{number}")
        assert unpacked(made) == ["lib/a.js"]
        assert made.name == "@scope_thing@1.2.3"
    (call,) = fake_npm.read_text(encoding="utf-8").splitlines()
    assert call.startswith("pack @scope/thing@1.2.3 --ignore-scripts ")


@pytest.mark.usefixtures("fake_npm")
def test_a_package_that_npm_cannot_get() -> None:
    with pytest.raises(UsageError, match=r"could not get missing@1\.0\.0: 404 Not Found"):
        fetch_npm_package("missing@1.0.0")


def test_without_npm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    monkeypatch.setattr(system, "find_program", lambda name, **_: None)
    with pytest.raises(UsageError, match="not installed"):
        fetch_npm_package("rxjs@7.8.2")
