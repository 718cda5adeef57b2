"""The real server as a process, as an editor starts it, in a FIMBLE_HOME of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fimble.engine import control
from fimble.engine.launcher import find_running
from tests.lsp.wire import Wire
from tests.support.waiting import PATIENCE

__all__ = ["ServerProcess", "ended_engine", "engine_pid", "serve_command", "served", "server_env"]


def serve_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fimble", "serve", *arguments]


def server_env(home: Path) -> dict[str, str]:
    return {**os.environ, "FIMBLE_HOME": str(home)}


@dataclass
class ServerProcess:
    """``stderr`` is complete once ``ended`` has returned."""

    wire: Wire
    process: asyncio.subprocess.Process
    errors: asyncio.Task[bytes]
    output: asyncio.BaseTransport

    def stop_reading(self) -> None:
        """Closes the end of the pipe that the server writes to."""
        self.output.close()

    async def ended(self) -> int:
        """The exit code."""
        return await asyncio.wait_for(self.process.wait(), timeout=PATIENCE)

    async def stderr(self) -> str:
        return (await self.errors).decode()


@contextlib.asynccontextmanager
async def served(home: Path, command: Sequence[str] = ()) -> AsyncIterator[ServerProcess]:
    """A server process and a client on it; the process is ended if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(command or serve_command()),
        env=server_env(home),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert process.stdin and process.stdout and process.stderr
    wire = Wire(process.stdin.write)
    reading = asyncio.create_task(wire.read(process.stdout))
    errors = asyncio.create_task(process.stderr.read())
    try:
        yield ServerProcess(wire, process, errors, _output_of(process))
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        reading.cancel()
        errors.cancel()


def _output_of(process: asyncio.subprocess.Process) -> asyncio.BaseTransport:
    assert process.stdout is not None
    transport: asyncio.BaseTransport = process.stdout._transport  # type: ignore[attr-defined]
    return transport


@contextlib.contextmanager
def _in(home: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIMBLE_HOME", str(home))
        yield


def engine_pid(home: Path) -> int | None:
    """The engine of ``home``, if it runs."""
    with _in(home):
        address = find_running()
    return address.pid if address else None


@contextlib.contextmanager
def ended_engine(home: Path) -> Iterator[Path]:
    """Ends the engine of ``home`` after the block."""
    try:
        yield home
    finally:
        with _in(home):
            control.stop()
