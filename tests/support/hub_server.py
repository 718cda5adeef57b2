"""A stand-in for the Hugging Face hub, on loopback: one repository with one file.

Like the real one it answers with a redirect to a content server on another host (here
``localhost`` instead of ``127.0.0.1``), names the file's SHA-256 and size in the redirect's
headers only, and serves ranges. It can drop connections, hold them, refuse, and change.
"""

from __future__ import annotations

import hashlib
import http.server
import socket
import threading
from dataclasses import dataclass, field
from types import TracebackType

__all__ = ["Asked", "StandInHub"]

_PIECE = 4096


@dataclass(frozen=True)
class Asked:
    """One request for the file, as the hub or its content server saw it."""

    server: str  # "hub" or "content"
    start: int
    token: str | None


@dataclass
class StandInHub:
    """Serves ``content`` as ``file`` of ``repo``; ``served`` counts the bytes of it sent.

    ``drops``: offsets at which a connection ends, each once; where it ``goes_away``, every
    request after that is answered 503 until ``status`` is set again. ``hold_at``: the offset
    at which the connection stands still, ``held`` set, until ``release`` is.
    """

    content: bytes
    repo: str = "someone/Tiny-Coder-GGUF"
    file: str = "tiny-coder-q4_k_m.gguf"
    status: int = 200
    error_code: str = ""
    claimed_sha256: str | None = None
    ranges: bool = True
    drops: list[int] = field(default_factory=list)
    goes_away: bool = False
    hold_at: int | None = None
    served: int = 0
    asked: list[Asked] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> StandInHub:
        hub = self

        class Handler(_Handler):
            owner = hub

        self._server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def endpoint(self) -> str:
        """What HF_ENDPOINT is set to."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def sha256(self) -> str:
        """The content's true SHA-256."""
        return hashlib.sha256(self.content).hexdigest()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing of clients that go away: that is what the tests are about."""


class _Handler(http.server.BaseHTTPRequestHandler):
    owner: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        hub = self.owner
        start = int(self.headers.get("range", "bytes=0-").split("=")[1].rstrip("-"))
        server = "content" if self.path == "/content" else "hub"
        hub.asked.append(Asked(server, start, self.headers.get("authorization")))
        if server == "content":
            self._content(start if hub.ranges else 0)
        elif hub.status != 200:
            self._refuse(hub.status)
        elif self.path == f"/{hub.repo}/resolve/main/{hub.file}":
            self._redirect()
        else:
            self._refuse(404)

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        if self.owner.error_code:
            self.send_header("X-Error-Code", self.owner.error_code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _redirect(self) -> None:
        hub = self.owner
        self.send_response(302)
        self.send_header("Location", f"http://localhost:{hub.port}/content")
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("X-Linked-Etag", f'"{hub.claimed_sha256 or hub.sha256}"')
        self.send_header("X-Linked-Size", str(len(hub.content)))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _content(self, start: int) -> None:
        size = len(self.owner.content)
        if start >= size:
            self._refuse(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("ETag", f'"{"e" * 64}"')  # a hash of another kind, as Xet's is
        self.send_header("Content-Length", str(size - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        self._body(start)

    def _body(self, at: int) -> None:
        hub = self.owner
        while at < len(hub.content):
            stops = [s for s in [*hub.drops, hub.hold_at] if s is not None and s >= at]
            end = min([at + _PIECE, len(hub.content), *stops])
            try:
                self.wfile.write(hub.content[at:end])
            except OSError:
                return
            hub.served += end - at
            at = end
            if at in hub.drops:
                hub.drops.remove(at)
                if hub.goes_away:
                    hub.status = 503
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if at == hub.hold_at:
                hub.held.set()
                hub.release.wait(60)
                hub.hold_at = None
