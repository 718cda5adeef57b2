"""What pulling a file and pulling a whole repository have in common: locks, disks, sizes."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from pathlib import Path

from fimble.errors import DownloadError
from fimble.models.store import Store

__all__ = ["SPARE_BYTES", "alone", "bytes_below", "check_space", "disk_errors", "gigabytes"]

SPARE_BYTES = 256 << 20
"""Room wanted beyond the files themselves: one wheel on its way, and some air."""


def check_space(name: str, root: Path, needed: int, free: int) -> None:
    """DownloadError where ``needed`` bytes for ``name`` are more than are ``free``."""
    if free < needed:
        raise DownloadError(
            f"{name} needs {gigabytes(needed)} of free disk space in "
            f"{root} while it is made, and {gigabytes(free)} are free.",
            next_step="Free some space, or set FIMBLE_HOME to a folder on another disk.",
        )


@contextlib.contextmanager
def alone(store: Store, name: str, say: Callable[[str], None]) -> Iterator[None]:
    """Holds the name; where another process does, says so and waits until that is done."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(store.lock(name, timeout=0))
        except TimeoutError:
            say(f"Another process is working on {name}; waiting for it.")
            held.enter_context(store.lock(name, timeout=-1))  # as long as it takes
        yield


@contextlib.contextmanager
def disk_errors(root: Path) -> Iterator[None]:
    """A disk that is full or cannot be written becomes a DownloadError."""
    try:
        yield
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise DownloadError(
            f"{error.filename or root} cannot be written: {error.strerror or error}.",
            next_step="Free some disk space, then run the same command again."
            if full
            else "Check the folder's permissions, or set FIMBLE_HOME to another one.",
        ) from error


def bytes_below(folder: Path) -> int:
    """Sizes of all files in the folder and below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def gigabytes(size: int) -> str:
    """``size`` bytes for a sentence."""
    return f"{size / 1e9:.1f} GB"
