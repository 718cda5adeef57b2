"""The server's log: a file with rotation, without anybody's source text.

Standard output belongs to the protocol and standard error to nobody: some editors pop it
up. Only at level ``debug`` is the log copied there. What pygls logs is left out, since it
puts whole messages, and with them documents, into its lines.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType

from fimble import system
from fimble.errors import FimbleError

__all__ = ["log_file", "set_level", "start_logging"]

_BYTES = 1_000_000
_BACKUPS = 2
_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


def log_file() -> Path:
    """The log of all language servers of this user."""
    return system.logs_dir() / "server.log"


def start_logging() -> None:
    """Sends what ``fimble`` logs to the file, and what anybody else logs nowhere.

    Where the file cannot be written there is no log; that is no reason not to serve.
    """
    root = logging.getLogger()
    root.addHandler(logging.NullHandler())
    logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
    ours = logging.getLogger("fimble")
    ours.propagate = False
    ours.addHandler(logging.NullHandler())
    with contextlib.suppress(OSError, FimbleError):
        system.make_private_dir(log_file().parent)
        handler = _SharedFileHandler(
            log_file(), maxBytes=_BYTES, backupCount=_BACKUPS, encoding="utf-8", errors="replace"
        )
        handler.setFormatter(_Formatter(_FORMAT))
        ours.addHandler(handler)
    # A failure to log must not show up anywhere else.
    logging.raiseExceptions = False
    set_level("info")


def set_level(level: str) -> None:
    """``error``, ``warning``, ``info`` or ``debug``; the last also logs to standard error."""
    ours = logging.getLogger("fimble")
    ours.setLevel(level.upper())
    console = next((h for h in ours.handlers if isinstance(h, _Console)), None)
    if level == "debug" and console is None and sys.stderr is not None:
        console = _Console(sys.stderr)
        console.setFormatter(_Formatter(_FORMAT))
        ours.addHandler(console)
    elif level != "debug" and console is not None:
        ours.removeHandler(console)


class _Console(logging.StreamHandler):  # type: ignore[type-arg]
    """Standard error, told apart from handlers of anybody else's."""


class _SharedFileHandler(RotatingFileHandler):
    """Several windows write one file; on Windows it cannot be renamed while another has it."""

    def doRollover(self) -> None:
        try:
            super().doRollover()
        except OSError:
            # The next window that opens alone rotates it.
            if self.stream is None:
                self.stream = self._open()


class _Formatter(logging.Formatter):
    """Tracebacks without the exception's text, which may quote a document.

    Our own errors are written to be shown: theirs stays.
    """

    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None]
        | tuple[None, None, None],
    ) -> str:
        kind, error, trace = ei
        if kind is None or error is None:
            return ""
        frames = "".join(traceback.format_tb(trace))
        return f"{frames}{kind.__name__}" + (f": {error}" if isinstance(error, FimbleError) else "")
