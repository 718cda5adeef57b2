"""JSON-RPC messages over the standard streams, in bytes.

Reading happens in a thread, so that the loop never waits for a pipe; it reads the raw file,
which takes no lock that could keep a dying process from ending. Knows nothing of what the
messages mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

__all__ = ["StdoutWriter", "messages_from", "read_in_thread", "take_standard_streams"]

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 1 << 16
#: A longer message is no message: some program's output has got into the stream.
_MOST_BYTES = 1 << 28


def take_standard_streams() -> tuple[io.FileIO, io.FileIO]:
    """Standard input and output for the protocol alone, as binary files.

    Whatever prints by accident, in Python or in a native library, from now on prints to
    standard error, and whoever reads standard input finds it empty.
    """
    stdin = io.FileIO(os.dup(0), "rb")
    stdout = io.FileIO(os.dup(1), "wb")
    with _nothing(os.O_RDONLY) as handle:
        os.dup2(handle, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        # There is no standard error.
        with _nothing(os.O_WRONLY) as handle:
            os.dup2(handle, 1)
    sys.stdout = sys.stderr
    return stdin, stdout


@contextlib.contextmanager
def _nothing(flags: int) -> Iterator[int]:
    handle = os.open(os.devnull, flags)
    try:
        yield handle
    finally:
        os.close(handle)


class StdoutWriter:
    """Writes messages; ``on_broken`` is called once when nobody reads any more."""

    def __init__(self, stream: io.RawIOBase, on_broken: Callable[[], None]) -> None:
        self._stream = io.BufferedWriter(stream)
        self._on_broken = on_broken
        self._broken = False

    def write(self, data: bytes) -> None:
        if self._broken:
            return
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._broken = True
            logger.info("the editor reads no more: %s", type(error).__name__)
            self._on_broken()

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.close()


def read_in_thread(stream: io.RawIOBase) -> asyncio.StreamReader:
    """A reader fed by a thread of its own, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()

    def feed() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: we are leaving
            while True:
                try:
                    data = stream.read(_CHUNK_BYTES)
                except OSError:
                    data = b""
                if not data:
                    loop.call_soon_threadsafe(reader.feed_eof)
                    return
                loop.call_soon_threadsafe(reader.feed_data, data)

    threading.Thread(target=feed, name="stdin", daemon=True).start()
    return reader


async def messages_from(reader: asyncio.StreamReader) -> AsyncIterator[Any]:
    """Each message's JSON value, or the ValueError that it is no JSON; ends with the stream."""
    while True:
        size = await _content_length(reader)
        if size is None:
            return
        try:
            body = await reader.readexactly(size)
        except asyncio.IncompleteReadError:
            return
        try:
            yield json.loads(body)
        except (ValueError, RecursionError) as error:
            yield ValueError(type(error).__name__)


async def _content_length(reader: asyncio.StreamReader) -> int | None:
    """The size that the next header gives; None at the stream's end or where it is broken."""
    size: int | None = None
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            logger.error("the input is no JSON-RPC stream: a header line without an end")
            return None
        if not line.endswith(b"\n"):
            return None
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            size = int(value)
            if size > _MOST_BYTES:
                logger.error("the input is no JSON-RPC stream: a message of %d bytes", size)
                return None
        elif not line.strip() and size is not None:
            return size
