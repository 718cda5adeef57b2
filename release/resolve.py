"""What an installation of fimble brings along, by extra and system, and what that says of itself.

Versions are those of ``requirements-test.txt`` where it has them. Nothing is installed: uv resolves
and pip fetches descriptions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.refusal import ReleaseRefused

__all__ = ["Package", "resolve"]

_PYTHON = "3.12"
#: What pip calls systems, by what uv calls them.
_PLATFORMS = {
    "linux": ("manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux_2_27_x86_64",
              "manylinux_2_28_x86_64", "manylinux_2_34_x86_64"),
    "windows": ("win_amd64",),
    "macos": ("macosx_14_0_arm64",),
}  # fmt: skip
#: The extras for users and where they can be installed; "" is what comes without any.
_EXTRAS = {
    "": ("linux", "windows", "macos"),
    "cpu": ("linux", "windows", "macos"),
    "directml": ("windows",),
    "winml": ("windows",),
    "cuda": ("linux", "windows"),
    "plot": ("linux", "windows", "macos"),
    "keyring": ("linux", "windows", "macos"),
}


@dataclass(slots=True)
class Package:
    """``about`` is its metadata as JSON (PEP 566); ``extras`` are the ones that bring
    it, "" where all do.
    """

    about: dict[str, Any]
    extras: set[str] = field(default_factory=set)
    systems: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return canonicalize_name(self.about["name"])

    @property
    def version(self) -> str:
        return str(self.about["version"])

    @property
    def needs(self) -> set[str]:
        """The names of all that it may ask for, with any extra."""
        listed = map(Requirement, self.about.get("requires_dist", ()))
        return {str(canonicalize_name(each.name)) for each in listed} - {self.name}


def resolve(tree: Path) -> list[Package]:
    """The packages, sorted. Raises ReleaseRefused where they cannot be found."""
    found: dict[str, Package] = {}
    for extra, systems in _EXTRAS.items():
        for system in systems:
            pins = list(_pins(tree, extra, system))
            for about in _described([pin for pin in pins if pin not in found], system):
                found[f"{canonicalize_name(about['name'])}=={about['version']}"] = Package(about)
            for pin in pins:
                found[pin].systems.add(system)
                found[pin].extras.add(extra)
    for package in found.values():
        if "" in package.extras:
            package.extras = {""}
    return sorted(found.values(), key=lambda package: (package.name, package.version))


def _pins(tree: Path, extra: str, system: str) -> Iterator[str]:
    """``name==version`` of all that fimble with ``extra`` brings along there."""
    command = [
        "uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--no-emit-index-url",
        "--python-version", _PYTHON, "--python-platform", system,
        "--constraints", "requirements-test.txt", *(["--extra", extra] if extra else []),
        "pyproject.toml",
    ]  # fmt: skip
    for line in _run(command, tree).splitlines():
        if "==" in line:
            pinned = Requirement(line)
            yield f"{canonicalize_name(pinned.name)}{pinned.specifier}"


def _described(pins: Sequence[str], system: str) -> list[dict[str, Any]]:
    if not pins:
        return []
    platforms = [f"--platform={name}" for name in _PLATFORMS[system]]
    command = [
        "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps",
        "--only-binary=:all:", f"--python-version={_PYTHON}", *platforms, "--report=-", *pins,
    ]  # fmt: skip
    return [each["metadata"] for each in json.loads(_run(command, Path.cwd()))["install"]]


def _run(command: Sequence[str], folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        # The oldest macOS that the runtime has wheels for.
        env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        raise ReleaseRefused(f"{' '.join(command[:3])} failed: {ended.stderr.strip()}")
    return ended.stdout
