"""The commit that is released: whether it may be, and its files."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from release.archives import unpack
from release.refusal import ReleaseRefused

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Commit", "agreed_version", "clean_commit", "export"]

_UNRELEASED = "Unreleased"


@dataclass(frozen=True, slots=True)
class Commit:
    """``time`` is when it was made, in seconds since 1970: the time of all that is built."""

    name: str
    time: int


def clean_commit(repository: Path) -> Commit:
    """What is checked out. Raises ReleaseRefused where files differ from it or are added."""
    changed = _git(repository, "status", "--porcelain").decode().splitlines()
    if changed:
        raise ReleaseRefused(
            f"The checkout is not clean ({changed[0].strip()}, {len(changed)} in all): "
            "commit these files or remove them."
        )
    name, time = _git(repository, "log", "-1", "--format=%H %ct").decode().split()
    return Commit(name, int(time))


def export(repository: Path, commit: Commit, folder: Path) -> None:
    """Writes the commit's files below ``folder``, with the same modes under any umask."""
    unpack(io.BytesIO(_git(repository, "archive", "--format=tar", commit.name)), folder)


def agreed_version(tree: Path, *, rehearsal: bool = False) -> str:
    """The version that all parts of an export say they have.

    A ``rehearsal`` may have a changelog that does not name the version yet. Raises
    ReleaseRefused where they do not agree.
    """
    said = _versions(tree)
    if rehearsal and said["CHANGELOG.md"] == _UNRELEASED:
        del said["CHANGELOG.md"]
    if len(set(said.values())) != 1:
        listed = ", ".join(f"{file} {version}" for file, version in said.items())
        raise ReleaseRefused(f"The versions do not agree: {listed}. Make them one.")
    return said["pyproject.toml"]


def _versions(tree: Path) -> dict[str, str]:
    def text(name: str) -> str:
        return (tree / name).read_text(encoding="utf-8")

    def found(name: str, pattern: str) -> str:
        match = re.search(pattern, text(name), re.MULTILINE)
        return match[1] if match else "none"

    lock = json.loads(text("clients/vscode/package-lock.json"))
    return {
        "pyproject.toml": tomllib.loads(text("pyproject.toml"))["project"]["version"],
        **{
            name: found(name, pattern)
            for name, pattern in (
                ("server/fimble/__init__.py", r'^__version__ = "(.+)"$'),
                ("clients/nvim/lua/fimble/init.lua", r'^M\.version = "(.+)"$'),
                # The newest is the first.
                ("CHANGELOG.md", r"^## (\S+)"),
            )
        },
        "clients/vscode/package.json": json.loads(text("clients/vscode/package.json"))["version"],
        "clients/vscode/package-lock.json": lock["packages"][""]["version"],
    }


def _git(repository: Path, *arguments: str) -> bytes:
    ended = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    if ended.returncode != 0:
        said = ended.stderr.decode("utf-8", "replace").strip()
        raise ReleaseRefused(f"git {arguments[0]} failed: {said}. Run this in a clone.")
    return ended.stdout
