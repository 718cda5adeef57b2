"""A server behind TLS, as a plain one in place of it: what it was sent, once decrypted.

Its certificates are those of ``certificates/``, signed by an authority that nobody else knows.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

__all__ = ["AUTHORITY", "CERTIFICATES", "Listener", "listening"]

CERTIFICATES = Path(__file__).parent / "certificates"
AUTHORITY = CERTIFICATES / "authority.pem"


class Listener:
    """Answers ``said`` to each connection's first request, and keeps what it was sent.

    ``certificate`` is the name of one in the folder; without, it speaks no TLS.
    """

    def __init__(self, said: bytes, certificate: str = "") -> None:
        self._said = said
        self._context: ssl.SSLContext | None = None
        if certificate:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(
                CERTIFICATES / f"{certificate}.pem", keyfile=CERTIFICATES / "server.key"
            )
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        #: One for each connection; empty where the client hung up before it said anything.
        self.heard: list[bytes] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Its address, by the name that ``trusted`` and ``expired`` are for."""
        return f"{'https' if self._context else 'http'}://localhost:{self.port}/v1"

    def close(self) -> None:
        """Ends it; ``heard`` is complete then."""
        self._over.set()
        with contextlib.suppress(OSError):
            # On some systems accept goes on in a socket that was closed.
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._socket.accept()
            with connection:
                if self._over.is_set():
                    return
                connection.settimeout(60)
                self.heard.append(self._exchange(connection))

    def _exchange(self, connection: socket.socket) -> bytes:
        said = b""
        with contextlib.suppress(OSError):
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            with connection:
                while not _is_request(said) and (piece := connection.recv(65536)):
                    said += piece
                if said:
                    connection.sendall(self._said)
                # Until the client has read it: to close with something unread resets it.
                connection.settimeout(60)
                while piece := connection.recv(65536):
                    said += piece
        return said


def _is_request(said: bytes) -> bool:
    """Whether it is enough to be answered; the beginning of TLS, on a plain socket, is."""
    return b"\r\n\r\n" in said or said.startswith(b"\x16")


@contextlib.contextmanager
def listening(said: bytes, certificate: str = "") -> Iterator[Listener]:
    """A ``Listener`` for the block, and afterwards what it has heard."""
    listener = Listener(said, certificate)
    try:
        yield listener
    finally:
        listener.close()
