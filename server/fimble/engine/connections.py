"""Connections that survive being given up: a transport whose cancelled requests leave none open.

A pool of connections returns one to its idle ones in several steps. A task that is cancelled in
one of them, which typing does several times a second, leaves a connection that is neither used
nor closed. Here each connection has a pool of its own: it is kept where an exchange came to its
end, and closed whole where it did not.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import httpx

__all__ = ["KEPT", "Connections"]

#: Idle connections that are kept for the next requests.
KEPT = 4


class Connections(httpx.AsyncBaseTransport):
    """``make`` gives a transport for one exchange at a time."""

    def __init__(self, make: Callable[[], httpx.AsyncBaseTransport]) -> None:
        self._make = make
        self._idle: list[httpx.AsyncBaseTransport] = []
        self._used: set[httpx.AsyncBaseTransport] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        lane = self._idle.pop() if self._idle else self._make()
        self._used.add(lane)
        try:
            response = await lane.handle_async_request(request)
        except BaseException:
            self._discard(lane)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_Body(response.stream, lambda whole: self._give_back(lane, whole)),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Also ends what is under way."""
        self._closed = True
        for lane in (*self._idle, *self._used):
            self._discard(lane)
        self._idle.clear()
        await asyncio.gather(*self._closing)

    def _give_back(self, lane: httpx.AsyncBaseTransport, whole: bool) -> None:
        if whole and not self._closed and len(self._idle) < KEPT:
            self._used.discard(lane)
            self._idle.append(lane)
        else:
            self._discard(lane)

    def _discard(self, lane: httpx.AsyncBaseTransport) -> None:
        self._used.discard(lane)
        # In a task of its own: nobody cancels that.
        task = asyncio.create_task(_close(lane))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


async def _close(lane: httpx.AsyncBaseTransport) -> None:
    with contextlib.suppress(httpx.TransportError, OSError):
        await lane.aclose()


class _Body(httpx.AsyncByteStream):
    """A response's body; ``done`` is told once whether the exchange came to its end."""

    def __init__(self, body: httpx.AsyncByteStream, done: Callable[[bool], None]) -> None:
        self._body = body
        self._done: Callable[[bool], None] | None = done
        self._read = False

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        async for piece in self._body:
            yield piece
        self._read = True

    async def aclose(self) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        whole = False
        try:
            await self._body.aclose()
            whole = self._read
        finally:
            done(whole)
