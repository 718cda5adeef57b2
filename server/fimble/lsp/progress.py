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
from typing import Any, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcRequestCancelled
from pygls.progress import Progress

from fimble.lsp.abilities import EditorAbilities

__all__ = ["COMMAND_TOKEN", "Display", "LoadProgress"]

logger = logging.getLogger(__name__)

_TITLE = "fimble"

#: The token that came with the ``workspace/executeCommand`` being handled, beside its arguments.
COMMAND_TOKEN: ContextVar[str | int | None] = ContextVar("COMMAND_TOKEN", default=None)

_T = TypeVar("_T")


async def _new_token(progress: Progress) -> str | None:
    """A token that the editor agreed to show; None if it refused."""
    token = str(uuid.uuid4())
    try:
        await progress.create_async(token)
    except JsonRpcException:
        logger.warning("the editor refused a progress display")
        return None
    return token


class Display:
    """What the editor shows of one request's work: under ``token``, or, with ``asks``, under one
    that it is asked to show. Without either nothing is shown.

    The work does not wait for the editor to agree: Helix answers nothing while it waits for us.
    """

    def __init__(
        self, progress: Progress, token: str | int | None, title: str, *, asks: bool
    ) -> None:
        self._progress = progress
        self._token = token
        self._title = title
        self._asks = asks and token is None
        self._asking: asyncio.Task[None] | None = None
        self._work: asyncio.Future[Any] | None = None
        self._begun = self._stopped = False

    def report(self, message: str) -> None:
        """How far the work is, in words."""
        if self._begun and self._token is not None:
            self._progress.report(self._token, types.WorkDoneProgressReport(message=message))

    async def during(self, doing: Coroutine[None, None, _T], cancelled: str) -> _T:
        """What ``doing`` gives; shown while it works.

        Ends with the caller's task. Raises JsonRpcRequestCancelled, which says ``cancelled``,
        when the user cancels the display.
        """
        self._work = work = asyncio.ensure_future(doing)
        if self._token is not None:
            self._begin(self._token)
        elif self._asks:
            self._asking = asyncio.create_task(self._ask())
        try:
            return await work
        except asyncio.CancelledError:
            if self._stopped:
                raise JsonRpcRequestCancelled(cancelled) from None
            raise
        finally:
            work.cancel()
            if self._begun and self._token is not None:
                self._begun = False
                _finish(self._progress, self._token)

    async def _ask(self) -> None:
        token = await _new_token(self._progress)
        if token is None:
            return
        if self._work is None or self._work.done():
            self._progress.tokens.pop(token, None)
            return
        self._begin(token)

    def _begin(self, token: str | int) -> None:
        self._token, self._begun = token, True
        begin = types.WorkDoneProgressBegin(self._title, message="reading", cancellable=True)
        self._progress.begin(token, begin)
        self._progress.tokens[token].add_done_callback(self._stop)

    def _stop(self, _: object) -> None:
        self._stopped = True
        if self._work is not None:
            self._work.cancel()


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
        token = await _new_token(self._progress)
        if token is None:
            return
        stage = await stages.get()
        self._progress.begin(token, types.WorkDoneProgressBegin(_TITLE, message=stage or ""))
        while stage is not None:
            stage = await stages.get()
            if stage is not None:
                self._progress.report(token, types.WorkDoneProgressReport(message=stage))
        _finish(self._progress, token)
