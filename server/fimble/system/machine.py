"""The system itself: its name, its memory, its ports, its console."""

from __future__ import annotations

import ctypes
import socket
import sys
from typing import Literal

import psutil

__all__ = [
    "OperatingSystem",
    "available_memory",
    "memory_lock_limit",
    "operating_system",
    "port_options",
    "use_utf8_console",
]

OperatingSystem = Literal["windows", "linux", "macos", "other"]


def operating_system(platform: str = sys.platform) -> OperatingSystem:
    """Which system this is, by the name that people know it by."""
    names: dict[str, OperatingSystem] = {"win32": "windows", "linux": "linux", "darwin": "macos"}
    return names.get(platform, "other")


def available_memory() -> tuple[int, int]:
    """(bytes that can be had without swapping, bytes in all) of the system's memory."""
    memory = psutil.virtual_memory()
    return int(memory.available), int(memory.total)


def memory_lock_limit() -> int | None:
    """The bytes of memory that this user's processes may lock; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY else soft


def port_options(platform: str = sys.platform) -> list[tuple[int, int, int]]:
    """What ``setsockopt`` has to be told so that no other program can listen on a port beside us.

    Windows lets one do so that asks for the address to be used again; SO_EXCLUSIVEADDRUSE, by
    value since the name exists there only, forbids it. Elsewhere it cannot be had twice.
    """
    return [(socket.SOL_SOCKET, -5, 1)] if platform == "win32" else []


def use_utf8_console() -> None:
    """Makes the standard streams take any character, whatever the console's code page.

    A Windows console or a pipe with a legacy code page would fail on the first ``✓``.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
    if sys.platform == "win32":
        ctypes.windll.kernel32.SetConsoleOutputCP(65001)
