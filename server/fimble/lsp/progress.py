"""Work-done progress while the engine starts and the model loads.

One token for each start; nothing is sent to an editor that does not support it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.progress import Progress

__all__ = ["LoadProgress"]

logger = logging.getLogger(__name__)

_TITLE = "fimble"


class LoadProgress:
    """A progress display that begins with the first ``report`` and ends with ``end``."""

    def __init__(self, progress: Progress) -> None:
        self.supported = False  # until the editor says that it is
        self._progress = progress
        self._tasks: set[asyncio.Task[None]] = set()
        self._stages: asyncio.Queue[str | None] | None = None

    def report(self, stage: str) -> None:
        """What is being done now, in words."""
        if not self.supported:
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
        token = str(uuid.uuid4())
        try:
            await self._progress.create_async(token)
        except JsonRpcException:
            logger.warning("the editor refused a progress display")
            return
        stage = await stages.get()
        self._progress.begin(token, types.WorkDoneProgressBegin(_TITLE, message=stage or ""))
        while stage is not None:
            stage = await stages.get()
            if stage is not None:
                self._progress.report(token, types.WorkDoneProgressReport(message=stage))
        self._progress.end(token, types.WorkDoneProgressEnd())
        # pygls keeps tokens for ever; this one is never used again.
        self._progress.tokens.pop(token, None)
