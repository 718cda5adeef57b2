"""The layout of the index on disk, and the names of its files.

The file's name holds a hash of the workspace's real folders and of everything that its
content depends on (layout, grammars, queries, extraction): another version never reads it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from fimble_context.index.facts import EXTRACTION
from fimble_context.syntax.languages import LANGUAGES, QueryName, query_source
from fimble_context.syntax.names import Import

__all__ = ["SCHEMA", "fingerprint", "import_keys", "path_keys", "store_path"]

_LAYOUT = 2
_QUERIES: tuple[QueryName, ...] = ("definitions", "imports")

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    digest BLOB NOT NULL,
    language TEXT NOT NULL,
    refused TEXT NOT NULL,
    terms BLOB NOT NULL,
    chunks BLOB NOT NULL
);
CREATE TABLE definitions (
    file INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, container TEXT NOT NULL,
    start INTEGER NOT NULL, "end" INTEGER NOT NULL, line INTEGER NOT NULL,
    end_line INTEGER NOT NULL, signature TEXT NOT NULL, doc TEXT NOT NULL
);
CREATE INDEX definitions_name ON definitions (name);
CREATE INDEX definitions_file ON definitions (file);
CREATE TABLE imports (
    file INTEGER NOT NULL, source TEXT NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    names TEXT NOT NULL, alias TEXT NOT NULL, wildcard INTEGER NOT NULL
);
CREATE INDEX imports_file ON imports (file);
CREATE TABLE import_keys (
    key TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY (key, file)
) WITHOUT ROWID;
"""


@cache
def fingerprint() -> str:
    """Changes with the layout, the extraction, the grammars' versions and the queries."""
    parts = [f"layout {_LAYOUT}", f"extraction {EXTRACTION}"]
    for language in LANGUAGES:
        name = language.module.replace("_", "-")
        try:
            parts.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            parts.append(f"{name} missing")
        parts += [query_source(language, query) for query in _QUERIES]
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()


def store_path(cache_folder: Path, folders: Sequence[Path], globs: Sequence[str] = ()) -> Path:
    """Where the index of these workspace folders is, whatever their order.

    What the user excludes is part of it: what one window may not see is in no store of its.
    """
    real = sorted(os.path.normcase(os.path.realpath(folder)) for folder in folders)
    text = "\0".join((*real, "", *globs))
    name = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=10)
    return cache_folder / f"{name.hexdigest()}-{fingerprint()}.sqlite"


_ENDINGS = frozenset(
    ("h", "hh", "hpp", "hxx", "js", "jsx", "ts", "tsx", "mjs", "cjs", "d", "py", "go", "rs", "java")
)


def import_keys(import_: Import) -> set[str]:
    """Words under which an import can be found from the file it may lead to.

    The last parts of its source and the names taken from it, without extensions.
    """
    words = set()
    for piece in import_.source.replace("\\", "/").replace("::", "/").split(","):
        parts = [part.strip(" {}*;") for part in piece.replace("{", "/").split("/")]
        for part in [part for part in parts if part][-3:]:
            words.update(part.split(".")[-3:])
    words.update(name for name, _ in import_.names)
    return {_word(word) for word in words if word} - _ENDINGS


def path_keys(path: Path) -> set[str]:
    """The words under which imports of this file may be found: its name and its folders'."""
    names = (path.name.partition(".")[0], path.parent.name, path.parent.parent.name)
    return {_word(name) for name in names if name}


def _word(name: str) -> str:
    return name.lower().replace("-", "_")
