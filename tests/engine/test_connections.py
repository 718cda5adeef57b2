"""What a cancelled request leaves open: nothing, on either end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import httpx
import psutil
import pytest

from fimble.engine import control
from fimble.engine.address import read_address
from fimble.engine.client import LocalEngine
from fimble.engine.connections import KEPT, Connections
from fimble.engine.protocol import CompletionRequest
from tests.support.waiting import eventually

SHORT = CompletionRequest("def", max_tokens=3)


@pytest.fixture
async def engine(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalEngine]:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    engine = LocalEngine(model=str(tiny))
    await engine.load()
    yield engine
    await engine.aclose()
    await asyncio.to_thread(control.stop)


def connections(process: psutil.Process) -> list[tuple[int, int]]:
    """The ports, own and other, of the process's connections with the engine."""
    address = read_address()
    assert address is not None
    return [
        (each.laddr.port, each.raddr.port)
        for each in process.net_connections("tcp")
        if each.raddr and address.port in (each.laddr.port, each.raddr.port)
    ]


async def few_connections_of(process: psutil.Process) -> None:
    await eventually(lambda: len(connections(process)) <= KEPT)


async def text_of(engine: LocalEngine, request: CompletionRequest) -> str:
    return "".join([chunk.text async for chunk in engine.complete(request)])


async def turns(count: int) -> None:
    """So many turns of the event loop, in the midst of which somebody may be cancelled."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_cancelled_streams_leave_no_connection(engine: LocalEngine) -> None:
    address = read_address()
    assert address is not None
    random = Random(1)
    for number in range(300):
        request = CompletionRequest(f"x = {number}", max_tokens=2, document="file:///a.py")
        asking = asyncio.create_task(text_of(engine, request))
        if number % 2:
            await turns(random.randrange(60))  # before anything was said
        else:
            await asyncio.sleep(random.random() * 0.008)  # in the answer, or at its end
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await text_of(engine, SHORT)
    await few_connections_of(psutil.Process())
    await few_connections_of(psutil.Process(address.pid))


async def test_cancelled_counts_leave_no_connection(engine: LocalEngine) -> None:
    random = Random(2)
    for number in range(200):
        counting = asyncio.create_task(engine.count_tokens([f"x = {number}"]))
        await turns(random.randrange(60))
        counting.cancel()
        await asyncio.gather(counting, return_exceptions=True)
    assert await engine.count_tokens(["def"]) == [1]
    await few_connections_of(psutil.Process())


async def test_an_exchange_that_ended_is_followed_by_others_and_one_that_broke_is_not() -> None:
    made: list[httpx.AsyncBaseTransport] = []

    def make() -> httpx.AsyncBaseTransport:
        made.append(httpx.MockTransport(lambda request: httpx.Response(200, stream=Parts())))
        return made[-1]

    async with httpx.AsyncClient(transport=Connections(make), base_url="http://engine") as http:
        for _ in range(3):
            assert (await http.get("/")).content == b"onetwo"
        assert len(made) == 1
        async with http.stream("GET", "/") as response:
            assert await anext(response.aiter_bytes()) == b"one"
        assert (await http.get("/")).content == b"onetwo"
        assert len(made) == 2


class Parts(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"


async def test_a_closed_engine_has_no_connection_though_one_was_in_use(
    engine: LocalEngine,
) -> None:
    answer = engine.complete(CompletionRequest("def", max_tokens=200))
    await anext(answer)
    assert connections(psutil.Process())
    await engine.aclose()
    await eventually(lambda: not connections(psutil.Process()))
    await answer.aclose()
