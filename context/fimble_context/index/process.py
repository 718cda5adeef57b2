"""Starts the index's process and speaks with it: two threads, none of which anyone waits for.

Knows frames and the process; what they are about is ``workspace_index``'s affair.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from fimble_context.index.frames import Frame, read_frame, write_frame

__all__ = ["IndexProcess", "Posted"]

# While someone types, a document changes many times a second; the last one counts.
_SETTLE_SECONDS = 0.3
_END_SECONDS = 2.0
# A large document takes the process a second; it shall not be busy with nothing else.
_REST_FACTOR = 9.0
_LONGEST_REST_SECONDS = 20.0
# Never "-m": that would import from the working folder, which may be anyone's.
_COMMAND = (
    "import sys; sys.path[:] = sys.argv[1:]; from fimble_context.index.worker import main; main()"
)


Posted: TypeAlias = tuple[dict[str, Any], str]
"""A frame's header and its text."""


class IndexProcess:
    """The process of one index. ``on_frame`` is called on a thread of its own, ``None`` at the end.

    What is posted under a key replaces what was posted under it and not yet sent.
    """

    def __init__(
        self,
        setup: dict[str, Any],
        folder: Path,
        on_frame: Callable[[Frame | None], None],
        unanswered: Mapping[str, Posted] | None = None,
    ) -> None:
        """Start it; ``folder`` becomes its working folder. Raises OSError if that fails.

        ``unanswered``: what another process before this one has not dealt with.
        """
        self._on_frame = on_frame
        self._posted: dict[str, Posted] = dict(unanswered or {})
        self._sent: dict[str, Posted] = {}
        self._busy: dict[str, float] = {}  # when it was sent
        self._resting: dict[str, float] = {}  # until when
        self._changed = threading.Condition()
        self._closed = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _COMMAND, *(entry for entry in sys.path if entry)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            # No console window of its own, on systems that would open one.
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._threads = [
            threading.Thread(target=self._feed, args=(setup,), daemon=True, name="index-feed"),
            threading.Thread(target=self._listen, daemon=True, name="index-listen"),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def post(self, key: str, header: dict[str, Any], text: str = "") -> None:
        """Send a frame soon; returns at once."""
        with self._changed:
            # Moved to the end: what is sent keeps the order of what happened last.
            self._posted.pop(key, None)
            self._posted[key] = (header, text)
            self._changed.notify()

    def unanswered(self) -> dict[str, Posted]:
        """What was posted and has not been dealt with, the newest under each key."""
        with self._changed:
            return {**self._sent, **self._posted}

    def answered(self, key: str) -> None:
        """The process has dealt with what was posted under a key.

        The next may be sent after a rest in proportion to how long this one took.
        """
        now = time.monotonic()
        with self._changed:
            took = now - self._busy.pop(key, now)
            self._sent.pop(key, None)
            rest = min(took * _REST_FACTOR, _LONGEST_REST_SECONDS)
            if rest > _SETTLE_SECONDS:
                self._resting[key] = now + rest
            self._changed.notify()

    def close(self) -> None:
        """End the process, promptly and whatever it does; what it has stored stays whole."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify()
        with contextlib.suppress(OSError):
            self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_END_SECONDS)
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()

    def _feed(self, setup: dict[str, Any]) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            write_frame(stream, setup)
            while True:
                batch = self._next()
                if batch is None:
                    return
                for header, text in batch:
                    write_frame(stream, header, text.encode("utf-8", "surrogatepass"))
        except (OSError, ValueError):
            return  # it is gone; the listening thread says so

    def _next(self) -> list[tuple[dict[str, Any], str]] | None:
        """What to send next, after a moment in which it may be replaced; None at the end."""
        with self._changed:
            while not self._closed and not self._ready():
                self._changed.wait(self._until_rested())
            settled = time.monotonic() + _SETTLE_SECONDS
            while not self._closed and time.monotonic() < settled:
                self._changed.wait(settled - time.monotonic())
            if self._closed:
                return None
            keys = self._ready()
            now = time.monotonic()
            for key in keys:
                if "path" in self._posted[key][0]:
                    self._busy[key], self._sent[key] = now, self._posted[key]
            return [self._posted.pop(key) for key in keys]

    def _ready(self) -> list[str]:
        now = time.monotonic()
        for key in [key for key, until in self._resting.items() if until <= now]:
            del self._resting[key]
        return [key for key in self._posted if key not in self._busy and key not in self._resting]

    def _until_rested(self) -> float | None:
        """Seconds until the first of what waits may be sent; None where all must be answered."""
        waiting = [until for key, until in self._resting.items() if key in self._posted]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            frame = read_frame(stream)
            if self._closed:
                return
            self._on_frame(frame)
            if frame is None:
                return
