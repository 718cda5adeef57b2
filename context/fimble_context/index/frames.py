"""Messages between the index and its process: a line of JSON, then bytes if it says so.

Text travels as the bytes after the line: escaping a large document as JSON would hold up the
thread that sends it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, Any

__all__ = ["Frame", "read_frame", "write_frame"]


@dataclass(frozen=True, slots=True)
class Frame:
    """A message: its header, and what follows it."""

    header: dict[str, Any]
    payload: bytes = b""


def write_frame(stream: IO[bytes], header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one frame whole. Raises OSError when the other end is gone."""
    line = json.dumps({**header, "payload": len(payload)} if payload else header)
    stream.write(line.encode() + b"\n" + payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Frame | None:
    """The next frame; None at the end of the stream, or where it is cut off."""
    try:
        line = stream.readline()
        if not line.endswith(b"\n"):
            return None
        header = json.loads(line)
        payload = stream.read(header.get("payload", 0))
    except (OSError, ValueError):
        return None
    return Frame(header, payload) if len(payload) == header.get("payload", 0) else None
