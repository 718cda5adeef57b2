"""``serve``: what the command line calls to be a language server on the standard streams."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from fimble import __version__, system
from fimble.engine.base import Engine
from fimble.engine.client import EngineEvent
from fimble.engine.connect import engine_at
from fimble.lsp.engine_host import Connect
from fimble.lsp.lifecycle import end_process, spare_collector
from fimble.lsp.logs import start_logging
from fimble.lsp.roles import ModelChoice, Roles
from fimble.lsp.server import FimbleServer
from fimble.lsp.transport import take_standard_streams

__all__ = ["serve"]

logger = logging.getLogger(__name__)


def serve(
    model: str | None,
    *,
    provider: str = "",
    chat_model: str = "",
    chat_provider: str = "",
    connect: Connect | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Serves one editor over standard input and output until it is done; the exit code.

    ``model`` is a package's name or path; None leaves it to the settings. ``provider`` computes
    it, and ``chat_model`` and ``chat_provider`` are for chat and edits, likewise. 0 after
    ``shutdown`` and ``exit``, 1 after any other end, such as the editor's death. ``clock``:
    see ``FimbleServer``.
    """
    stdin, stdout = take_standard_streams()
    system.no_core_dumps()
    start_logging()
    logger.info("fimble %s serves", __version__)

    given = Roles(ModelChoice(model or "", provider), ModelChoice(chat_model, chat_provider))

    async def run() -> int:
        server = FimbleServer(connect or _engine, roles=given, clock=clock)
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


def _engine(choice: ModelChoice, on_event: Callable[[EngineEvent], None]) -> Engine:
    return engine_at(
        choice.elsewhere,
        choice.model,
        on_event,
        provider=choice.provider,
        fall_back=choice.fall_back,
    )
