"""Files written in one step, replaced, locked; how much room there is for them."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock

from fimble.system.folders import is_own, make_private_dir

__all__ = [
    "exclusive_lock",
    "free_disk_bytes",
    "read_private",
    "replace_path",
    "rewrite_file",
    "write_private",
]


def write_private(path: Path, data: bytes) -> None:
    """Writes ``data`` to ``path`` in one step, readable by its owner only.

    The content is never visible under that name in part, nor with wider rights.
    """
    make_private_dir(path.parent)
    _put_in_place(path, data)


def read_private(path: Path) -> bytes:
    """What ``write_private`` wrote. Raises OSError, also for a file that another user has put
    there: what it says is not to be trusted.
    """
    with path.open("rb") as stream:
        if not is_own(os.fstat(stream.fileno())):
            raise PermissionError(errno.EACCES, "it belongs to another user", str(path))
        return stream.read()


def _put_in_place(
    path: Path, data: bytes, ready: Callable[[Path], object] = lambda temporary: None
) -> None:
    """Writes beside ``path``, lets ``ready`` see to the whole file, and renames it over."""
    # mkstemp makes the file with mode 0600, before there is anything in it.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        ready(temporary)
        replace_path(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_path(source: Path, target: Path, *, attempts: int = 20) -> None:
    """Renames ``source`` over ``target`` (a file, or a folder that does not exist yet).

    Virus scanners and indexers on Windows hold new files open for a moment, which makes
    a rename fail with a sharing violation; it is tried again for about two seconds.
    """
    for attempt in range(attempts):
        try:
            source.replace(target)
            return
        except PermissionError:
            if attempt == attempts - 1:
                raise
            time.sleep(0.1)


def rewrite_file(path: Path, data: bytes) -> None:
    """Replaces the content of an existing file in one step; its mode stays.

    A link stays a link: what it leads to is rewritten. Raises OSError; the file is then as it
    was.
    """
    path = path.resolve(strict=True)
    if not os.access(path, os.W_OK):
        # Renaming over it would not ask for that right.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    _put_in_place(path, data, lambda temporary: shutil.copymode(path, temporary))


def free_disk_bytes(path: Path) -> int:
    """Free bytes on the file system that holds ``path`` or its nearest existing parent."""
    existing = path.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return shutil.disk_usage(existing).free


@contextlib.contextmanager
def exclusive_lock(path: Path, *, timeout: float) -> Iterator[None]:
    """Holds a lock file between processes; it is free again when its holder dies.

    Raises TimeoutError after ``timeout`` seconds.
    """
    make_private_dir(path.parent)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except filelock.Timeout as error:
        raise TimeoutError(f"{path} is held by another process") from error
    try:
        yield
    finally:
        lock.release()
