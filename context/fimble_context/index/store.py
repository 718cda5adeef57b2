"""The index on disk: one sqlite file a workspace and version, readable while it is written.

Knows rows, and nothing of walking, parsing or policy. What is damaged is thrown away and made
anew. Several processes may have it open: sqlite's write-ahead log keeps them apart.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from fimble_context.index.facts import Fact, Facts
from fimble_context.index.store_layout import SCHEMA, fingerprint, import_keys
from fimble_context.index.terms import ChunkTerms, pack, unpack
from fimble_context.syntax.names import Import
from fimble_context.workspace.paths import path_key

__all__ = ["Known", "Store", "StoreError", "open_store", "remove_store"]

log = logging.getLogger(__name__)

_BUSY_SECONDS = 5.0
_WRITER_CACHE_KIB = 32_768
_READER_CACHE_KIB = 4_096


class StoreError(Exception):
    """The file cannot be opened, read or written, or is damaged."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is stored of a file, to see whether it has changed."""

    path: str
    size: int
    mtime_ns: int
    digest: bytes


def open_store(path: Path) -> Store:
    """Open a store for writing, made anew if there is none or it is damaged.

    Indexes of the same workspace by other versions are removed. Raises StoreError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not _is_sound(path):
            log.warning("The index %s is damaged and made anew", path.name)
            remove_store(path)
        for other in path.parent.glob(f"{path.stem.partition('-')[0]}-*.sqlite"):
            if other.stem != path.stem:
                with contextlib.suppress(OSError):  # a window of another version uses it
                    remove_store(other)
        return Store(path, writable=True)
    except OSError as error:
        raise StoreError(f"{path.name}: {error.strerror}") from error


def remove_store(path: Path) -> None:
    """Remove the files of a store. Raises OSError where one of them is in use."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _is_sound(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if answer != "ok":
                return False
            tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
            # An empty file is a store that another process is about to make.
            return tables == 0 or _stored_fingerprint(connection) == fingerprint()
    except sqlite3.OperationalError as error:
        # Busy is no damage; a missing table is.
        return "locked" in str(error) or "busy" in str(error)
    except sqlite3.DatabaseError:
        return False


