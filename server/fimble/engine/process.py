"""The engine process: private folder, one per user, loopback, idle ends.

Puts host, scheduler and service together and publishes where they are. Everything that
happens to the process as a whole is here, and nothing about models or requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import socket
import sys
import time

import uvicorn

import fimble
from fimble import system
from fimble.engine.address import (
    FAILURE_MARK,
    EngineAddress,
    files_unusable,
    is_served,
    life_lock_path,
    read_address,
    remove_address,
    work_dir,
    write_address,
)
from fimble.engine.crash import note_crashes
from fimble.engine.guard import Guard
from fimble.engine.host import ModelHost
from fimble.engine.memory_pressure import watch_memory
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions, options_from_arguments
from fimble.engine.plugins import clean_environment
from fimble.engine.protocol import PROTOCOL_VERSION
from fimble.engine.runtime import find_runtime
from fimble.engine.scheduler import Scheduler
from fimble.engine.service import Service
from fimble.engine.strangers import BACKLOG, EngineConnection
from fimble.errors import EngineUnavailable, FimbleError

__all__ = ["main"]

_log = logging.getLogger(__name__)

#: How often it is seen to that the engine can be found.
_LOOK_SECONDS = 2.0


def main(arguments: list[str]) -> int:
    """Runs until stopped or idle. Returns the exit code."""
    options = options_from_arguments(arguments)
    note_crashes()
    logging.basicConfig(
        level=logging.INFO,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # httpx and the hub client log URLs at this level, which is more than ours says.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    # Whoever reaches the port could fill the disk with warnings of malformed requests.
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    try:
        # Before anything that could load a library from the current directory.
        os.chdir(system.make_private_dir(work_dir()))
        for sentence in clean_environment(started_in=options.started_in):
            _log.warning("%s", sentence)
        running = read_address()
        if running is not None and is_served(running):
            raise TimeoutError
        # An engine that is ending has taken its address away and lets go in a moment.
        with system.exclusive_lock(life_lock_path(), timeout=15.0):
            runtime = find_runtime()
            _log.info("fimble %s with %s %s", fimble.__version__, runtime.name, runtime.version)
            asyncio.run(_serve(options))
    except TimeoutError:
        return _report(
            EngineUnavailable(
                "Another engine of this user is running.",
                next_step="Run `fimble engine status`.",
            )
        )
    except FimbleError as error:
        return _report(error)
    except OSError as error:
        return _report(files_unusable(error))
    return 0


def _report(error: FimbleError) -> int:
    """The reason in the form that the launcher looks for in the log."""
    said = {
        "type": type(error).__name__,
        "message": error.message,
        "next_step": error.next_step,
    }
    with contextlib.suppress(OSError):  # the log's disk may be what is full
        sys.stderr.write(f"{FAILURE_MARK}{json.dumps(said)}\n")
    return error.exit_code


async def _serve(options: EngineOptions) -> None:
    metrics = Metrics()
    host = ModelHost(options, metrics)
    scheduler = Scheduler(host, metrics)
    secret = secrets.token_urlsafe(32)
    guard = Guard(Service(host, scheduler, metrics).app, secret=secret)
    # With its protocol named, or asyncio leaves Nagle's algorithm on: 40 ms a request.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    for option in system.port_options():
        listener.setsockopt(*option)
    listener.bind(("127.0.0.1", 0))
    guard.port = listener.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(
            guard,
            http=EngineConnection,
            backlog=BACKLOG,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=60,
            # Streams that nobody ends must not keep a stopped engine alive.
            timeout_graceful_shutdown=2,
        )
    )
    _survive_signals()
    pid = os.getpid()
    idle = asyncio.create_task(_watch_idle(options, scheduler, server))
    memory = asyncio.create_task(watch_memory(host, scheduler))
    publish = asyncio.create_task(_publish(server, guard.port, secret, pid))
    try:
        await server.serve(sockets=[listener])
        if publish.done():
            publish.result()
    finally:
        publish.cancel()
        remove_address(pid)
        idle.cancel()
        memory.cancel()
        await asyncio.to_thread(scheduler.close)
        listener.close()
        _log.info("ended")


def _survive_signals() -> None:
    """uvicorn ends its service at a signal, then sends it again to the handlers that were
    there before. Ours do nothing, so that what follows the service is done too.
    """
    for name in ("SIGTERM", "SIGINT", "SIGBREAK"):
        number = getattr(signal, name, None)
        if number is not None:
            signal.signal(number, lambda *_: None)


async def _publish(server: uvicorn.Server, port: int, secret: str, pid: int) -> None:
    """Writes down where the engine is, and again when that was lost: nobody could find it, and
    nobody could start another one beside it.
    """
    while not server.started:
        await asyncio.sleep(0.01)
    address = EngineAddress(
        pid=pid,
        started_at=system.process_started_at(pid),
        port=port,
        secret=secret,
        version=fimble.__version__,
        protocol=PROTOCOL_VERSION,
    )
    try:
        write_address(address)
    except (OSError, FimbleError):
        server.should_exit = True
        raise
    _log.info("listening on 127.0.0.1:%d", port)
    while not server.should_exit:
        await asyncio.sleep(_LOOK_SECONDS)
        if _is_lost(address) and not server.should_exit:
            with contextlib.suppress(OSError, FimbleError):
                write_address(address)
                _log.warning("the runtime file was lost or wrong and is written again")


def _is_lost(own: EngineAddress) -> bool:
    """Whether the runtime file leads to nobody, or to us by another port or secret."""
    found = read_address()
    if found is None:
        return True
    if found.pid == own.pid:
        return (found.port, found.secret) != (own.port, own.secret)
    return not is_served(found)


async def _watch_idle(options: EngineOptions, scheduler: Scheduler, server: uvicorn.Server) -> None:
    unload_after = options.idle_unload_minutes * 60
    exit_after = options.idle_exit_minutes * 60
    limits = [each for each in (unload_after, exit_after) if each > 0]
    if not limits:
        return
    unloaded_at = 0.0
    while not server.should_exit:
        await asyncio.sleep(min(5.0, min(limits) / 4))
        idle = scheduler.idle_seconds
        begun = time.monotonic() - idle
        if 0 < exit_after <= idle:
            _log.info("idle for %.0f s: ending", idle)
            # Nobody may find it any more while it ends.
            remove_address(os.getpid())
            server.should_exit = True
        elif 0 < unload_after <= idle and unloaded_at < begun:
            unloaded_at = time.monotonic()
            scheduler.unload_when_idle()
