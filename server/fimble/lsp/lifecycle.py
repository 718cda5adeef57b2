"""How the server ends: when the editor says so, and when the editor is gone.

Reads messages until ``exit``, the end of standard input, or the death of the process that
the editor named as its own. The engine is not touched: it serves other windows.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from fimble import system

__all__ = ["end_process", "process_gone", "serve_until", "spare_collector"]

logger = logging.getLogger(__name__)

#: Seconds between looks at the editor's process. Its pipes usually tell first.
WATCH_SECONDS = 3.0


async def serve_until(
    ended: asyncio.Event, messages: AsyncIterator[Any], receive: Callable[[Any], None]
) -> None:
    """Hands each message to ``receive`` until ``ended`` is set or there are no more."""
    reading = asyncio.create_task(_read(ended, messages, receive))
    waiting = asyncio.create_task(ended.wait())
    await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if reading.done():
        reading.result()
    else:
        reading.cancel()


async def _read(
    ended: asyncio.Event, messages: AsyncIterator[Any], receive: Callable[[Any], None]
) -> None:
    async for message in messages:
        receive(message)
        if ended.is_set():
            return
    logger.info("the editor closed the connection")


async def process_gone(pid: int) -> None:
    """Returns when process ``pid`` has ended."""
    started_at = system.process_started_at(pid)
    while system.is_alive(pid, started_at or None):
        await asyncio.sleep(WATCH_SECONDS)
    logger.info("the editor's process has ended")


def spare_collector() -> None:
    """Takes what is loaded out of garbage collection for good; call it before serving.

    The protocol's types are some 100,000 objects: looking through them again and again
    would cost a keystroke now and then tens of milliseconds.
    """
    gc.collect()
    gc.freeze()


def end_process(code: int) -> int:
    """``code`` for a normal end; ends the process itself if a thread would hold it up.

    A thread that waits for an engine to start may do so for a minute, and the interpreter
    would wait for it. The engine goes on starting without us.
    """
    ours = {threading.main_thread(), threading.current_thread()}
    if any(not thread.daemon for thread in threading.enumerate() if thread not in ours):
        logging.shutdown()
        os._exit(code)
    return code
