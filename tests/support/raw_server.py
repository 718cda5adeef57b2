"""A server of bytes: what HTTP may be at its worst, on a real socket of loopback."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterable, Iterator

__all__ = ["HEAD", "raw_server"]

#: The header of an answer that goes on as long as the connection.
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@contextlib.contextmanager
def raw_server(pieces: Iterable[bytes], *, hold: bool = False) -> Iterator[str]:
    """Sends ``pieces`` to whoever asks, once, and the URL of that. With ``hold`` the connection
    then stays open; otherwise it ends there.
    """
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                _read_request(connection)
                for piece in pieces:
                    if over.is_set():
                        return
                    connection.sendall(piece)
                if not hold:
                    connection.shutdown(socket.SHUT_WR)
                over.wait()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        over.set()
        with contextlib.suppress(OSError):
            # On some systems accept goes on in a socket that was closed.
            socket.create_connection(listener.getsockname(), timeout=1).close()
        listener.close()
        thread.join(10)


def _read_request(connection: socket.socket) -> None:
    """All of it: to close a connection with something unread resets it."""
    said = b""
    while b"\r\n\r\n" not in said and (piece := connection.recv(65536)):
        said += piece
    head, _, body = said.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)^content-length: *(\d+)", head, re.MULTILINE)
    missing = (int(length[1]) if length else 0) - len(body)
    while missing > 0 and (piece := connection.recv(65536)):
        missing -= len(piece)
