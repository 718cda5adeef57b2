"""A stand-in for a company's HTTP proxy, on this event loop: all names lead to one port here.

It makes tunnels (CONNECT) and passes plain requests on, one after another on each connection,
as real ones do. It keeps count of what it was asked and of the connections that are open.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from types import TracebackType

from tests.support.waiting import eventually

__all__ = ["StandInProxy"]


class StandInProxy:
    """``target`` is the port of loopback to which every name leads."""

    def __init__(self, target: int) -> None:
        self._target = target
        #: The first line of all requests it understood.
        self.asked: list[str] = []
        #: Connections of clients that are open now.
        self.open: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> StandInProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for writer in list(self.open):
            writer.close()
        # Each hears of that, and ends by itself.
        await eventually(lambda: not self.open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open.add(writer)
        try:
            # A broken connection is the client's right.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._between(reader, writer)
        finally:
            writer.close()
            self.open.discard(writer)

    async def _between(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        there, to_there = await asyncio.open_connection("127.0.0.1", self._target)
        back = asyncio.create_task(_pour(there, writer))
        try:
            if head.startswith(b"CONNECT "):
                self._note(head)
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _pour(reader, to_there)
                return
            while True:
                self._note(head)
                await _pass_on(head, reader, to_there)
                head = await reader.readuntil(b"\r\n\r\n")
        finally:
            back.cancel()
            to_there.close()

    def _note(self, head: bytes) -> None:
        self.asked.append(head.partition(b"\r\n")[0].decode("ascii"))


async def _pass_on(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request, with the path alone where the proxy was told the whole address."""
    writer.write(re.sub(rb"\A(\w+) http://[^/ ]*", rb"\1 ", head))
    length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
    if length is not None:
        writer.write(await reader.readexactly(int(length[1])))
    await writer.drain()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """All that comes, until it ends; then the other end hears of that."""
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()
