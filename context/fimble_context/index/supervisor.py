"""Keeps the index's process alive: starts it, exchanges one that has grown, replaces one that died.

Knows what must be known for that, the file that the process is at and how often it ended. What
the process finds out is passed on unread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fimble_context.index.frames import Frame
from fimble_context.index.process import IndexProcess, Posted

__all__ = ["Supervisor"]

log = logging.getLogger(__name__)

#: Resident memory by which the process may grow in a scan before another takes its place.
GROWTH_BYTES = 80_000_000
_MOST_RESTARTS = 5


class Supervisor:
    """One process at a time, in ``folder``, from ``start`` until ``close``.

    ``setup`` is asked for what a new process must know. ``on_frame`` gets what it says, on a
    thread of its own; ``on_failure`` why there is none and will be none.
    """

    def __init__(
        self,
        folder: Path,
        setup: Callable[[], dict[str, Any]],
        on_frame: Callable[[Frame], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._setup = setup
        self._on_frame = on_frame
        self._on_failure = on_failure
        self._lock = threading.Lock()
        self._process: IndexProcess | None = None
        self._closed = False
        self._at = ""
        self._skipped: list[str] = []
        self._restarts = 0
        self._renewing = False

    @property
    def process_id(self) -> int | None:
        """The process's number, while there is one."""
        with self._lock:
            return self._process.pid if self._process is not None else None

    def start(self, unanswered: Mapping[str, Posted] | None = None) -> bool:
        """Start a process; whether there is one now. ``unanswered``: see ``IndexProcess``."""
        setup = {**self._setup(), "skip": self._skipped, "growth": GROWTH_BYTES}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            process = IndexProcess(setup, self._folder, self._take, unanswered)
        except OSError as error:
            self._on_failure(str(error.strerror))
            return False
        with self._lock:
            closed = self._closed
            self._process = None if closed else process
        if closed:
            process.close()
        return not closed

    def close(self) -> None:
        """End the process, promptly; no other takes its place."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            process.close()

    def post(self, key: str, header: dict[str, Any], text: str = "") -> None:
        """Send a frame soon, if there is a process; returns at once."""
        with self._lock:
            process = self._process
        if process is not None:
            process.post(key, header, text)

    def waiting(self) -> set[str]:
        """The keys of what was posted and has not been dealt with."""
        with self._lock:
            process = self._process
        return set(process.unanswered()) if process is not None else set()

    def answered(self, key: str) -> None:
        """What was posted under a key has been dealt with."""
        with self._lock:
            process = self._process
        if process is not None:
            process.answered(key)

    def _take(self, frame: Frame | None) -> None:
        if frame is None:
            self._restart()
        elif "at" in frame.header:
            self._at = frame.header["at"]
        elif "renew" in frame.header:
            self._renewing = True
        elif "died" in frame.header:
            log.warning("The index's process has an error: %s", frame.header["died"])
        else:
            self._on_frame(frame)

    def _restart(self) -> None:
        """The process ended: to be renewed, or because a grammar crashed on the file it was at."""
        with self._lock:
            process, self._process = self._process, None
            crashed, self._renewing = not self._renewing, False
            if crashed and self._at:
                self._skipped.append(self._at)
            self._at = ""
            self._restarts += crashed
            hopeless = self._restarts > _MOST_RESTARTS
        unanswered = process.unanswered() if process is not None else {}
        if process is not None:
            process.close()
        if hopeless:
            log.warning("Indexing stopped: its process keeps ending")
            self._on_failure("the index's process keeps ending")
        elif self.start(unanswered) and crashed:
            log.info("The index's process ended and was started again")
