"""Start, look at and stop the engine, for the command line. Synchronous.

Asks the engine itself; knows nothing of how it works inside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from fimble import system
from fimble.engine.address import EngineAddress, is_served, read_address, remove_address
from fimble.engine.launcher import find_running, loopback_client, start_engine
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import PROTOCOL_VERSION
from fimble.errors import EngineUnavailable
from fimble.progress import Progress, ignore_progress

__all__ = ["EngineStatus", "start", "status", "stop"]


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """A running engine. ``models`` and ``slots`` are as in ``to_json``; ``protocol`` is the
    version of it that the engine speaks.
    """

    pid: int
    port: int
    version: str
    state: str
    uptime_s: float
    models: list[dict[str, Any]] = field(default_factory=list)
    slots: list[dict[str, Any]] = field(default_factory=list)
    rss_bytes: int = 0
    freed: dict[str, int] = field(default_factory=dict)
    protocol: int = PROTOCOL_VERSION

    def to_json(self) -> dict[str, Any]:
        """``{"running", "pid", "port", "version", "state", "uptime_s", "rss_bytes",
        "models": [{"name", "provider", "window", "fim", "continuation", "state", …}],
        "slots": [{"model", "tokens", "busy"}],
        "freed": {"slots", "models"}}``; ``freed`` is what was given back, since the machine ran
        short of memory.
        """
        return {
            "running": True,
            "pid": self.pid,
            "port": self.port,
            "version": self.version,
            "state": self.state,
            "uptime_s": self.uptime_s,
            "rss_bytes": self.rss_bytes,
            "models": self.models,
            "slots": self.slots,
            "freed": self.freed,
        }


def start(options: EngineOptions, progress: Progress = ignore_progress) -> EngineStatus:
    """The status of the running engine, started first where there is none."""
    address = start_engine(options, progress)
    return _status_of(address)


def status() -> EngineStatus | None:
    """The running engine, or None."""
    address = find_running()
    return None if address is None else _status_of(address)


def stop() -> bool:
    """Ends the running engine; False if there was none."""
    address = read_address()
    if address is None or not is_served(address):
        return False
    system.stop_process(address.pid)
    # Where a process cannot clean up behind itself (Windows terminates it at once).
    remove_address(address.pid)
    return True


def _status_of(address: EngineAddress) -> EngineStatus:
    try:
        with loopback_client(30.0) as client:
            response = client.get(
                f"{address.url}/health", headers={"Authorization": f"Bearer {address.secret}"}
            )
        data: dict[str, Any] = response.json()
    except httpx.TimeoutException:
        # Opening a model stalls the whole process; that is a state too.
        return EngineStatus(
            address.pid, address.port, address.version, "busy", 0.0, protocol=address.protocol
        )
    except (httpx.HTTPError, ValueError) as error:
        raise EngineUnavailable(
            f"The engine (process {address.pid}) does not answer: {error}.",
            next_step="Run `fimble engine stop`, then `fimble engine start`.",
        ) from error
    return EngineStatus(
        pid=address.pid,
        port=address.port,
        version=address.version,
        state=data["state"],
        uptime_s=data["uptime_s"],
        models=data["models"],
        slots=data["slots"],
        rss_bytes=data["rss_bytes"],
        freed=data.get("freed", {}),
        protocol=address.protocol,
    )
