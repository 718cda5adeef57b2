"""``serve``: what the command line calls to be a language server on the standard streams."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from fimble import __version__
from fimble.engine.base import Engine
from fimble.engine.client import EngineEvent, LocalEngine
from fimble.lsp.engine_host import Connect
from fimble.lsp.lifecycle import end_process, spare_collector
from fimble.lsp.logs import start_logging
from fimble.lsp.server import FimbleServer
from fimble.lsp.transport import take_standard_streams

__all__ = ["serve"]

logger = logging.getLogger(__name__)


def serve(
    model: str | None,
    *,
    connect: Connect | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Serves one editor over standard input and output until it is done; the exit code.

    ``model`` is a package's name or path; None leaves it to the settings. 0 after
    ``shutdown`` and ``exit``, 1 after any other end, such as the editor's death. ``clock``:
    see ``FimbleServer``.
    """
    stdin, stdout = take_standard_streams()
    start_logging()
    logger.info("fimble %s serves", __version__)

    async def run() -> int:
        server = FimbleServer(connect or _local_engine, model=model or "", clock=clock)
        return await server.run(stdin, stdout)

    spare_collector()
    loop = asyncio.new_event_loop()
    try:
        code = loop.run_until_complete(run())
    except KeyboardInterrupt:
        code = 1
    finally:
        _wind_up(loop)
    logger.info("the end, with code %d", code)
    return end_process(code)


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    """Cancels what is left, such as a progress display that the editor never answered."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=2.0))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _local_engine(model: str, on_event: Callable[[EngineEvent], None]) -> Engine:
    return LocalEngine(model=model, on_event=on_event)
