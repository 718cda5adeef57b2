"""A stand-in for the Hugging Face hub, on loopback: one repository, with one file or many.

Like the real one it answers with a redirect to a content server on another host (here
``localhost`` instead of ``127.0.0.1``), names the file's SHA-256 and size in the redirect's
headers only, and serves ranges. It can drop connections, hold them, refuse, and change.

With ``files`` it has a whole repository as well: its listing with sizes and checksums, and
small files that come without a redirect, as those do that are not in Git LFS.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import socket
import threading
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["Asked", "StandInHub", "git_sha1"]

_PIECE = 4096


@dataclass(frozen=True)
class Asked:
    """One request, as the hub or its content server saw it; ``file`` is empty for a listing."""

    server: str  # "hub" or "content"
    start: int
    token: str | None
    file: str = ""


@dataclass
class StandInHub:
    """Serves ``content`` as ``file`` of ``repo``; ``served`` counts the bytes of it sent.

    ``drops``: offsets at which a connection ends, each once; where it ``goes_away``, every
    request after that is answered 503 until ``status`` is set again. ``hold_at``: the offset
    at which the connection stands still, ``held`` set, until ``release`` is.

    ``files`` are the repository's other files by path. ``card`` is added to the listing, and
    ``listing`` takes its place where it is set. ``gated`` refuses every file, ``pointers``
    sends a Git LFS pointer in place of the large file.
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
    files: dict[str, bytes] = field(default_factory=dict)
    revision: str = "1" * 40
    card: dict[str, Any] = field(default_factory=dict)
    listing: bytes | None = None
    gated: bool = False
    pointers: bool = False

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

    @property
    def pointer(self) -> bytes:
        """What Git itself has of the large file."""
        text = (
            "version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{self.sha256}\nsize {len(self.content)}\n"
        )
        return text.encode()

    def listed(self) -> dict[str, Any]:
        """What the hub answers when it is asked for the repository, sizes included."""
        large = {
            "rfilename": self.file,
            "size": len(self.content),
            "blobId": git_sha1(self.pointer),
            "lfs": {"sha256": self.sha256, "size": len(self.content), "pointerSize": 134},
        }
        small = [
            {"rfilename": path, "size": len(data), "blobId": git_sha1(data)}
            for path, data in self.files.items()
        ]
        gated = "auto" if self.gated else False
        head = {"id": self.repo, "sha": self.revision, "gated": gated, "private": False}
        return head | self.card | {"siblings": [*small, large]}


def git_sha1(data: bytes) -> str:
    """Git's name for a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


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
        path = unquote(urlsplit(self.path).path)
        server = "content" if path == "/content" else "hub"
        file = hub.file if server == "content" else self._file_in(path)
        hub.asked.append(Asked(server, start, self.headers.get("authorization"), file))
        if server == "content":
            self._content(start if hub.ranges else 0)
        elif hub.status != 200:
            self._refuse(hub.status)
        elif path.startswith(f"/api/models/{hub.repo}/") and hub.files:
            self._send(hub.listing or json.dumps(hub.listed()).encode())
        elif hub.gated:
            hub.error_code = "GatedRepo"
            self._refuse(401)
        elif file == hub.file and hub.pointers:
            self._send(hub.pointer)
        elif file == hub.file:
            self._redirect()
        elif file in hub.files:
            self._send(hub.files[file])
        else:
            self._refuse(404)

    def _file_in(self, path: str) -> str:
        """The file that a path of the hub names, at the main branch or the commit."""
        for revision in ("main", self.owner.revision):
            before = f"/{self.owner.repo}/resolve/{revision}/"
            if path.startswith(before):
                return path.removeprefix(before)
        return ""

    def _send(self, data: bytes) -> None:
        """A small file: no redirect, and for an ETag Git's name of it."""
        self.send_response(200)
        self.send_header("ETag", f'"{git_sha1(data)}"')
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

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
