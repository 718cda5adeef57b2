"""Finds the user's engine, or starts it: one process for all windows.

Knows nothing of what is asked of the engine afterwards. The start happens under a lock
between processes; the new process is detached, so it outlives the editor window.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import httpx

import fimble
from fimble import errors, system
from fimble.engine.address import (
    FAILURE_MARK,
    EngineAddress,
    files_unusable,
    is_served,
    launch_lock_path,
    read_address,
    work_dir,
)
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import PROTOCOL_VERSION
from fimble.errors import EngineError, EngineUnavailable, FimbleError
from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = [
    "EngineAddress",
    "ensure_running",
    "find_running",
    "log_path",
    "loopback_client",
    "start_engine",
]

START_SECONDS = 60.0
#: How long an engine of an older release may go on with what it was asked.
_FINISH_SECONDS = 20.0
#: A disk with less is full: an engine needs that for its log and its address.
_FULL_BYTES = 16_384
_LOG_BYTES = 1_000_000


def log_path() -> Path:
    """The engine's log."""
    return system.logs_dir() / "engine.log"


async def ensure_running(
    options: EngineOptions, progress: Progress = ignore_progress
) -> EngineAddress:
    """The running engine, started first where there is none.

    ``progress`` is called on the event loop. Raises EngineUnavailable or RuntimeMissing
    when it cannot be started.
    """
    loop = asyncio.get_running_loop()

    def on_loop(event: ProgressEvent) -> None:
        loop.call_soon_threadsafe(progress, event)

    return await asyncio.to_thread(start_engine, options, on_loop)


def start_engine(options: EngineOptions, progress: Progress = ignore_progress) -> EngineAddress:
    """``ensure_running`` for callers without an event loop."""
    running = find_running()
    if running is not None and _understands(running):
        return running
    try:
        with system.exclusive_lock(launch_lock_path(), timeout=START_SECONDS * 2):
            running = find_running()
            if running is not None and _understands(running):
                return running
            if running is not None:
                _let_finish(running)
                system.stop_process(running.pid)
            return _start(options, progress)
    except TimeoutError as error:
        raise EngineUnavailable(
            "Another process has been starting the engine for two minutes.",
            next_step="Run `fimble engine stop`, then try again.",
        ) from error
    except EngineError:
        raise
    except FimbleError as error:
        raise EngineUnavailable(error.message, next_step=error.next_step) from error
    except OSError as error:
        raise files_unusable(error) from error


def _understands(engine: EngineAddress) -> bool:
    """Whether it can be asked by this release; False for an older one's, which is to be replaced.

    The newer release has its way, whichever window asks: were it the one that asks last, two
    windows of different releases would end each other's engine at every turn. Raises
    EngineUnavailable for an engine of a newer protocol.
    """
    if engine.protocol > PROTOCOL_VERSION:
        raise EngineUnavailable(
            f"The engine that runs is of a newer fimble ({engine.version}), "
            f"which this one ({fimble.__version__}) does not understand.",
            next_step="Restart the language server if fimble was updated; "
            "else update this one too, or run `fimble engine stop`.",
        )
    return engine.protocol == PROTOCOL_VERSION


def _let_finish(engine: EngineAddress) -> None:
    """Waits until the engine has answered what it was asked, within limits."""
    deadline = time.monotonic() + _FINISH_SECONDS
    while time.monotonic() < deadline:
        try:
            with loopback_client(2.0) as client:
                headers = {"Authorization": f"Bearer {engine.secret}"}
                health = client.get(f"{engine.url}/health", headers=headers).json()
            if not health.get("waiting"):
                return
        except httpx.TimeoutException:
            pass  # it is at work
        except (httpx.HTTPError, ValueError, AttributeError):
            return  # another release may speak otherwise
        time.sleep(0.1)


def find_running() -> EngineAddress | None:
    """The engine that the runtime file names, if that very process lives and is ours.

    A file left by a crash, a process id that now belongs to a stranger and a port taken
    over by another server, which gets to see nothing of ours, all count as no engine.
    """
    address = read_address()
    if address is None or not is_served(address):
        return None
    return address if _probe(address) != "stranger" else None


def loopback_client(timeout: float) -> httpx.Client:
    """A client for one plain HTTP request to loopback; ``timeout`` in seconds."""
    # No proxy; and no certificates, whose loading takes longer than the request.
    return httpx.Client(trust_env=False, verify=False, timeout=timeout)


def _probe(address: EngineAddress) -> Literal["ours", "busy", "stranger"]:
    try:
        with loopback_client(2.0) as client:
            response = client.get(
                f"{address.url}/health", headers={"Authorization": f"Bearer {address.secret}"}
            )
    except httpx.TimeoutException:
        # The runtime holds the interpreter while it opens a model: a live process that
        # does not answer is at work, not gone.
        return "busy"
    except httpx.HTTPError:
        return "stranger"
    try:
        ours = response.status_code == 200 and response.json()["pid"] == address.pid
    except (ValueError, KeyError, TypeError):
        ours = False
    return "ours" if ours else "stranger"


def _start(options: EngineOptions, progress: Progress) -> EngineAddress:
    log = log_path()
    system.make_private_dir(log.parent)
    cwd = system.make_private_dir(work_dir())
    _rotate(log)
    progress(ProgressEvent("start engine", 0, 1, "steps"))
    options = replace(options, started_in=_current_folder())
    command = [sys.executable, "-m", "fimble.engine", *options.to_arguments()]
    with log.open("ab") as stream:
        beginning = stream.tell()
        process = system.spawn_detached(command, cwd=cwd, log=stream, environ=os.environ)
    address = _wait_until_it_answers(process, log, beginning)
    progress(ProgressEvent("start engine", 1, 1, "steps"))
    return address


def _current_folder() -> str:
    """Empty where it was deleted."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def _wait_until_it_answers(
    process: subprocess.Popen[bytes], log: Path, beginning: int
) -> EngineAddress:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        address = read_address()
        # Not compared with the child's id: a venv's python.exe on Windows is a shim whose
        # child is the real interpreter. The secret tells ours apart.
        if address is not None and find_running() is not None:
            return address
        if ended:
            raise _startup_error(log, beginning, process.returncode)
        time.sleep(0.05)
    process.kill()
    raise EngineUnavailable(
        f"The engine did not answer within {START_SECONDS:.0f} seconds of its start.",
        next_step=f"Its log is {log}.",
    )


def _startup_error(log: Path, beginning: int, code: int) -> EngineError:
    """What a process that ended while it started said about it."""
    with log.open("rb") as stream:
        stream.seek(beginning)
        lines = stream.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        if line.startswith(FAILURE_MARK):
            said: Any = json.loads(line.removeprefix(FAILURE_MARK))
            kind = getattr(errors, said["type"], EngineUnavailable)
            if not issubclass(kind, EngineError):
                kind = EngineUnavailable
            return kind(said["message"], next_step=said["next_step"])
    if system.free_disk_bytes(log) < _FULL_BYTES:
        return EngineUnavailable(
            f"The engine cannot be started: the disk that holds {log.parent} is full.",
            next_step="Make room on it, or set FIMBLE_HOME to a folder on another disk.",
        )
    last = next((line for line in reversed(lines) if line.strip()), "no output")
    return EngineUnavailable(
        f"The engine ended with code {code} while it started: {last}",
        next_step=f"Its log is {log}.",
    )


def _rotate(log: Path) -> None:
    """Keeps one older log; called while no engine of ours writes to it."""
    if log.exists() and log.stat().st_size > _LOG_BYTES:
        system.replace_path(log, log.with_suffix(".log.1"))
