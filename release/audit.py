"""``python -m release.audit``: known holes in what is pinned, as pip-audit and npm know them.

A hole that a newer version closes fails; one without a remedy is printed. Whether advisories can be
had here is found out first, with packages that are known to have holes: what answers nothing about
these would pass everything. Then the audit is skipped, and says so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.node import NPM, node_command
from release.refusal import ReleaseRefused

__all__ = ["Hole", "holes_by_npm", "holes_by_pip_audit", "main", "verdict"]

#: Seconds for one audit.
_PATIENCE = 120
_HOLED_PYTHON = "jinja2==2.11.0\n"
_HOLED_NODE = {"name": "known", "version": "1.0.0", "dependencies": {"minimist": "0.0.8"}}
_HOLED_LOCK = {
    "name": "known",
    "version": "1.0.0",
    "lockfileVersion": 3,
    "packages": {"": _HOLED_NODE, "node_modules/minimist": {"version": "0.0.8"}},
}


@dataclass(frozen=True, slots=True)
class Hole:
    """``remedy`` is what closes it; "" where nothing does yet."""

    package: str
    name: str
    remedy: str


def holes_by_pip_audit(report: str) -> list[Hole] | None:
    """What ``pip-audit --format=json`` found; None for what is no report."""
    found = _json(report)
    if not isinstance(found.get("dependencies"), list):
        return None
    return [
        Hole(f"{each['name']} {each.get('version', '')}", hole["id"], ", ".join(fixed))
        for each in found["dependencies"]
        for hole in each.get("vulns", ())
        for fixed in [hole.get("fix_versions", [])]
    ]


def holes_by_npm(report: str) -> list[Hole] | None:
    """What ``npm audit --json`` found; None for what is no report."""
    found = _json(report)
    if not isinstance(found.get("vulnerabilities"), dict):
        return None
    return [
        Hole(name, about["severity"], "npm audit fix" if about["fixAvailable"] else "")
        for name, about in sorted(found["vulnerabilities"].items())
    ]


def _json(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def verdict(
    name: str, known: Sequence[Hole] | None, found: Sequence[Hole] | None
) -> tuple[list[str], bool]:
    """Lines to print and whether all is well. ``known`` is of the packages that have holes."""
    if not known or found is None:
        return [f"{name}: skipped, since no advisories can be had here"], True
    lines = [
        f"{name}: {hole.package} has {hole.name}; closed by: {hole.remedy or 'nothing yet'}"
        for hole in found
    ]
    well = not any(hole.remedy for hole in found)
    return [*lines, f"{name}: {len(found) or 'no'} known holes"], well


def _pip_audit(requirements: Path) -> list[Hole] | None:
    # All is pinned: nothing is resolved or installed for this.
    options = ("--format=json", "--progress-spinner=off", "--no-deps", "--disable-pip")
    return _asked(holes_by_pip_audit, "pip-audit", *options, "--requirement", str(requirements))


def _npm_audit(folder: Path) -> list[Hole] | None:
    try:
        command = node_command(NPM, "audit", "--json", "--package-lock-only")
    except ReleaseRefused:
        return None
    return _asked(holes_by_npm, *command, folder=folder)


def _asked(
    read: Callable[[str], list[Hole] | None], *command: str, folder: Path | None = None
) -> list[Hole] | None:
    """What the program says, whatever its exit code; None where it says nothing of use."""
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read(ended.stdout)


def main(root: Path) -> int:
    """Audits the pins of the project in ``root``. Returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        holed = Path(folder)
        (holed / "requirements.txt").write_text(_HOLED_PYTHON, encoding="utf-8")
        (holed / "package.json").write_text(json.dumps(_HOLED_NODE), encoding="utf-8")
        (holed / "package-lock.json").write_text(json.dumps(_HOLED_LOCK), encoding="utf-8")
        known_python = _pip_audit(holed / "requirements.txt")
        known_node = _npm_audit(holed)
    well = True
    locks = [root / name for name in ("requirements-test.txt", "requirements-release.txt")]
    for lock in locks:
        found = _pip_audit(lock) if known_python else None
        well &= _say(*verdict(f"pip-audit of {lock.name}", known_python, found))
    found = _npm_audit(root / "clients" / "vscode") if known_node else None
    well &= _say(*verdict("npm audit of the extension", known_node, found))
    return 0 if well else 1


def _say(lines: Sequence[str], well: bool) -> bool:
    print("\n".join(lines))
    return well


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
