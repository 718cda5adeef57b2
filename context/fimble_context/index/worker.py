"""The index's own process: scans, reads and parses, so that nothing else has to wait for it.

Parsing holds Python's GIL for as long as a file takes; in the editor's server that would be
felt at every keystroke. The process is told what to do through its standard input, answers
through its standard output (see ``frames``), and ends when its input does: it never
outlives the one that started it. It runs at low priority.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import filelock
import psutil

from fimble_context.index.build import Builder, Scan
from fimble_context.index.facts import extract
from fimble_context.index.frames import Frame, read_frame, write_frame
from fimble_context.index.store import Store, StoreError, open_store
from fimble_context.workspace.files import Limits
from fimble_context.workspace.ignore import Policy

__all__ = ["main"]

_NICE = 10
_PROGRESS_SECONDS = 0.25
_LOCK_SECONDS = 0.5
_ATTEMPTS = 3


class Worker:
    """One workspace's index, kept up to date as the frames say."""

    def __init__(self, setup: dict[str, Any], output: IO[bytes]) -> None:
        self._output = output
        self._path = Path(setup["store"])
        self._folders = [Path(folder) for folder in setup["folders"]]
        self._globs = setup["globs"]
        self._limits = Limits(**setup["limits"])
        self._skip = setup["skip"]
        self._number = setup["number"]
        self._lock = filelock.FileLock(f"{self._path}.lock")
        self._store: Store | None = None
        self._builder: Builder | None = None
        self._scan: Iterator[Scan] | None = None
        self._scan_wanted = True
        self._begin_at = 0.0
        self._last = Scan()
        self._paused = setup["paused"]
        self._growth_allowed = setup["growth"]
        self._process = psutil.Process()
        self._memory_before = 0
        self._failures = 0
        self._reported = 0.0

    def run(self, frames: queue.Queue[Frame]) -> None:
        """Work until the process ends."""
        self._open()
        while True:
            try:
                frame = frames.get(timeout=self._patience())
            except queue.Empty:
                frame = None
            try:
                if frame is not None:
                    self._handle(frame)
                else:
                    self._step()
            except StoreError as error:
                self._failed(error)

    def _patience(self) -> float | None:
        """How long to wait for a frame before there is something else to do, in seconds."""
        if self._paused or self._builder is None:
            return None
        if self._scan is not None:
            return 0.0
        return max(0.0, self._begin_at - time.monotonic()) if self._scan_wanted else None

    def _handle(self, frame: Frame) -> None:
        header = frame.header
        action = header["do"]
        if action == "open":
            self._say({"at": header["path"]})
            text = frame.payload.decode("utf-8", "surrogatepass")
            skipped = header["path"] in self._skip
            facts = extract(header["path"], "" if skipped else text, header["language"])
            self._say({"facts": header["path"], "data": facts.to_json()})
        elif action == "refresh":
            self._refresh(Path(header["path"]))
        elif action == "scan":
            self._number = header["number"]
            self._scan_wanted, self._begin_at = True, 0.0
            self._stop_scan()
        elif action == "pause":
            self._paused = True
        elif action == "resume":
            self._paused = False

    def _refresh(self, path: Path) -> None:
        known = False
        try:
            if self._builder is not None:
                known = self._builder.refresh(path)
                # A folder that came, or came back under another name, is for a scan.
                self._scan_wanted |= path.is_dir()
        finally:
            self._say({"changed": str(path), "known": known})

    def _step(self) -> None:
        """Begin a scan, or do a piece of the one begun."""
        if self._scan is None:
            self._begin()
            return
        scan = next(self._scan, None)
        if scan is not None:
            self._last = scan
            if time.monotonic() - self._reported > _PROGRESS_SECONDS:
                self._report("scanning")
                self._renew_if_grown()
            return
        self._stop_scan()
        self._failures = 0
        if self._store is not None:
            self._store.checkpoint()
        self._report("idle")

    def _renew_if_grown(self) -> None:
        """Ask for another process, once what this one has read is stored.

        Many parses leave memory in pieces that the allocator cannot give back, so a process
        that has parsed much is exchanged for a new one.
        """
        memory = self._process.memory_info().rss
        self._memory_before = self._memory_before or memory
        if memory - self._memory_before > self._growth_allowed and self._builder is not None:
            self._builder.flush()
            self._say({"renew": True})
            os._exit(0)

    def _stop_scan(self) -> None:
        self._scan = None
        self._lock.release()

    def _begin(self) -> None:
        # One window at a time scans a workspace; the next finds nothing left to read.
        try:
            self._lock.acquire(blocking=False)
        except filelock.Timeout:
            self._begin_at = time.monotonic() + _LOCK_SECONDS
            self._say({"phase": "waiting"})
            return
        assert self._store is not None
        # Ignore files may have changed, so the rules are made anew.
        self._builder = self._new_builder(self._store)
        self._scan, self._scan_wanted = self._builder.scan(), False

    def _new_builder(self, store: Store) -> Builder:
        return Builder(
            store,
            Policy(self._folders, self._globs),
            self._limits,
            skip=self._skip,
            # Should a grammar crash, the one that starts this process anew knows where.
            on_file=lambda path: self._say({"at": path}),
        )

    def _report(self, phase: str) -> None:
        self._reported = time.monotonic()
        scan = self._last
        self._say(
            {
                "phase": phase,
                "number": self._number,
                "files": scan.files,
                "read": scan.read,
                "bytes": scan.bytes,
                "removed": scan.removed,
                "complete": scan.complete,
                "refused": dict(scan.refused),
            }
        )

    def _open(self) -> None:
        try:
            self._store = open_store(self._path)
        except StoreError as error:
            self._failed(error)
            return
        self._builder = self._new_builder(self._store)
        self._scan_wanted, self._begin_at = True, 0.0
        self._say({"phase": "ready", "anew": self._store.is_new})

    def _failed(self, error: StoreError) -> None:
        """Open the store anew, which throws away what is damaged; in the end, do without."""
        with contextlib.suppress(StoreError):
            if self._store is not None:
                self._store.close()
        self._store = self._builder = self._scan = None
        self._lock.release(force=True)
        self._failures += 1
        if self._failures < _ATTEMPTS:
            self._open()
        else:
            self._say({"phase": "unavailable", "reason": str(error)})

    def _say(self, header: dict[str, Any]) -> None:
        write_frame(self._output, header)


