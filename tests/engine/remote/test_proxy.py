"""A server behind a proxy: how it is asked, what is left open of requests that were cancelled,
and which proxy is taken.
"""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from fimble.engine.connections import KEPT
from fimble.engine.protocol import CompletionRequest, Text
from fimble.engine.remote import client as client_module
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.proxy import proxy_for
from fimble.errors import EngineUnavailable
from tests.support.openai_server import StandInServer
from tests.support.stand_in_proxy import StandInProxy
from tests.support.tls_server import AUTHORITY
from tests.support.waiting import eventually

TYPED = CompletionRequest((Text("def add(a, b):\n    return"),))
#: The name that a certificate of the tests is for. Nobody looks it up: the proxy has to.
NAME = "elsewhere.example"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "pause_before", lambda attempt, headers: 0.0)
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FIMBLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def text_of(engine: RemoteEngine) -> str:
    return "".join([chunk.text async for chunk in engine.complete(TYPED)])


@pytest.mark.parametrize(
    ("scheme", "certificate", "line"),
    [
        ("http", "", f"POST http://{NAME}/v1/completions HTTP/1.1"),
        ("https", "elsewhere", f"CONNECT {NAME}:443 HTTP/1.1"),
    ],
)
async def test_cancelled_requests_leave_no_connection_to_the_proxy(
    scheme: str, certificate: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = Random(1)
    with StandInServer(certificate=certificate) as server:
        async with StandInProxy(server.port) as proxy:
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            engine = RemoteEngine(Endpoint.at(f"{scheme}://{NAME}"))
            assert await text_of(engine) == "a + b"
            assert line in proxy.asked
            # In their answers, of which each has begun.
            server.stall = True
            for _ in range(50):
                answer = engine.complete(TYPED)
                assert (await anext(answer)).text
                await answer.aclose()
            server.stall = False
            # Wherever they are: in the connection, in the tunnel, in TLS, in the answer.
            for number in range(150):
                asking = asyncio.create_task(text_of(engine))
                if number % 2:
                    for _ in range(random.randrange(60)):
                        await asyncio.sleep(0)
                else:
                    await asyncio.sleep(random.random() * 0.01)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            assert await text_of(engine) == "a + b"
            await eventually(lambda: len(proxy.open) <= KEPT)
            await engine.aclose()
            await eventually(lambda: not proxy.open)


@pytest.mark.parametrize(
    ("url", "variables", "expected"),
    [
        ("https://box.example", {}, None),
        ("https://box.example", {"HTTPS_PROXY": "http://one:1"}, "http://one:1"),
        ("http://box.example", {"HTTPS_PROXY": "http://one:1"}, None),
        (
            "http://box.example",
            {"HTTP_PROXY": "two:2", "ALL_PROXY": "http://one:1"},
            "http://two:2",
        ),
        ("https://box.example", {"ALL_PROXY": "https://one:1"}, "https://one:1"),
        ("https://box.example:8000", {"ALL_PROXY": "http://one:1", "NO_PROXY": ".example"}, None),
        ("https://box.example", {"ALL_PROXY": "http://one:1", "NO_PROXY": "*"}, None),
        ("https://127.0.0.1:8000", {"ALL_PROXY": "http://one:1"}, None),
        ("http://localhost:8000", {"ALL_PROXY": "http://one:1"}, None),
    ],
)
def test_the_proxy_is_the_environments(
    url: str, variables: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the system's own settings may say counts where the environment says nothing.
    monkeypatch.setenv("FTP_PROXY", "http://of.no.use")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    proxy = proxy_for(Endpoint.at(url))
    assert (proxy and str(proxy.url)) == expected


@pytest.mark.parametrize("address", ["socks4://me:secret@one:1", "http://me:secret@one:port"])
async def test_a_proxy_that_is_not_spoken_is_told_without_its_password(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", address)
    engine = RemoteEngine(Endpoint.at("https://box.example"))
    with pytest.raises(EngineUnavailable, match=r"proxy in front of box\.example") as caught:
        await text_of(engine)
    assert "secret" not in str(caught.value) and "NO_PROXY" in caught.value.next_step
