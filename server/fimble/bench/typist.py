"""What typing feels of work in the background: a typist, and a look at memory meanwhile."""

from __future__ import annotations

import contextlib
import sysconfig
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

from fimble.bench.percentile import percentile
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import Document, Edit

__all__ = ["Memory", "Times", "Typist", "large_source", "percentiles"]

KEYSTROKE_SECONDS = 0.02
SAMPLE_SECONDS = 0.1
OPEN_CHARS = 1_300_000


def large_source() -> str:
    """About 1.3 MB of the standard library's code."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return "".join(file.read_text(encoding="utf-8") for file in files)[:OPEN_CHARS]


class Times:
    """How long something took each time, in milliseconds.

    ``wall`` is by the clock, ``processor`` what this thread had of a processor: where other
    work keeps the machine busy, only that says what the thing itself costs.
    """

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.processor: list[float] = []

    @contextlib.contextmanager
    def once(self) -> Iterator[None]:
        """Measure what is done within the block."""
        wall, processor = time.perf_counter(), time.thread_time()
        yield
        self.processor.append((time.thread_time() - processor) * 1000)
        self.wall.append((time.perf_counter() - wall) * 1000)


class Typist:
    """Edits an open document at the pace of a fast typist, and keeps how long each edit took."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document = Document(large_source(), path=str(path), language="python")
        self.times = Times()
        self._offset = len(self.document.text) // 2

    def type_while(self, index: WorkspaceIndex, seconds: float) -> None:
        """Until the index is idle, or for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with self.times.once():
                self.document.apply(Edit(self._offset, self._offset, "x"))
                index.update(self.path, self.document.text)
            self._offset += 1
            if index.wait(KEYSTROKE_SECONDS):
                return


class Memory:
    """The peak of this process and of the index's, above what this one had before."""

    def __init__(self, index: WorkspaceIndex) -> None:
        self._own = psutil.Process()
        self._index = index
        self._before = self._own.memory_info().rss
        self.own = self.other = 0
        self._processor: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    @property
    def processor_seconds(self) -> float:
        """Of all processes that the index has had."""
        return sum(self._processor.values())

    def stop(self) -> None:
        """The last sample has been taken after this."""
        self._done.set()
        self._thread.join()

    def _sample(self) -> None:
        while True:
            done = self._done.wait(SAMPLE_SECONDS)
            self.own = max(self.own, self._own.memory_info().rss - self._before)
            number = self._index.process_id
            if number is not None:
                try:
                    other = psutil.Process(number)
                    self.other = max(self.other, other.memory_info().rss)
                    self._processor[number] = sum(other.cpu_times()[:2])
                except psutil.Error:
                    pass  # it has just been exchanged for another
            if done:
                return


def percentiles(millis: Sequence[float], share: float = 0.99) -> tuple[float, float]:
    """The median and the 99th (or another) percentile."""
    return round(percentile(millis, 0.5), 2), round(percentile(millis, share), 2)
