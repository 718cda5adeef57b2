"""Whom a server's key is sent to: who proves to be that server, and nobody that one names.

Real TLS on sockets of loopback, with certificates of an authority that only these tests know.
"""

from __future__ import annotations

import itertools

import pytest

from fimble.engine.protocol import CompletionRequest, Text
from fimble.engine.remote import client as client_module
from fimble.engine.remote.abilities import Abilities
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.errors import EngineUnavailable, GenerationFailed
from tests.support.tls_server import AUTHORITY, Listener, listening

KEY = "sesame-open-51423"
REQUEST = CompletionRequest((Text("secret = 1"),), max_tokens=8)
MODELS = b'{"data": [{"id": "m", "max_model_len": 4096}]}'
LIST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (
    len(MODELS),
    MODELS,
)


@pytest.fixture(autouse=True)
def key_and_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "pause_before", lambda attempt, headers: 0.0)
    monkeypatch.setenv("FIMBLE_API_KEY", KEY)
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def asked(url: str, *, known: bool) -> None:
    """Asks for what the server has or, where that is ``known``, for a completion."""
    engine = RemoteEngine(Endpoint.at(url))
    try:
        if known:
            engine._abilities = Abilities("m", 2048, "text")
            async for _ in engine.complete(REQUEST):
                pass
        else:
            await engine.model_info()
    finally:
        await engine.aclose()


def everything(*listeners: Listener) -> bytes:
    return b"".join(itertools.chain.from_iterable(each.heard for each in listeners))


async def test_who_proves_to_be_the_server_is_sent_the_key() -> None:
    with listening(LIST, "trusted") as server, pytest.raises(GenerationFailed):
        await asked(server.url, known=True)  # it has no more to say than that list
    assert f"Authorization: Bearer {KEY}".encode() in everything(server)


@pytest.mark.parametrize("known", [False, True], ids=["asking what it has", "completing"])
@pytest.mark.parametrize(
    ("certificate", "why", "next_step"),
    [
        ("self_signed", "self.signed", "SSL_CERT_FILE"),
        ("expired", "expired", "renewed"),
        ("elsewhere", "mismatch", "address that the certificate is for"),
    ],
)
async def test_who_does_not_hears_nothing(
    certificate: str, why: str, next_step: str, known: bool
) -> None:
    with listening(LIST, certificate) as server:
        with pytest.raises(EngineUnavailable, match=f"is not trusted.*{why}") as caught:
            await asked(server.url, known=known)
        assert f"localhost:{server.port}" in caught.value.message
        assert next_step in caught.value.next_step
    assert server.heard and not any(server.heard)


async def test_an_authority_that_nobody_named_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with listening(LIST, "trusted") as server:
        with pytest.raises(EngineUnavailable, match="is not trusted") as caught:
            await asked(server.url, known=False)
        assert "SSL_CERT_FILE" in caught.value.next_step
    assert server.heard and not any(server.heard)


async def test_who_speaks_no_tls_is_not_spoken_to_in_plain_text() -> None:
    with listening(LIST) as server, pytest.raises(EngineUnavailable):
        await asked(server.url.replace("http:", "https:"), known=True)
    assert server.heard and KEY.encode() not in everything(server)
    assert b"Authorization" not in everything(server)


@pytest.mark.parametrize("known", [False, True], ids=["asking what it has", "completing"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("target", ["plain", "another host"])
async def test_where_the_server_points_nothing_is_sent(
    target: str, status: int, known: bool
) -> None:
    with listening(LIST, "" if target == "plain" else "trusted") as other:
        # By its other name, for which the certificate is good too.
        place = other.url if target == "plain" else other.url.replace("localhost", "127.0.0.1")
        head = f"HTTP/1.1 {status} X\r\nLocation: {place}/models\r\nContent-Length: 0\r\n"
        answer = f"{head}Connection: close\r\n\r\n".encode()
        refused = pytest.raises(EngineUnavailable, match="points to another address")
        with listening(answer, "trusted") as server, refused:
            await asked(server.url, known=known)
        assert KEY.encode() in everything(server)
    assert other.heard == []


async def test_a_proxy_on_the_way_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = b"HTTP/1.1 407 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    with listening(refusal) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with pytest.raises(EngineUnavailable, match="proxy"):
            await asked("https://box.example/v1", known=True)
    assert everything(proxy).startswith(b"CONNECT box.example:443 ")
    assert KEY.encode() not in everything(proxy)
