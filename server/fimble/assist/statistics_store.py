"""The statistics on disk: one small sqlite file with sums, which several servers add to.

Each use opens the file, does one short transaction and closes it: nothing is held between.
A rollback journal and not a write-ahead log, since home folders lie on network file systems
too, and a few transactions a minute need no readers beside writers. What is damaged is thrown
away and made anew.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path

from fimble import system
from fimble.assist.statistics import Key
from fimble.errors import FimbleError, StatisticsError

__all__ = ["KEPT_DAYS", "add", "clear", "read", "statistics_file"]

logger = logging.getLogger(__name__)

#: What is older is deleted.
KEPT_DAYS = 90
_BUSY_SECONDS = 3.0
_LAYOUT = 1
_SCHEMA = """
CREATE TABLE counts (
    day TEXT NOT NULL,
    model TEXT NOT NULL,
    language TEXT NOT NULL,
    measure TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (day, model, language, measure, bucket)
) WITHOUT ROWID
"""
_ADD = """
INSERT INTO counts VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (day, model, language, measure, bucket)
DO UPDATE SET number = number + excluded.number
"""


class _Damaged(Exception):
    """The file is no database, or not one of ours."""


def statistics_file() -> Path:
    """Where the statistics are. The name has the layout's version."""
    return system.home() / "statistics" / f"counts-{_LAYOUT}.sqlite"


def add(batch: Mapping[Key, int], today: date) -> None:
    """Adds ``batch`` to what is stored, all of it or nothing, and deletes what is too old.

    A damaged file is made anew, with a line in the log. Raises StatisticsError where it
    cannot be written to (a full disk, a read-only folder, another process that holds it).
    """
    path = statistics_file()
    try:
        system.make_private_dir(path.parent)
    except FimbleError as error:
        raise _unwritable(path, error.message) from error
    try:
        _add(path, batch, today)
    except _Damaged:
        _make_anew(path)
        with _as_errors(path):
            _add(path, batch, today)


def read(since: date) -> dict[Key, int]:
    """The numbers of the days from ``since`` on; none where nothing was ever counted.

    Raises StatisticsError where the file is damaged or cannot be read.
    """
    path = statistics_file()
    query = "SELECT day, model, language, measure, bucket, number FROM counts WHERE day >= ?"
    with _as_errors(path):
        if not path.exists() or path.stat().st_size == 0:  # a server is about to fill it
            return {}
        with _opened(path) as connection:
            rows = connection.execute(query, (since.isoformat(),)).fetchall()
    return {Key(*row[:5]): row[5] for row in rows}


def clear() -> None:
    """Deletes everything that is stored. Raises StatisticsError where that is not possible."""
    path = statistics_file()
    if path.exists():
        with _as_errors(path):
            _remove(path)


def _add(path: Path, batch: Mapping[Key, int], today: date) -> None:
    """Raises _Damaged, and StatisticsError for all other trouble."""
    oldest = today - timedelta(days=KEPT_DAYS - 1)
    try:
        with _opened(path) as connection:
            connection.execute("BEGIN IMMEDIATE")
            _prepare(connection)
            connection.executemany(_ADD, [(*key, number) for key, number in batch.items()])
            connection.execute("DELETE FROM counts WHERE day < ?", (oldest.isoformat(),))
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        if _is_damage(error):
            raise _Damaged from error
        raise _unwritable(path, str(error)) from error


def _prepare(connection: sqlite3.Connection) -> None:
    """Makes the table in an empty file. Raises _Damaged for somebody else's database."""
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    if layout == _LAYOUT:
        return
    if layout or connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]:
        raise _Damaged
    connection.execute(_SCHEMA)
    connection.execute(f"PRAGMA user_version = {_LAYOUT}")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection; what it has begun and not committed is rolled back when it is closed."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    with contextlib.closing(connection):
        yield connection


def _make_anew(path: Path) -> None:
    """Removes a damaged file, once: another server may have seen the damage too."""
    try:
        with system.exclusive_lock(path.with_suffix(".lock"), timeout=_BUSY_SECONDS):
            if not _is_sound(path):
                _remove(path)
                logger.warning("the statistics were damaged and are begun anew: %s", path.name)
    except (OSError, FimbleError) as error:
        raise _unwritable(path, str(error)) from error


def _is_sound(path: Path) -> bool:
    try:
        with _opened(path) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error as error:
        return not _is_damage(error)
    return bool(answer == "ok" and layout == _LAYOUT)


def _remove(path: Path) -> None:
    for ending in ("-journal", ""):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _is_damage(error: sqlite3.Error) -> bool:
    """Busy, full, read-only and the like are OperationalErrors; so is a table without the
    columns that it must have.
    """
    if isinstance(error, sqlite3.OperationalError):
        return "no such" in str(error) or "has no column" in str(error)
    return isinstance(error, sqlite3.DatabaseError)


@contextlib.contextmanager
def _as_errors(path: Path) -> Iterator[None]:
    """Turns what goes wrong with the file into what a user may read."""
    try:
        yield
    except _Damaged as error:
        raise _damaged(path) from error
    except sqlite3.Error as error:
        raise _damaged(path) if _is_damage(error) else _unwritable(path, str(error)) from error
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def _damaged(path: Path) -> StatisticsError:
    return StatisticsError(
        f"The statistics in {path} are damaged.",
        next_step="Begin anew with fimble stats --clear.",
    )


def _unwritable(path: Path, why: str) -> StatisticsError:
    return StatisticsError(
        f"The statistics in {path} cannot be used: {why.rstrip('.')}.",
        next_step="See to it that the folder can be written to and the disk is not full.",
    )