def _stored_fingerprint(connection: sqlite3.Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE key = 'fingerprint'").fetchone()
    return str(row[0]) if row is not None else ""


class Store:
    """Rows by file. Every method raises StoreError and nothing else for trouble with sqlite.

    May be used from several threads; they take turns.
    """

    def __init__(self, path: Path, *, writable: bool) -> None:
        self.path = path
        self.is_new = False
        self._lock = threading.RLock()
        with _errors(path):
            self._connection = sqlite3.connect(
                path if writable else f"{path.absolute().as_uri()}?mode=ro",
                uri=not writable,
                timeout=_BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._prepare(writable)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, writable: bool) -> None:
        execute = self._connection.execute
        execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB if writable else _READER_CACHE_KIB}")
        if writable:
            execute("PRAGMA journal_mode = WAL")
            execute("PRAGMA synchronous = NORMAL")
            execute("BEGIN IMMEDIATE")
            if execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0:
                self.is_new = True
                for statement in SCHEMA.split(";"):
                    execute(statement)
                execute("INSERT INTO meta VALUES ('fingerprint', ?)", (fingerprint(),))
            execute("COMMIT")
        if _stored_fingerprint(self._connection) != fingerprint():
            raise StoreError(f"{self.path.name} is of another version")

    def close(self) -> None:
        """Close the file; the store cannot be used after that."""
        with self._lock:
            self._connection.close()

    def checkpoint(self) -> None:
        """Move what the write-ahead log holds to its place, as far as readers allow."""
        with self._lock, _errors(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # --- writing --------------------------------------------------------------------------

    def __enter__(self) -> Store:
        """Begin a transaction: all or nothing of what is written until the block ends."""
        with _errors(self.path):
            self._lock.acquire()
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except BaseException:
                self._lock.release()
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _errors(self.path):
            try:
                self._connection.execute("COMMIT" if kind is None else "ROLLBACK")
            finally:
                self._lock.release()

    def put(self, known: Known, facts: Facts) -> None:
        """Store a file's facts in place of what was known of it."""
        self._put(known, facts.language, "", facts)

    def put_refused(self, known: Known, reason: str) -> None:
        """Store that a file's content was refused, so that it is not read again."""
        self._put(known, "", reason, Facts("", (), (), ()))

    def touch(self, known: Known) -> None:
        """A file has another time of change but the same content."""
        with self._writing() as connection:
            connection.execute(
                "UPDATE files SET size = ?, mtime_ns = ? WHERE key = ?",
                (known.size, known.mtime_ns, path_key(known.path)),
            )

    def remove(self, paths: Iterable[Path | str]) -> None:
        """Forget files."""
        with self._writing() as connection:
            for path in paths:
                row = connection.execute(
                    "SELECT id FROM files WHERE key = ?", (path_key(path),)
                ).fetchone()
                if row is not None:
                    self._forget(row[0])
                    connection.execute("DELETE FROM files WHERE id = ?", row)

    def remove_below(self, folder: Path | str) -> None:
        """Forget a file, or all files of a folder that is gone."""
        prefix = path_key(folder) + os.sep
        # A range, not LIKE: names may hold its wildcards, and the index on keys serves it.
        rows = self._rows(
            "SELECT path FROM files WHERE key >= ? AND key < ?",
            (prefix, prefix[:-1] + chr(ord(os.sep) + 1)),
        )
        self.remove([folder, *(row[0] for row in rows)])

    def _put(self, known: Known, language: str, refused: str, facts: Facts) -> None:
        with self._writing() as connection:
            key = path_key(known.path)
            row = connection.execute("SELECT id FROM files WHERE key = ?", (key,)).fetchone()
            values = (known.path, known.size, known.mtime_ns, known.digest, language, refused,
                      array("I", facts.terms).tobytes(), pack(facts.chunks, facts.terms),
                      key)  # fmt: skip
            file = row[0] if row is not None else None
            if file is None:
                file = connection.execute(
                    "INSERT INTO files (path, size, mtime_ns, digest, language, refused, terms,"
                    " chunks, key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                ).lastrowid
                assert file is not None
            else:
                connection.execute(
                    "UPDATE files SET path = ?, size = ?, mtime_ns = ?, digest = ?, language = ?,"
                    " refused = ?, terms = ?, chunks = ? WHERE key = ?",
                    values,
                )
            if row is not None:
                self._forget(file)
            self._insert(file, facts)

    def _insert(self, file: int, facts: Facts) -> None:
        self._connection.executemany(
            "INSERT INTO definitions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (file, _text(fact.name), fact.kind, _text(fact.container), fact.start, fact.end,
                 fact.line, fact.end_line, _text(fact.signature), _text(fact.doc))
                for fact in facts.definitions
            ),
        )  # fmt: skip
        self._connection.executemany(
            "INSERT INTO imports VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (file, _text(item.source), item.start, item.end, json.dumps(item.names),
                 _text(item.alias), item.wildcard)
                for item in facts.imports
            ),
        )  # fmt: skip
        keys = {_text(key) for item in facts.imports for key in import_keys(item)}
        self._connection.executemany(
            "INSERT OR IGNORE INTO import_keys VALUES (?, ?)", ((key, file) for key in keys)
        )

    def _forget(self, file: int) -> None:
        keys = {
            _text(key) for item in self._imports(file) for key in import_keys(item)
        }  # fmt: skip
        self._connection.executemany(
            "DELETE FROM import_keys WHERE key = ? AND file = ?", ((key, file) for key in keys)
        )
        for table in ("definitions", "imports"):
            self._connection.execute(f"DELETE FROM {table} WHERE file = ?", (file,))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _errors(self.path):
            yield self._connection

    # --- reading --------------------------------------------------------------------------

    def known(self) -> dict[str, Known]:
        """All files by ``path_key``."""
        rows = self._rows("SELECT key, path, size, mtime_ns, digest FROM files")
        return {row[0]: Known(*row[1:]) for row in rows}

    def known_file(self, path: Path | str) -> Known | None:
        """What is stored of one file."""
        rows = self._rows(
            "SELECT path, size, mtime_ns, digest FROM files WHERE key = ?", (path_key(path),)
        )
        return Known(*rows[0]) if rows else None

    def count(self) -> int:
        """How many files have facts."""
        return int(self._rows("SELECT COUNT(*) FROM files WHERE refused = ''")[0][0])

    def definitions(self, name: str, limit: int) -> list[tuple[str, Fact]]:
        """(path, definition) of everything of this name."""
        rows = self._rows(
            # The inner limit: of a name that is everywhere, no more is looked at either.
            'SELECT f.path, d.name, d.kind, d.container, d.start, d."end", d.line, d.end_line,'
            " d.signature, d.doc FROM (SELECT * FROM definitions WHERE name = ? LIMIT ?) d"
            " JOIN files f ON f.id = d.file ORDER BY f.path, d.start",
            (_text(name), limit),
        )
        return [(row[0], Fact(*row[1:])) for row in rows]

    def beginning(self, prefix: str, limit: int) -> list[tuple[str, Fact]]:
        """(path, definition) of everything whose name begins so, by name."""
        rows = self._rows(
            # Names from the prefix up to where no name begins so any more: by the index.
            'SELECT f.path, d.name, d.kind, d.container, d.start, d."end", d.line, d.end_line,'
            " d.signature, d.doc FROM (SELECT * FROM definitions WHERE name >= ? AND name < ?"
            " ORDER BY name LIMIT ?) d JOIN files f ON f.id = d.file"
            " ORDER BY d.name, f.path, d.start",
            (_text(prefix), _text(prefix) + "\U0010ffff", limit),
        )
        return [(row[0], Fact(*row[1:])) for row in rows]

    def facts(self, path: Path | str) -> Facts | None:
        """All facts of one file."""
        rows = self._rows(
            "SELECT id, language, terms FROM files WHERE key = ? AND refused = ''",
            (path_key(path),),
        )
        if not rows:
            return None
        file, language, terms = rows[0]
        definitions = self._rows(
            'SELECT name, kind, container, start, "end", line, end_line, signature, doc'
            ' FROM definitions WHERE file = ? ORDER BY start, "end" DESC',
            (file,),
        )
        return Facts(
            language,
            tuple(Fact(*row) for row in definitions),
            tuple(self._imports(file)),
            tuple(_numbers(terms)),
        )

    def chunks(self, path: Path | str) -> list[ChunkTerms]:
        """The terms of the definitions in a file, by where they are."""
        rows = self._rows(
            "SELECT chunks, terms FROM files WHERE key = ? AND refused = ''", (path_key(path),)
        )
        with _errors(self.path):
            return unpack(rows[0][0], _numbers(rows[0][1])) if rows else []

    def importing(self, keys: Sequence[str], limit: int) -> list[tuple[str, str]]:
        """(path, language) of files with an import that has one of these keys."""
        marks = ", ".join("?" * len(keys))
        rows = self._rows(
            "SELECT DISTINCT f.path, f.language FROM import_keys k JOIN files f ON f.id = k.file"
            f" WHERE k.key IN ({marks}) ORDER BY f.path LIMIT ?",
            (*map(_text, keys), limit),
        )
        return [(row[0], row[1]) for row in rows]

    def terms(self) -> Iterator[tuple[str, bytes]]:
        """(path, terms as unsigned 32-bit numbers in native order) of all files with facts."""
        last = -1
        while True:
            # In pieces, so that no reader keeps the write-ahead log from being emptied.
            rows = self._rows(
                "SELECT id, path, terms FROM files WHERE id > ? AND refused = ''"
                " ORDER BY id LIMIT 500",
                (last,),
            )
            yield from ((path, terms) for _, path, terms in rows)
            if not rows:
                return
            last = rows[-1][0]

    def _imports(self, file: int) -> list[Import]:
        rows = self._rows(
            'SELECT source, start, "end", names, alias, wildcard FROM imports'
            " WHERE file = ? ORDER BY start",
            (file,),
        )
        return [
            Import(source, start, end, tuple((a, b) for a, b in json.loads(names)), alias, bool(w))
            for source, start, end, names, alias, w in rows
        ]

    def _rows(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _errors(self.path):
            return self._connection.execute(sql, values).fetchall()


def _text(text: str) -> str:
    """Text that sqlite takes: without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _numbers(blob: bytes) -> array[int]:
    numbers = array("I")
    numbers.frombytes(blob)
    return numbers


@contextlib.contextmanager
def _errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, json.JSONDecodeError, TypeError, ValueError, IndexError) as error:
        # The latter ones: rows that this version would not have written.
        raise StoreError(f"{path.name}: {error}") from error
