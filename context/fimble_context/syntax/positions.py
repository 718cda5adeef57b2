"""Conversions between code point offsets, UTF-8 bytes, UTF-16 code units and line/column.

This is the one module that knows how wide a character is in which encoding, and what ends
a line: ``\\n``, ``\\r\\n`` (one line end) and a lone ``\\r``. It knows text and numbers only:
no documents, no trees, no protocol.

Terms: an *offset* counts code points (it indexes a ``str``); a *column* counts units of an
``Encoding`` from the start of its line; lines and columns are zero-based. A lone surrogate
counts as one code point, one UTF-16 unit and three UTF-8 bytes (``surrogatepass``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "Encoding",
    "LineIndex",
    "Position",
    "decode_utf8",
    "encode_utf8",
    "units_before",
    "units_to_chars",
]

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]
_Offsets: TypeAlias = npt.NDArray[np.int64]

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_END_BYTES = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Position:
    """A zero-based line and a zero-based column, in units of the encoding asked for."""

    line: int
    column: int


def encode_utf8(text: str) -> bytes:
    """UTF-8 bytes of any ``str``; lone surrogates become three bytes each, so offsets hold."""
    return text.encode("utf-8", "surrogatepass")


def decode_utf8(data: bytes) -> str:
    """The inverse of ``encode_utf8`` for whole characters; broken ones become U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def units_before(text: str, encoding: Encoding) -> int:
    """The length of ``text`` in units of ``encoding``."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(encode_utf8(text))
    # Two surrogates side by side that are separate code points are two units either way.
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def units_to_chars(text: str, units: int, encoding: Encoding) -> int:
    """How many whole characters of ``text`` lie within its first ``units`` units.

    Clamps to 0 and ``len(text)``. A unit in the middle of a character (a surrogate pair, a
    multi-byte sequence) gives the start of that character.
    """
    if units <= 0:
        return 0
    # A character is at least one unit wide, so no more than this many can matter.
    text = text[:units]
    if encoding == "utf-32" or text.isascii():
        return len(text)
    ends = np.cumsum(_widths(text, encoding))
    return int(np.searchsorted(ends, units, side="right"))


def _widths(text: str, encoding: Encoding) -> _Offsets:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    widths = np.ones(len(codes), dtype=np.int64)
    if encoding == "utf-16":
        widths += codes > 0xFFFF
    else:
        widths += codes > 0x7F
        widths += codes > 0x7FF
        widths += codes > 0xFFFF
    return widths


class LineIndex:
    """Where lines start, in code points and in UTF-8 bytes, kept up to date by edits.

    An update rescans the edited text only and shifts what comes after it with one vector
    addition, so its cost hardly depends on where in the file the edit is.
    """

    __slots__ = ("_byte_starts", "_starts")

    def __init__(self, text: str) -> None:
        self._starts, self._byte_starts = _line_starts(text)

    def copy(self) -> LineIndex:
        """An independent index of the same text."""
        other = object.__new__(LineIndex)
        other._starts, other._byte_starts = self._starts.copy(), self._byte_starts.copy()
        return other

    @property
    def line_count(self) -> int:
        """The number of lines: line ends plus one."""
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        """The line that contains ``offset``; a line's terminator belongs to the line."""
        return int(self._starts.searchsorted(offset, side="right")) - 1

    def line_of_byte(self, offset: int) -> int:
        """The line that contains the UTF-8 byte ``offset``."""
        return int(self._byte_starts.searchsorted(offset, side="right")) - 1

    def start(self, line: int) -> int:
        """The code point offset at which ``line`` (0 ≤ line < line_count) starts."""
        return int(self._starts[line])

    def byte_start(self, line: int) -> int:
        """The byte offset at which ``line`` (0 ≤ line < line_count) starts."""
        return int(self._byte_starts[line])

    def byte_of(self, text: str, offset: int) -> int:
        """The byte offset of a code point offset into ``text``."""
        if text.isascii():
            return offset
        return self._byte_offset(text, self.line_of(offset), offset)

    def offset_of_byte(self, text: str, byte: int) -> int:
        """The code point offset of a byte offset; inside a character, the character's start."""
        if text.isascii():
            return min(byte, len(text))
        line = self.line_of_byte(byte)
        start = self.start(line)
        rest = byte - self.byte_start(line)
        return start + units_to_chars(text[start : start + rest], rest, "utf-8")

    def replace(self, text: str, start: int, removed: str, inserted: str) -> None:
        """Follow an edit; ``text`` is the text after it.

        Whether a line starts at ``s`` depends on the characters at ``s - 1`` and ``s`` (of
        ``\\r\\n`` only the second ends the line), so besides the inserted text one character
        before it and one after it are looked at.
        """
        old_end = start + len(removed)
        new_end = start + len(inserted)
        # Line 0 starts at 0 whatever is edited; it is never dropped or found anew.
        first = max(1, int(np.searchsorted(self._starts, start, side="left")))
        after = max(first, int(np.searchsorted(self._starts, old_end, side="right")))
        shift = len(inserted) - len(removed)
        removed_bytes = units_before(removed, "utf-8")
        byte_shift = units_before(inserted, "utf-8") - removed_bytes
        window_start = max(0, start - 1)
        window = text[window_start : new_end + 1]
        found, found_bytes = _starts_within(window, start - window_start, new_end - window_start)
        if not found and first == after:
            if shift:
                self._starts[after:] += shift
            if byte_shift:
                self._byte_starts[after:] += byte_shift
            return
        base = self._byte_offset(text, first - 1, window_start)
        self._starts = np.concatenate(
            (
                self._starts[:first],
                np.array(found, dtype=np.int64) + window_start,
                self._starts[after:] + shift,
            )
        )
        self._byte_starts = np.concatenate(
            (
                self._byte_starts[:first],
                np.array(found_bytes, dtype=np.int64) + base,
                self._byte_starts[after:] + byte_shift,
            )
        )

    def _byte_offset(self, text: str, line: int, offset: int) -> int:
        """The byte offset of ``offset``, which lies at or after the start of ``line``."""
        start = int(self._starts[line])
        return int(self._byte_starts[line]) + units_before(text[start:offset], "utf-8")


def _line_starts(text: str) -> tuple[_Offsets, _Offsets]:
    """Offsets of all line starts of a whole text: in code points and in bytes."""
    starts = np.fromiter(
        (0, *(match.end() for match in _LINE_END.finditer(text))),
        dtype=np.int64,
    )
    if text.isascii():
        return starts, starts.copy()
    byte_starts = np.fromiter(
        (0, *(match.end() for match in _LINE_END_BYTES.finditer(encode_utf8(text)))),
        dtype=np.int64,
    )
    return starts, byte_starts


def _starts_within(window: str, first: int, last: int) -> tuple[list[int], list[int]]:
    """Line starts ``s`` of ``window`` with first ≤ s ≤ last, and the same in bytes."""
    found: list[int] = []
    found_bytes: list[int] = []
    position = byte_position = 0
    for match in _LINE_END.finditer(window):
        byte_position += units_before(window[position : match.end()], "utf-8")
        position = match.end()
        if first <= position <= last:
            found.append(position)
            found_bytes.append(byte_position)
    return found, found_bytes
