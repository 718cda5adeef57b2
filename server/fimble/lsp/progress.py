"""Work-done progress: while the engine starts and the model loads, and of a request's work.

A start has a token of its own, a request the one that the editor sent or allowed. Nothing is
sent to an editor that does not support it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled
from pygls.progress import Progress

from fimble.lsp.abilities import EditorAbilities

__all__ = ["COMMAND_TOKEN", "LoadProgress", "new_token", "with_progress"]

logger = logging.getLogger(__name__)

_TITLE = "fimble"

#: The token that came with the ``workspace/executeCommand`` being handled, beside its arguments.
COMMAND_TOKEN: ContextVar[str | int | None] = ContextVar("COMMAND_TOKEN", default=None)

_T = TypeVar("_T")


async def new_token(progress: Progress) -> str | None:
    """A token that the editor agreed to show; None if it refused."""
    token = str(uuid.uuid4())
    try:
        await progress.create_async(token)
    except JsonRpcException:
        logger.warning("the editor refused a progress display")
        return None
    return token


async def with_progress(
    progress: Progress,
    token: str | int | None,
    title: str,
    doing: Coroutine[None, None, _T],
    cancelled: str,
) -> _T:
    """What ``doing`` gives, shown under ``token`` while it works; without a token just done.

    Ends with the caller's task. Raises JsonRpcRequestCancelled, which says ``cancelled``, when
    the user cancels the display.
    """
    work = asyncio.ensure_future(doing)
    stopped = False

    def stop(_: object) -> None:
        nonlocal stopped
        stopped = True
        work.cancel()

    if token is not None:
        begin = types.WorkDoneProgressBegin(title, message="reading", cancellable=True)
        progress.begin(token, begin)
        progress.tokens[token].add_done_callback(stop)
    try:
        return await work
    except asyncio.CancelledError:
        if stopped:
            raise JsonRpcRequestCancelled(cancelled) from None
        raise
    finally:
        work.cancel()
        if token is not None:
            _finish(progress, token)


def _finish(progress: Progress, token: str | int) -> None:
    progress.end(token, types.WorkDoneProgressEnd())
    # pygls keeps tokens for ever; this one is never used again.
    progress.tokens.pop(token, None)


class LoadProgress:
    """A progress display that begins with the first ``report`` and ends with ``end``."""

    def __init__(self, progress: Progress, abilities: EditorAbilities) -> None:
        self._progress = progress
        self._abilities = abilities
        self._tasks: set[asyncio.Task[None]] = set()
        self._stages: asyncio.Queue[str | None] | None = None

    def report(self, stage: str) -> None:
        """What is being done now, in words."""
        if not self._abilities.progress:
            return
        if self._stages is None:
            self._stages = asyncio.Queue()
            task = asyncio.create_task(self._display(self._stages))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        self._stages.put_nowait(stage)

    def end(self) -> None:
        """The work is done, or has failed."""
        if self._stages is not None:
            self._stages.put_nowait(None)
            self._stages = None

    async def _display(self, stages: asyncio.Queue[str | None]) -> None:
        token = await new_token(self._progress)
        if token is None:
            return
        stage = await stages.get()
        self._progress.begin(token, types.WorkDoneProgressBegin(_TITLE, message=stage or ""))
        while stage is not None:
            stage = await stages.get()
            if stage is not None:
                self._progress.report(token, types.WorkDoneProgressReport(message=stage))
        _finish(self._progress, token)
