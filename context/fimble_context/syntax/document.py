"""A text that is edited: its line index, positions and tree, kept up to date edit by edit.

Knows nothing of files on disk, of editors or of protocols, nor of what a tree is used for.
Offsets are code points unless a name says otherwise. A document belongs to one thread at a
time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from tree_sitter import Tree

from fimble_context.syntax.languages import Language, detect
from fimble_context.syntax.positions import (
    Encoding,
    LineIndex,
    Position,
    units_before,
    units_to_chars,
)
from fimble_context.syntax.tree import ByteEdit, SyntaxTree, byte_offset

__all__ = ["Document", "Edit"]

_Place: TypeAlias = tuple[int, tuple[int, int]]  # byte offset, tree-sitter point


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the code points ``start`` to ``end`` (exclusive) by ``text``."""

    start: int
    end: int
    text: str


class Document:
    """A text with a line index that follows its edits.

    ``path`` is what sections of a prompt name; ``language`` is the id the editor gave, or
    None; ``version`` is the caller's, kept but not interpreted.
    """

    def __init__(
        self, text: str, *, path: str = "", language: str | None = None, version: int = 0
    ) -> None:
        self.version = version
        self._text = text
        self._path = path
        self._language = language
        self._lines = LineIndex(text)
        self._newline: str | None = None
        self._syntax: SyntaxTree | None = None

    def copy(self) -> Document:
        """An independent document in the same state, to try an edit on; cheap."""
        other = Document("", path=self._path, language=self._language, version=self.version)
        other._text, other._newline = self._text, self._newline
        other._lines = self._lines.copy()
        other._syntax = self._syntax.copy() if self._syntax is not None else None
        return other

    @property
    def text(self) -> str:
        """The whole text as it stands, line ends and byte order mark included."""
        return self._text

    @property
    def path(self) -> str:
        """The path that sections name; empty where there is none."""
        return self._path

    @property
    def language(self) -> str | None:
        """The language id given for this document, if any."""
        return self._language

    @property
    def newline(self) -> str:
        """The line end used most in the text; ``\\n`` where there is none."""
        if self._newline is None:
            self._newline = _dominant_line_end(self._text)
        return self._newline

    @property
    def line_count(self) -> int:
        """The number of lines, at least 1; a final line end starts an empty last line."""
        return self._lines.line_count

    def apply(self, edit: Edit) -> None:
        """Make one edit. Offsets outside the text are clamped to it."""
        start = min(max(edit.start, 0), len(self._text))
        end = min(max(edit.end, start), len(self._text))
        removed = self._text[start:end]
        before = self._before_edit(start, end)
        # One large allocation less than with "+", and fresh pages are what an edit costs.
        self._text = "".join((self._text[:start], edit.text, self._text[end:]))
        self._lines.replace(self._text, start, removed, edit.text)
        # A "\r" just before the edit may have gained or lost its "\n".
        changed = removed + edit.text
        if "\n" in changed or "\r" in changed or self._text.endswith("\r", 0, start):
            self._newline = None
        if self._syntax is not None:
            self._syntax.edited(before and self._byte_edit(before, start + len(edit.text)))

    @property
    def syntax_language(self) -> Language | None:
        """The language whose grammar parses this text; None for plain text."""
        return self._syntax_tree().language

    @property
    def tree(self) -> Tree | None:
        """The syntax tree of the text as it stands, parsed if need be.

        None for plain text and for a text that is too large or too slow to parse. An edit
        makes the tree's nodes stale. See ``tree_is_exact``.
        """
        return self._syntax_tree().tree(self._text)

    @property
    def tree_is_exact(self) -> bool:
        """False where there is no tree, or the parser had no time to follow the last edits.

        Then ``tree`` is an older one whose positions have been shifted; ``settle`` helps.
        """
        syntax = self._syntax_tree()
        return syntax.tree(self._text) is not None and syntax.exact

    def settle(self) -> None:
        """Bring an inexact tree up to date; may take seconds, so not while the user waits."""
        self._syntax_tree().settle(self._text)

    @property
    def source(self) -> bytes:
        """The bytes that ``tree`` is about, and that its nodes' byte offsets index."""
        return self._syntax_tree().source

    def byte_of(self, offset: int) -> int:
        """The offset into ``source`` of an offset into ``text``."""
        return self._lines.byte_of(self._text, offset)

    def offset_of_byte(self, byte: int) -> int:
        """The offset into ``text`` of an offset into ``source``."""
        return self._lines.offset_of_byte(self._text, byte)

    def _syntax_tree(self) -> SyntaxTree:
        if self._syntax is None:
            self._syntax = SyntaxTree(detect(self._language, self._path, self._text))
        return self._syntax

    def _before_edit(self, start: int, end: int) -> tuple[_Place, _Place] | None:
        """Where an edit starts and ends in bytes, if there is a tree that it concerns."""
        if self._syntax is None or not self._syntax.wants_edits:
            return None
        # Whether a "\r" before the edit is a line end of its own may change with it.
        first = start - 1 if self._text.endswith("\r", 0, start) else start
        place = partial(byte_offset, self._lines, self._text)
        return place(first), place(end)

    def _byte_edit(self, before: tuple[_Place, _Place], new_end: int) -> ByteEdit:
        (start, start_point), (old_end, old_end_point) = before
        end, end_point = byte_offset(self._lines, self._text, new_end)
        return ByteEdit(start, old_end, end, start_point, old_end_point, end_point)

    def offset_at(self, line: int, column: int, encoding: Encoding = "utf-16") -> int:
        """The offset of a position.

        Clamps: past a line's end to before its terminator, past the text's end to its end,
        negative values to 0, the middle of a character to its start.
        """
        if line < 0:
            return 0
        if line >= self.line_count:
            return len(self._text)
        start = self.line_start(line)
        if column <= 0:
            return start
        end = self.line_end(line)
        text = self._text[start : min(end, start + column)]
        return start + units_to_chars(text, column, encoding)

    def position_at(self, offset: int, encoding: Encoding = "utf-16") -> Position:
        """The position of an offset; inside or after a terminator it is the line's end."""
        offset = min(max(offset, 0), len(self._text))
        line = self._lines.line_of(offset)
        start = self.line_start(line)
        offset = min(offset, self.line_end(line))
        return Position(line, units_before(self._text[start:offset], encoding))

    def line_of(self, offset: int) -> int:
        """The line that contains ``offset`` (clamped); a terminator belongs to its line."""
        return self._lines.line_of(min(max(offset, 0), len(self._text)))

    def line_start(self, line: int) -> int:
        """The offset at which a line starts; lines outside the text are clamped."""
        if line <= 0:
            return 0
        return len(self._text) if line >= self.line_count else self._lines.start(line)

    def line_end(self, line: int) -> int:
        """The offset just before a line's terminator; lines outside the text are clamped."""
        line = max(line, 0)
        if line + 1 >= self.line_count:
            return len(self._text)
        end = self._lines.start(line + 1)
        return end - (2 if self._text.endswith("\r\n", end - 2, end) else 1)

    def line_text(self, line: int) -> str:
        """A line without its terminator; empty for a line outside the text."""
        if not 0 <= line < self.line_count:
            return ""
        return self._text[self.line_start(line) : self.line_end(line)]


def _dominant_line_end(text: str) -> str:
    crlf = text.count("\r\n")
    counts = {"\n": text.count("\n") - crlf, "\r\n": crlf, "\r": text.count("\r") - crlf}
    return max(counts, key=lambda end: counts[end])
