"""Wheel, source distribution, plugin and extension, from an export of the commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.metadata import ExceptionGroup, Metadata, parse_email

from release.archives import rewrite_tar, rewrite_zip, unpack, write_tar
from release.node import run_node
from release.refusal import ReleaseRefused

__all__ = ["build_extension", "build_plugin", "build_sdist", "build_wheel"]

#: What the plugin consists of; the rest of its folder is for its development.
_PLUGIN = ("README.md", "doc", "lsp", "lua", "plugin")

_BACKEND = (
    "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
)


def build_sdist(tree: Path, target: Path, seconds: int) -> Path:
    """The source distribution of ``tree``, in the folder ``target``."""
    sdist = _build("build_sdist", tree, target, seconds, "fimble-*.tar.gz")
    rewrite_tar(sdist, seconds)
    return sdist


def build_wheel(sdist: Path, target: Path, seconds: int, work: Path) -> Path:
    """The wheel, made from the source distribution, so that anyone can make it again."""
    with sdist.open("rb") as file:
        unpack(file, work)
    source = work / sdist.name.removesuffix(".tar.gz")
    wheel = _build("build_wheel", source, target, seconds, "fimble-*.whl")
    rewrite_zip(wheel, seconds)
    metadata_of(wheel)
    return wheel


def metadata_of(wheel: Path) -> dict[str, Any]:
    """Its metadata as JSON (PEP 566). Raises ReleaseRefused where an index would refuse them."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        written = archive.read(name)
    try:
        Metadata.from_email(written, validate=True)
    except ExceptionGroup as error:
        raise ReleaseRefused(f"The metadata are not valid: {error}. See pyproject.toml.") from error
    raw, _ = parse_email(written)
    return dict(raw)


def build_plugin(tree: Path, target: Path, version: str, seconds: int) -> Path:
    """The plugin for Neovim, as a folder to be put below a ``pack/*/start``."""
    plugin = tree / "clients" / "nvim"
    files = [plugin / name for name in _PLUGIN]
    files += [file for folder in files for file in folder.rglob("*")]
    members = {
        f"fimble/{file.relative_to(plugin).as_posix()}": (file.read_bytes(), False)
        for file in files
        if file.is_file()
    }
    members["fimble/LICENSE"] = ((tree / "LICENSE").read_bytes(), False)
    archive = target / f"fimble-{version}-nvim.tar.gz"
    write_tar(archive, members, seconds)
    return archive


def build_extension(tree: Path, wheel: Path, target: Path, version: str, seconds: int) -> Path:
    """The extension for VS Code, with the wheel in it; its ``node_modules`` are in the tree."""
    client = tree / "clients" / "vscode"
    run_node(
        "scripts/package.mjs",
        cwd=client,
        environ={**_environ(seconds), "FIMBLE_WHEEL": str(wheel.resolve())},
    )
    vsix = target / f"fimble-{version}.vsix"
    shutil.move(client / "fimble.vsix", vsix)
    rewrite_zip(vsix, seconds)
    return vsix


def _build(hook: str, source: Path, target: Path, seconds: int, pattern: str) -> Path:
    """Has setuptools make one file in ``target``."""
    ended = subprocess.run(
        [sys.executable, "-c", _BACKEND, hook, str(target.resolve())],
        cwd=source,
        env=_environ(seconds),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        raise ReleaseRefused(f"setuptools failed: {ended.stdout}")
    (made,) = target.glob(pattern)
    return made


def _environ(seconds: int) -> Mapping[str, str]:
    """What the tools that build see of their surroundings: nothing that changes what they make."""
    fixed = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONHASHSEED": "0"}
    return {**os.environ, **fixed, "SOURCE_DATE_EPOCH": str(seconds)}
