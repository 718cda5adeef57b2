"""Processes: detached from their parent, told apart, counted and ended."""

from __future__ import annotations

import contextlib
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

__all__ = [
    "NO_WINDOW",
    "detached_options",
    "is_alive",
    "listens_on",
    "no_core_dumps",
    "open_handles",
    "process_started_at",
    "spawn_detached",
    "start_of",
    "stop_process",
]


def spawn_detached(
    command: Sequence[str],
    *,
    cwd: Path,
    log: IO[bytes],
    environ: Mapping[str, str],
    platform: str = sys.platform,
) -> subprocess.Popen[bytes]:
    """Starts a process that outlives this one, its window and its terminal.

    Its output goes to ``log``; it inherits no other handle. Raises OSError if it can't start.
    """
    *ways, last = detached_options(platform)
    for way in ways:
        with contextlib.suppress(PermissionError):
            return _spawn(command, cwd, log, environ, way)
    return _spawn(command, cwd, log, environ, last)


def _spawn(
    command: Sequence[str],
    cwd: Path,
    log: IO[bytes],
    environ: Mapping[str, str],
    options: Mapping[str, Any],
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        close_fds=True,
        **options,
    )


def detached_options(platform: str) -> list[dict[str, Any]]:
    """The Popen options that cut a child loose from its parent, in the order to try them."""
    if platform == "win32":
        # subprocess.CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW by value: the names exist
        # on Windows only. Editors put their children in a job object that kills them with
        # the window; CREATE_BREAKAWAY_FROM_JOB leaves it, where the job allows that.
        flags = 0x00000200 | 0x08000000
        return [{"creationflags": flags | 0x01000000}, {"creationflags": flags}]
    return [{"start_new_session": True}]


#: For ``creationflags`` of a child: no console window for it on Windows.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


def is_alive(pid: int, started_at: float | None = None) -> bool:
    """Whether process ``pid`` runs, and is the one that started at ``started_at``.

    Ids are used again: without the start (as ``process_started_at`` tells it) a stranger
    passes for a process of ours.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return started_at is None or abs(start_of(process) - started_at) < 2.0
    except psutil.Error:
        return False


def process_started_at(pid: int) -> float:
    """When ``pid`` started, in seconds, from a beginning that is the system's own affair; 0.0
    if there is no such process.
    """
    try:
        return start_of(psutil.Process(pid))
    except psutil.Error:
        return 0.0


def start_of(process: psutil.Process, platform: str = sys.platform) -> float:
    """Tells a process from later ones with its id: seconds, the same at every call.

    Linux keeps the time since it started. Added to the hour of that, as psutil does, it moves
    with every correction of the clock, and a living engine would pass for a dead one.
    """
    since_epoch = float(process.create_time())
    return since_epoch - psutil.boot_time() if platform == "linux" else since_epoch


def no_core_dumps() -> None:
    """A process that crashes leaves no image of its memory, which holds what was asked of it.

    Windows writes none by itself.
    """
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def open_handles(process: psutil.Process, platform: str = sys.platform) -> int:
    """How many files, sockets and the like a process has open."""
    # By its name: psutil's class has one of the two, by the system.
    count = getattr(process, "num_handles" if platform == "win32" else "num_fds")
    return int(count())


def listens_on(pid: int, port: int) -> bool:
    """Whether the process takes TCP connections on the port; True where the system won't tell."""
    # The system's table is read while it changes, so an entry may be missed.
    for _ in range(3):
        listening = _listening(pid)
        if listening is None or port in listening:
            return True
    return not _tells_of_listeners()


def _listening(pid: int) -> set[int] | None:
    """The ports; None where we may not know."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.NoSuchProcess:
        return set()
    except (psutil.Error, OSError, NotImplementedError):
        return None
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}


@functools.cache
def _tells_of_listeners() -> bool:
    """Whether the system says of this process that it listens; some sandboxes hide it."""
    with socket.create_server(("127.0.0.1", 0)) as own:
        return own.getsockname()[1] in (_listening(os.getpid()) or ())


def stop_process(pid: int, *, patience: float = 5.0) -> None:
    """Asks ``pid`` to end, and ends it after ``patience`` seconds if it has not."""
    try:
        process = psutil.Process(pid)
        process.terminate()
        process.wait(timeout=patience)
    except psutil.TimeoutExpired:
        with contextlib.suppress(psutil.Error):
            process.kill()
            process.wait(timeout=patience)
    except psutil.Error:
        return
