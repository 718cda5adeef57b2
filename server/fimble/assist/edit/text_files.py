"""Text files on disk, read and written so that nothing but the edit changes in them.

Encoding (UTF-8, or UTF-16 with a byte order mark), the mark, line ends and the file's mode
stay. A file that was changed by somebody else in between is not written.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from fimble import system
from fimble.assist.policy import MAX_DOCUMENT_BYTES
from fimble.errors import DocumentError, EditRefused

__all__ = ["TextFile", "create_text_file", "read_text_file", "write_text_file"]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file as it was read: ``data`` are all its bytes, ``text`` is without the mark."""

    path: Path
    data: bytes
    mark: bytes
    encoding: str
    text: str

    def encoded(self, text: str) -> bytes:
        """``text`` as the file would hold it."""
        return self.mark + text.encode(self.encoding)


def read_text_file(path: Path) -> TextFile:
    """The text file at ``path``. Raises DocumentError for anything else."""
    try:
        if path.is_dir():
            raise DocumentError(f"{path} is a folder.", next_step="Name a file in it.")
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise DocumentError(
                f"{path} is larger than {MAX_DOCUMENT_BYTES // 1_000_000} MB.",
                next_step="fimble edits source files; this looks like data.",
            )
        data = path.read_bytes()
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise DocumentError(f"{path} cannot be read: {cause}.") from error
    mark, encoding = next((each for each in _MARKS if data.startswith(each[0])), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{path} is not {encoding.upper()} text: byte {error.start + len(mark)} cannot be "
            "decoded.",
            next_step="Save the file as UTF-8.",
        ) from error
    if "\0" in text:
        raise DocumentError(f"{path} is a binary file.", next_step="Name a text file.")
    return TextFile(path, data, mark, encoding, text)


def write_text_file(file: TextFile, text: str) -> None:
    """Writes ``text`` in one step. Raises EditRefused where the file has changed since."""
    try:
        if file.path.read_bytes() != file.data:
            raise EditRefused(
                f"{file.path} was changed meanwhile; it was left as it is.",
                next_step="Run the command again.",
                name="moved",
            )
        system.rewrite_file(file.path, file.encoded(text))
    except OSError as error:
        raise _unwritten(file.path, error) from error


def create_text_file(path: Path, text: str) -> None:
    """Makes a new file. Raises EditRefused where there is one by now."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise EditRefused(
            f"{path} was made meanwhile; it was left as it is.",
            next_step="Run the command again.",
            name="moved",
        ) from error
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> DocumentError:
    cause = error.strerror or type(error).__name__
    return DocumentError(
        f"{path} cannot be written: {cause}.", next_step="See to its rights and its folder's."
    )
