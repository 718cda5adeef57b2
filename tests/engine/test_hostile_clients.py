"""Whoever reaches the port without the secret, or asks too much with it: the engine goes on.

Each of these talks to a real process by plain sockets, and waits for what the engine does.
"""

from __future__ import annotations

import contextlib
import hmac
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from fimble.engine.guard import PARALLEL_LIMIT, Guard
from fimble.engine.strangers import STRANGERS
from tests.engine.process import RunningEngine
from tests.support.waiting import PATIENCE, until


def connected(engine: RunningEngine, sent: bytes = b"") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", engine.address.port), timeout=PATIENCE)
    if sent:
        connection.sendall(sent)
    return connection


def head(engine: RunningEngine, *lines: str, path: str = "/v1/completions") -> bytes:
    """The header of a POST with the secret; its body is to follow."""
    said = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{engine.address.port}",
        f"Authorization: Bearer {engine.address.secret}",
        *lines,
    ]
    return "\r\n".join([*said, "", ""]).encode()


def heard_until_closed(connection: socket.socket) -> bytes:
    """All that comes until the engine closes the connection, which it must."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            said += piece
    connection.close()
    return said


@contextlib.contextmanager
def dripping(connection: socket.socket, piece: bytes) -> Iterator[None]:
    """Sends ``piece`` every now and then, until that fails or the block ends."""
    over = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            while not over.wait(0.5):
                connection.sendall(piece)

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def open_connections(engine: RunningEngine) -> int:
    return len(psutil.Process(engine.address.pid).net_connections(kind="inet"))


# --- without the secret --------------------------------------------------------------------


def test_who_says_nothing_or_says_it_slowly_is_hung_up_on(engine: RunningEngine) -> None:
    """All at once, since each takes as long as a stranger is given."""
    host = f"127.0.0.1:{engine.address.port}".encode()
    silent = connected(engine)
    half = connected(engine, b"GET /health HTTP/1.1\r\nHost: " + host)
    slow = connected(engine, b"GET /health HTTP/1.1\r\n")
    refused = connected(engine, b"GET /health HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
    body = connected(
        engine, b"POST /load HTTP/1.1\r\nHost: " + host + b"\r\nContent-Length: 9000\r\n\r\n"
    )
    # With the secret, but a body that never ends.
    known = connected(engine, head(engine, "Content-Length: 9000"))
    with (
        dripping(slow, b"X-More: 1\r\n"),
        dripping(body, b"x"),
        dripping(known, b" "),
        ThreadPoolExecutor() as pool,
    ):
        all_of_them = (silent, half, slow, refused, body, known)
        said = dict(zip(all_of_them, pool.map(heard_until_closed, all_of_them), strict=True))
    assert said[silent] == said[half] == said[slow] == b""
    assert said[refused].startswith(b"HTTP/1.1 401 ") and b"unauthorized" in said[refused]
    assert said[body].startswith(b"HTTP/1.1 401 ")
    assert said[known].startswith(b"HTTP/1.1 408 ") and b"body_too_slow" in said[known]
    assert engine.text("def") is not None


def test_many_that_only_wait_keep_nobody_out(engine: RunningEngine) -> None:
    before = open_connections(engine)
    idle = [connected(engine) for _ in range(STRANGERS + 100)]
    try:
        # The oldest are given up for the newest.
        assert heard_until_closed(idle[0]) == b""
        until(lambda: open_connections(engine) <= before + STRANGERS + 1)
        for _ in range(3):
            with engine.client() as window:
                assert window.get("/health").status_code == 200
        assert engine.text("def") is not None
    finally:
        for connection in idle:
            connection.close()


def test_who_has_shown_the_secret_is_not_given_up_for_others(engine: RunningEngine) -> None:
    with engine.client() as window:
        window.get("/health")
        ours = next(iter(window._transport._pool.connections))  # type: ignore[attr-defined]
        idle = [connected(engine) for _ in range(STRANGERS + 20)]
        assert heard_until_closed(idle[0]) == b""
        assert window.get("/health").status_code == 200
        assert next(iter(window._transport._pool.connections)) is ours  # type: ignore[attr-defined]
        for connection in idle:
            connection.close()


ENDLESS = {
    "a header line": (b"GET / HTTP/1.1\r\nX: ", b"x" * 4096),
    "header lines": (b"GET / HTTP/1.1\r\n", b"X: y\r\n" * 700),
    "a request line": (b"GET /", b"y" * 4096),
    "noise": (b"\x16\x03\x01", b"\xff\x00" * 2048),
}


@pytest.mark.parametrize(("begin", "more"), ENDLESS.values(), ids=ENDLESS)
def test_headers_without_end(engine: RunningEngine, begin: bytes, more: bytes) -> None:
    resident = engine.health()["rss_bytes"]
    connection = connected(engine, begin)
    sent = 0
    # What the engine takes of it is little, and it says so or hangs up.
    with contextlib.suppress(OSError):
        while sent < 50_000_000 and not select.select([connection], [], [], 0)[0]:
            connection.sendall(more)
            sent += len(more)
    said = heard_until_closed(connection)
    assert sent < 50_000_000
    assert said == b"" or said.startswith(b"HTTP/1.1 400 ")
    assert engine.health()["rss_bytes"] < resident + 30_000_000


def test_a_body_without_end_is_not_kept(engine: RunningEngine) -> None:
    """Neither without the secret, nor with it."""
    resident = engine.health()["rss_bytes"]
    stranger = head(engine, "Transfer-Encoding: chunked").replace(
        engine.address.secret.encode(), b"guess"
    )
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    for begin, status in (
        (stranger, b"HTTP/1.1 401 "),
        (head(engine, "Transfer-Encoding: chunked"), b"HTTP/1.1 413 "),
    ):
        connection = connected(engine, begin)
        with contextlib.suppress(OSError):
            while not select.select([connection], [], [], 0)[0]:
                connection.sendall(piece)
        assert connection.recv(65536).startswith(status)
        connection.close()
    assert engine.health()["rss_bytes"] < resident + 120_000_000


def test_noise_writes_no_log(engine: RunningEngine) -> None:
    log = engine.home / "logs" / "engine.log"
    size = log.stat().st_size
    for _ in range(20):
        heard_until_closed(connected(engine, b"\xff\xff\r\n\r\n"))
        upgrade = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade, close\r\nUpgrade: foo\r\n\r\n"
        assert b" 403 " in heard_until_closed(connected(engine, upgrade))
    assert log.stat().st_size == size


async def test_the_secret_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, known: bytes) -> bool:
        compared.append((given, known))
        return real(given, known)

    real = hmac.compare_digest
    monkeypatch.setattr("fimble.engine.guard.hmac.compare_digest", compare)
    asked = [b"", b"s", b"secreT", b"secret", b"secret and more"]
    through = []

    async def app(scope: object, receive: object, send: object) -> None:
        through.append(scope)

    async def send(message: object) -> None:
        return

    guard = Guard(app, secret="secret", port=1)
    for given in asked:
        headers = [(b"host", b"127.0.0.1:1"), (b"authorization", b"Bearer " + given)]
        scope = {"type": "http", "method": "GET", "headers": headers, "state": {}}
        await guard(scope, None, send)  # type: ignore[arg-type]
    assert compared == [(given, b"secret") for given in asked]
    assert len(through) == 1


# --- with the secret: another program of the user's, or a window gone wild -----------------


def test_more_requests_than_the_engine_takes_are_refused_and_leave_it_well(
    engine: RunningEngine,
) -> None:
    """Held open by bodies that are not sent whole, again and again until one is refused."""
    over, held = threading.Event(), set[socket.socket]()

    def hold() -> None:
        while not over.is_set():
            connection = connected(engine, head(engine, "Content-Length: 30", path="/tokenize"))
            held.add(connection)
            with contextlib.suppress(OSError):
                if connection.recv(65536).startswith(b"HTTP/1.1 429 "):
                    over.set()

    with ThreadPoolExecutor(PARALLEL_LIMIT + 10) as pool:
        for _ in range(PARALLEL_LIMIT + 10):
            pool.submit(hold)
        assert over.wait(PATIENCE)
        # Who looks whether it lives is answered, or it would be taken for another program.
        assert engine.health()["pid"] == engine.address.pid
        for connection in list(held):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()
    until(lambda: engine.http.post("/tokenize", json={"texts": ["a"]}).status_code == 200)
    assert engine.text("def") is not None


def test_a_flood_of_completions_is_answered_or_refused_each_by_itself(
    engine: RunningEngine,
) -> None:
    def ask(number: int) -> int:
        body = {"prompt": f"def f{number}(", "max_tokens": 4}
        return engine.http.post("/v1/completions", json=body).status_code

    with ThreadPoolExecutor(80) as pool:
        statuses = list(pool.map(ask, range(120)))
    assert set(statuses) <= {200, 429} and 200 in statuses
    assert engine.health()["waiting"] == 0
    assert engine.text("def") is not None


@pytest.mark.parametrize("text", ["x" * 15_000_000, "\n" * 7_000_000], ids=["letters", "lines"])
def test_what_is_far_over_any_window_is_refused_before_it_is_cut_into_tokens(
    engine: RunningEngine, text: str
) -> None:
    response = engine.http.post("/v1/completions", json={"prompt": text})
    assert response.status_code == 400
    assert "does not fit the window" in response.json()["error"]["message"]
    chat = {"messages": [{"role": "user", "content": text}]}
    assert engine.http.post("/v1/chat/completions", json=chat).status_code == 400
    counted = engine.http.post("/tokenize", json={"texts": [text[:3_000_000]] * 2})
    assert counted.status_code == 400
    assert "4000000 characters" in counted.json()["error"]["message"]
    assert engine.text("def") is not None


def test_a_page_that_only_knows_the_port_changes_nothing(engine: RunningEngine) -> None:
    """What a browser sends by itself: forms, images, scripts, and names that lead to loopback."""
    kinds = ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
    for kind in kinds:
        for headers in (
            {"Content-Type": kind, "Origin": "https://evil.example"},
            {"Content-Type": kind, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
            {"Content-Type": kind, "Host": f"evil.example:{engine.address.port}"},
        ):
            for path in ("/load", "/v1/completions"):
                answer = httpx.post(
                    engine.address.url + path,
                    content=b'{"model": "/tmp/evil", "prompt": "a"}',
                    headers=headers,
                    trust_env=False,
                    verify=False,
                )
                assert answer.status_code in (401, 403)
                assert not any(name.startswith("access-control") for name in answer.headers)
    assert [model["id"] for model in engine.health()["models"]] == ["tiny"]
