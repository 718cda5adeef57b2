"""The system, Python, memory, disk, and the folder that holds fimble's files."""

from __future__ import annotations

import os
import platform
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from fimble import system
from fimble.doctor.checks import Check

__all__ = ["MachineFacts", "home_check", "look_at_system", "machine_checks"]

_LEAST_PYTHON = (3, 10)
_LITTLE_MEMORY = 1 << 30
_LITTLE_DISK = 2 << 30


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Sizes in bytes; ``bits`` of the interpreter's pointers."""

    here: system.OperatingSystem
    os: str
    architecture: str
    python: str
    bits: int
    executable: str
    free_memory: int
    total_memory: int
    free_disk: int
    home: Path
    home_writable: bool


def look_at_system(os_name: str = "") -> MachineFacts:
    """``os_name`` is what the system calls itself, where somebody has asked it."""
    home = system.home()
    free, total = system.available_memory()
    return MachineFacts(
        here=system.operating_system(),
        os=os_name or _os_name(),
        architecture=platform.machine(),
        python=platform.python_version(),
        bits=struct.calcsize("P") * 8,
        executable=sys.executable,
        free_memory=free,
        total_memory=total,
        free_disk=_free_disk(home),
        home=home,
        home_writable=_writable(home),
    )


def _os_name() -> str:
    kernel = f"{platform.uname().system} {platform.release()}"
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return kernel
    return f"{release.get('PRETTY_NAME', 'Linux')}, {kernel}"


def _free_disk(home: Path) -> int:
    try:
        return system.free_disk_bytes(home)
    except OSError:
        return 0


def _writable(home: Path) -> bool:
    """Whether it can be written to, or be made; makes nothing."""
    place = home
    while not place.exists() and place != place.parent:
        place = place.parent
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def machine_checks(facts: MachineFacts) -> list[Check]:
    """Lines about the system and what it has left."""
    return [_os_check(facts), _python_check(facts), _memory_check(facts), _disk_check(facts)]


def _os_check(facts: MachineFacts) -> Check:
    shown = f"{facts.os}, {facts.architecture}"
    if facts.here == "linux" and "microsoft" in facts.os.lower():
        return Check(
            "system",
            "warn",
            f"{shown}: Linux inside Windows (WSL), where no NPU and no DirectML can be reached",
            "For those, install fimble on Windows itself; the CPU works here, too.",
        )
    if facts.here == "other":
        return Check(
            "system", "warn", f"{shown} is not tested", "Use Windows, Linux or macOS if it fails."
        )
    return Check("system", "ok", shown)


def _python_check(facts: MachineFacts) -> Check:
    shown = f"{facts.python}, {facts.bits} bits, {facts.executable}"
    if facts.bits < 64:
        return Check(
            "python",
            "fail",
            f"{shown}: onnxruntime-genai has no 32-bit build",
            "Use 64-bit Python.",
        )
    if tuple(int(part) for part in facts.python.split(".")[:2]) < _LEAST_PYTHON:
        return Check("python", "fail", f"{shown} is too old", "Use Python 3.10 or newer.")
    return Check("python", "ok", shown)


def _memory_check(facts: MachineFacts) -> Check:
    shown = f"{_gib(facts.free_memory)} free of {_gib(facts.total_memory)}"
    if facts.free_memory < _LITTLE_MEMORY:
        return Check("memory", "warn", shown, "Close other programs before a model is loaded.")
    return Check("memory", "ok", shown)


def _disk_check(facts: MachineFacts) -> Check:
    shown = f"{_gib(facts.free_disk)} free for {facts.home}"
    if facts.free_disk < _LITTLE_DISK:
        step = "Free some space, or set FIMBLE_HOME to a folder on another disk."
        return Check("disk", "warn", f"{shown}; a model needs more", step)
    return Check("disk", "ok", shown)


def home_check(facts: MachineFacts) -> Check:
    """Whether fimble can keep its files."""
    if not facts.home_writable:
        step = "Set FIMBLE_HOME to a folder that you can write to."
        return Check("home", "fail", f"{facts.home} cannot be written to", step)
    return Check("home", "ok", str(facts.home))


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
