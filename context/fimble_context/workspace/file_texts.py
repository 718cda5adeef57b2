"""Texts of files that candidates are cut from: open documents first, then the disk.

Remembers what it read while a file stays as it is; a few files, since texts are large. Whether
a path may be used at all has been asked before; what is refused for its content is no text.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from fimble_context.syntax.document import Document
from fimble_context.workspace.files import Limits, SourceFile, read
from fimble_context.workspace.paths import path_key

__all__ = ["FileTexts"]

_MOST_TEXTS = 48


class FileTexts:
    """Texts by path. Belongs to the thread that owns the documents."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._open: dict[str, Document] = {}
        self._read: OrderedDict[str, tuple[tuple[int, int], str | None]] = OrderedDict()

    def opened(self, path: Path, document: Document) -> None:
        """The document's text counts from now on."""
        self._open[path_key(path)] = document

    def closed(self, path: Path) -> None:
        """What is on disk counts again."""
        self._open.pop(path_key(path), None)

    def document(self, path: Path) -> Document | None:
        """The open document of a path."""
        return self._open.get(path_key(path))

    def text(self, path: Path) -> str | None:
        """The text as it stands, secrets and all; None where there is none to be used."""
        document = self.document(path)
        if document is not None:
            return document.text
        try:
            status = path.stat()
        except (OSError, ValueError):
            return None
        key, stamp = path_key(path), (status.st_size, status.st_mtime_ns)
        known = self._read.get(key)
        if known is None or known[0] != stamp:
            source = read(path, self._limits)
            known = stamp, source.text if isinstance(source, SourceFile) else None
            self._read[key] = known
        self._read.move_to_end(key)
        if len(self._read) > _MOST_TEXTS:
            self._read.popitem(last=False)
        return known[1]
