"""Crashes of native code: what an engine leaves behind of one, and what is told of it.

The log gets the signal's name and the places of the code that ran, by file and line: no text that
was asked, and no image of the memory. A message takes from it one of a few known causes.
"""

from __future__ import annotations

import faulthandler
import re
import sys
from pathlib import Path

from fimble import system

__all__ = ["crash_cause", "note_crashes"]

#: What faulthandler begins with, and the causes in words. Nothing else of a log is repeated.
_CAUSE = re.compile(r"^(?:Fatal Python error|Windows fatal exception): (.{1,60})$", re.MULTILINE)
_WORDS = {
    "segmentation fault": "a segmentation fault in native code",
    "access violation": "an access violation in native code",
    "aborted": "native code that gave up",
    "bus error": "a bus error in native code",
    "illegal instruction": "an instruction that this processor does not have",
    "floating-point exception": "a floating-point exception in native code",
    "floating point exception": "a floating-point exception in native code",
    "stack overflow": "a stack overflow in native code",
}
#: Of a log's end; the places of all threads are far shorter.
_TAIL_BYTES = 64_000


def note_crashes() -> None:
    """For the engine process: a crash is told of in its log."""
    system.no_core_dumps()
    if sys.stderr is not None:
        faulthandler.enable(sys.stderr)


def crash_cause(log: Path, port: int) -> str:
    """Why the engine that listened on ``port`` crashed; "" where its log tells of no crash."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            tail = stream.read(_TAIL_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError:
        return ""
    # What is before that is an earlier engine's.
    *_, own = tail.rpartition(f"listening on 127.0.0.1:{port}\n")
    found = _CAUSE.search(own)
    return "" if found is None else _WORDS.get(found[1].strip().lower(), "")
