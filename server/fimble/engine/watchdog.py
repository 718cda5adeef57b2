"""Notices that the engine hangs: it lives, but neither answers nor works. Then it is ended.

While a model is opened or a long prompt is computed the engine may hold its interpreter for
minutes, in which nothing answers. So silence alone proves nothing: only a process that was
stopped, or that in all that time used no processor either, counts as hung. Ending it is all;
whoever waits for its answer sees the connection break, as after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from time import monotonic

import httpx
import psutil

from fimble import system
from fimble.engine.address import EngineAddress

__all__ = ["Watchdog"]

_log = logging.getLogger(__name__)

#: How long a process that was stopped, and one that does nothing, may be silent.
STOPPED_SECONDS = 10.0
SILENT_SECONDS = 60.0
#: Less of one processor than this is doing nothing: threads that wait wake up now and then.
_NO_WORK = 0.02
#: How often it is looked at, and how long a question may take to be answered.
_INTERVAL_SECONDS = 2.0
#: Requests that come so soon one after another wait for the same engine: whoever types on
#: cancels each of them before it has waited long.
_GAP_SECONDS = 5.0
#: A look that takes so much longer than it should tells of a machine that slept, the engine too.
_SLEPT_SECONDS = 10.0


class Watchdog:
    """Watches one engine process while somebody waits for it, on one event loop."""

    def __init__(self, address: EngineAddress, http: httpx.AsyncClient) -> None:
        self._address = address
        self._http = http
        self._waiting = 0
        self._left_at = 0.0
        self._heard_at = monotonic()
        self._worked = 0.0
        self._task: asyncio.Task[None] | None = None
        #: Whether it was ended for hanging.
        self.bit = False

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While the block runs, the engine owes somebody an answer."""
        if not self._waiting and monotonic() - self._left_at > _GAP_SECONDS:
            self.heard()
        self._waiting += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._waiting -= 1
            self._left_at = monotonic()

    def heard(self) -> None:
        """Something came from the engine."""
        self._heard_at = monotonic()

    def close(self) -> None:
        """Ends watching."""
        if self._task is not None:
            self._task.cancel()

    async def _watch(self) -> None:
        self._note_work()
        while self._waiting or monotonic() - self._left_at < _GAP_SECONDS:
            begun = monotonic()
            await asyncio.sleep(_INTERVAL_SECONDS)
            heard = monotonic() - self._heard_at < _INTERVAL_SECONDS or await self._answers()
            if monotonic() - begun > 2 * _INTERVAL_SECONDS + _SLEPT_SECONDS:
                self.heard()
                self._note_work()
            elif heard:
                self._note_work()
            elif self._hangs(monotonic() - self._heard_at):
                self.bit = True
                _log.warning("the engine (process %d) hangs: ending it", self._address.pid)
                await asyncio.to_thread(system.stop_process, self._address.pid, patience=0.5)
                return

    async def _answers(self) -> bool:
        try:
            await self._http.get("/health", timeout=_INTERVAL_SECONDS)
        except httpx.TimeoutException:
            return False
        except httpx.TransportError:
            pass  # it is gone, which those who wait are told by their own connections
        self.heard()
        return True

    def _hangs(self, silent: float) -> bool:
        try:
            process = psutil.Process(self._address.pid)
            state, worked = process.status(), _processor_seconds(process)
        except psutil.Error:
            return False
        if state == psutil.STATUS_STOPPED:
            return silent >= STOPPED_SECONDS
        # Whoever waits for a disk, where a model is read from, uses no processor either.
        idle = state != psutil.STATUS_DISK_SLEEP and worked - self._worked < _NO_WORK * silent
        return idle and silent >= SILENT_SECONDS

    def _note_work(self) -> None:
        with contextlib.suppress(psutil.Error):
            self._worked = _processor_seconds(psutil.Process(self._address.pid))


def _processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
