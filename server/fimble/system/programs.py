"""Other programs: where they are, and what Windows' PowerShell tells."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from fimble.system.processes import NO_WINDOW

__all__ = [
    "find_program",
    "powershell_json",
]


def find_program(
    name: str,
    environ: Mapping[str, str] = os.environ,
    *,
    places: Sequence[Path] = (),
    outside: Sequence[Path] = (),
    scripts: bool = False,
    platform: str = sys.platform,
) -> Path | None:
    """The program of that name: in one of ``places``, else by ``PATH``; None if there is none.

    Only absolute folders count, and nothing that lies in one of ``outside`` or leads there: a
    workspace may bring programs along, and its environment may be in the path. ``scripts``
    takes Windows' command files too, which run in a shell.
    """
    suffixes = [""]
    if platform == "win32":
        suffixes = [".exe", *((".cmd", ".bat") if scripts else ())]
    forbidden = [_real(folder) for folder in outside]

    def may_be_used(path: Path) -> bool:
        return not any(_real(path).is_relative_to(folder) for folder in forbidden)

    on_path = [Path(entry.strip('"')) for entry in environ.get("PATH", "").split(os.pathsep)]
    for folder in (*places, *on_path):
        if not folder.is_absolute() or (folder not in places and not may_be_used(folder)):
            continue
        for suffix in suffixes:
            found = folder / f"{name}{suffix}"
            if _is_program(found, platform) and (folder in places or may_be_used(found)):
                return found
    return None


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path.absolute()


def _is_program(path: Path, platform: str) -> bool:
    try:
        return path.is_file() and (platform == "win32" or os.access(path, os.X_OK))
    except (OSError, ValueError):
        return False


def powershell_json(
    script: str,
    *,
    timeout: float = 20.0,
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run,
    platform: str = sys.platform,
    environ: Mapping[str, str] = os.environ,
) -> Any:
    """What the PowerShell expression ``script`` gives, by way of JSON; None where it fails.

    Always None on other systems. Marks around the JSON keep out what a profile or a policy
    prints, and it is Windows' own PowerShell, not the first of that name in the path.
    """
    root = environ.get("SYSTEMROOT", "")
    if platform != "win32" or not root:
        return None
    program = PureWindowsPath(root, "System32", "WindowsPowerShell", "v1.0", "powershell.exe")
    begin, end = "<<fimble", "fimble>>"
    whole = (
        "[Console]::OutputEncoding = [Text.Encoding]::UTF8; "
        f"$fimble = ({script}) | ConvertTo-Json -Depth 4 -Compress; "
        f"'{begin}' + $fimble + '{end}'"
    )
    try:
        done = run(
            [str(program), "-NoProfile", "-NonInteractive", "-Command", whole],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            creationflags=NO_WINDOW,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    _, found, rest = done.stdout.rpartition(begin)
    text, closed, _ = rest.partition(end)
    if not found or not closed:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
