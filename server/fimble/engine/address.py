"""Where the running engine is found: a private file with its port and secret.

Written by the engine process, read by its clients. A file outlives a crash, so a reader
checks that the process it names is alive and is the same one.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fimble import system
from fimble.errors import EngineUnavailable

__all__ = [
    "FAILURE_MARK",
    "EngineAddress",
    "address_path",
    "files_unusable",
    "is_served",
    "launch_lock_path",
    "life_lock_path",
    "read_address",
    "remove_address",
    "work_dir",
    "write_address",
]


#: The line with which a starting engine says why it ends; the launcher reads it in the log.
FAILURE_MARK = "fimble engine cannot start: "


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """``started_at`` is what ``system.process_started_at`` says of the process (ids are reused)."""

    pid: int
    started_at: float
    port: int
    secret: str
    version: str
    protocol: int

    @property
    def url(self) -> str:
        """The base of all requests, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    def __repr__(self) -> str:
        # A secret in a log or a traceback is a secret lost.
        return f"EngineAddress(pid={self.pid}, port={self.port}, version={self.version!r})"


def address_path() -> Path:
    """The runtime file."""
    return system.runtime_dir() / "engine.json"


def files_unusable(error: OSError) -> EngineUnavailable:
    """What to say where the engine's files cannot be read or written."""
    return EngineUnavailable(
        f"The engine cannot use its files in {system.home()}: {error.strerror}.",
        next_step="See to it that the folder can be written to and that its disk is not full, "
        "or set FIMBLE_HOME to another one.",
    )


def launch_lock_path() -> Path:
    """Held by whoever is starting an engine, so that two windows start one."""
    return system.runtime_dir() / "engine.lock"


def life_lock_path() -> Path:
    """Held by the engine as long as it lives: one per user, however it was started."""
    return system.runtime_dir() / "engine.alive.lock"


def work_dir() -> Path:
    """The engine's current directory: private, since runtimes load libraries from there."""
    return system.runtime_dir() / "work"


def write_address(address: EngineAddress) -> None:
    """Publishes the engine (mode 0600, in one step)."""
    system.write_private(address_path(), json.dumps(asdict(address)).encode())


def read_address() -> EngineAddress | None:
    """The published engine, alive or not; None without a readable file of this user's own."""
    try:
        data: Any = json.loads(system.read_private(address_path()))
        return EngineAddress(
            pid=int(data["pid"]),
            started_at=float(data["started_at"]),
            port=int(data["port"]),
            secret=str(data["secret"]),
            version=str(data["version"]),
            protocol=int(data["protocol"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_served(address: EngineAddress) -> bool:
    """Whether the process that the file names lives, is the same one, and has the port.

    After a restart of the machine another program may have its id, and have started as long
    after the system as the engine had.
    """
    alive = system.is_alive(address.pid, address.started_at)
    return alive and system.listens_on(address.pid, address.port)


def remove_address(pid: int) -> None:
    """Takes the file away if it is that of process ``pid``."""
    address = read_address()
    if address is not None and address.pid == pid:
        address_path().unlink(missing_ok=True)