def _listen(stream: IO[bytes], frames: queue.Queue[Frame]) -> None:
    while True:
        frame = read_frame(stream)
        if frame is None:
            # Whoever started this process is gone. The store can bear it at any moment.
            os._exit(0)
        frames.put(frame)


def _be_modest() -> None:
    # An interrupt at the terminal is for the one that started this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(psutil.Error, OSError):
        psutil.Process().nice(getattr(psutil, "BELOW_NORMAL_PRIORITY_CLASS", _NICE))


def _report_death(output: IO[bytes]) -> None:
    """Say where an error of ours ended the process: its kind and line, no text of anyone's."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        places = traceback.extract_tb(trace)[-2:]
        where = " < ".join(f"{Path(p.filename).name}:{p.lineno}" for p in reversed(places))
        with contextlib.suppress(OSError):
            write_frame(output, {"died": f"{kind.__name__} at {where}"})

    sys.excepthook = hook


def main() -> None:
    """The process: the first frame is its setup."""
    _be_modest()
    # Nothing that is imported may print among the frames.
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    _report_death(output)
    setup = read_frame(sys.stdin.buffer)
    if setup is None:
        return
    frames: queue.Queue[Frame] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, frames), daemon=True).start()
    try:
        Worker(setup.header, output).run(frames)
    except BrokenPipeError:
        # The other end is gone.
        os._exit(0)
