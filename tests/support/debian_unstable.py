"""Programs from Debian's unstable, unpacked into the tests' cache folder with their own libraries.

Nothing is installed, and the release is whichever Debian has: who uses one says which it is.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from fimble import system
from tests.support.real_model import cache_dir

__all__ = ["LIBRARIES", "CannotBeHad", "program_in", "unpacked"]

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_RUN = """#!/bin/sh
root={root}
{environment}
exec $root/{libraries}/ld-linux-x86-64.so.2 --library-path $root/{libraries} $root/{program} "$@"
"""

#: Where libraries are in a folder that ``unpacked`` gives.
LIBRARIES = "usr/lib/x86_64-linux-gnu"


class CannotBeHad(Exception):
    """Why there is no such program here."""


def unpacked(package: str) -> Path:
    """The root folder of ``package`` and all that it depends on. Raises CannotBeHad."""
    folder = cache_dir() / f"{package}-unstable"
    complete = folder / "complete"
    with system.exclusive_lock(cache_dir() / f"{package}-unstable.lock", timeout=600):
        if not complete.exists():
            _unpack(package, folder)
            complete.touch()
    return folder / "root"


def program_in(root: Path, program: str, *environment: str) -> Path:
    """A script that runs ``program`` with the libraries beside it.

    ``environment`` are assignments in the shell's language, in which ``$root`` is the folder.
    """
    text = _RUN.format(
        root=root,
        environment="\n".join(f"export {each}" for each in environment),
        libraries=LIBRARIES,
        program=program,
    )
    script = root.parent / Path(program).name
    if not script.exists() or script.read_text(encoding="utf-8") != text:
        script.write_text(text, encoding="utf-8", newline="\n")
        script.chmod(0o755)
    return script


def _unpack(package: str, folder: Path) -> None:
    tools = ("apt-get", "dpkg-deb")
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing or platform.machine() != "x86_64" or not _KEYRING.exists():
        raise CannotBeHad("Debian's tools, or its keys, or the right processor are missing")
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
    _run([*apt, "-y", "--no-install-recommends", "--download-only", "install", package])
    for archive in sorted((folder / "cache/archives").glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(folder / "root")])
    shutil.rmtree(folder / "cache")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise CannotBeHad(f"{command[0]} failed: {' '.join(last)}")
