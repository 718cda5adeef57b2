"""A document's syntax tree, edited along with the text and re-parsed when it is asked for.

Knows tree-sitter and bytes, and nothing of what a tree is used for. An edit costs a note of
it; the next look at the tree applies all notes and lets the parser reuse what they left
whole. Where that takes long (one open bracket at the top of a large file can make the parser
rethink all of it), the old tree with its positions shifted serves until a parse gets through.
A document too large or too slow to parse at all has no tree, and everything that asks for one
gets by without.
"""

from __future__ import annotations

import logging
import re
import time
from dataclasses import dataclass

from tree_sitter import Parser, Point, Tree

from fimble_context.syntax.languages import Language, grammar
from fimble_context.syntax.positions import LineIndex, encode_utf8, units_before

__all__ = [
    "MAX_PARSED_BYTES",
    "PARSE_SECONDS",
    "REPARSE_SECONDS",
    "ByteEdit",
    "SyntaxTree",
    "byte_offset",
]

MAX_PARSED_BYTES = 5_000_000
PARSE_SECONDS = 2.0
REPARSE_SECONDS = 0.03

_NODE_BYTES = 256  # what a node reads of its text at once
# A first parse of so much is over in some 30 ms; a longer one may have to be stopped.
_SURELY_QUICK_BYTES = 256 << 10
# A parse that took longer is followed by one that can be stopped.
_QUICK_SECONDS = 0.01
_INDICATOR = re.compile(r"[-?:][ \t]")
_LONE_CR = re.compile(rb"\r(?!\n)")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ByteEdit:
    """An edit in bytes and tree-sitter points, from before and after it."""

    start: int
    old_end: int
    new_end: int
    start_point: tuple[int, int]
    old_end_point: tuple[int, int]
    new_end_point: tuple[int, int]


class SyntaxTree:
    """The tree of one document. ``language`` None, or no grammar, means there is none."""

    def __init__(self, language: Language | None) -> None:
        loaded = grammar(language) if language else None
        self.language = language if loaded else None
        self._parser = Parser(loaded) if loaded else None
        self._tree: Tree | None = None
        self._source = b""
        self._current = False
        self._exact = False
        self._pending: list[ByteEdit] = []
        self._gave_up_at = 0  # length of the text that took too long
        self._was_quick: bool | None = None  # None before the first parse

    @property
    def wants_edits(self) -> bool:
        """Whether edits must be noted: there is a tree that they can be applied to."""
        return self._tree is not None

    def edited(self, edit: ByteEdit | None) -> None:
        """The text has changed, by ``edit`` if there is a tree to apply it to."""
        self._current = False
        if edit is not None and self._tree is not None:
            self._pending.append(edit)

    @property
    def source(self) -> bytes:
        """The bytes that the last tree is about; valid until the next edit.

        UTF-8 of the text with a lone ``\\r`` made ``\\n``: grammars know ``\\n`` as line end
        only, and the replacement is as long, so offsets hold.
        """
        return self._source

    def tree(self, text: str) -> Tree | None:
        """The tree of ``text``, parsed as far as needed; None where there cannot be one."""
        if self._parser is None or self._current:
            return self._tree
        self._current = True
        # It is at least as long in bytes.
        too_long = len(text) > MAX_PARSED_BYTES or len(text) > self._gave_up_at // 2 > 0
        if too_long or _is_too_deep(text, self.language):
            self._forget()
            return None
        source = self._source = _source_bytes(text)
        if len(source) > MAX_PARSED_BYTES:
            self._forget()
            return None
        old = self._tree
        if old is not None:
            for edit in self._pending:
                old.edit(
                    edit.start,
                    edit.old_end,
                    edit.new_end,
                    edit.start_point,
                    edit.old_end_point,
                    edit.new_end_point,
                )
        self._pending.clear()
        parsed = self._parse(self._parser, old, REPARSE_SECONDS if old else PARSE_SECONDS)
        self._exact = parsed is not None
        self._tree = parsed if parsed is not None else old
        self._gave_up_at = 0 if self._tree is not None else len(text)
        return self._tree

    @property
    def exact(self) -> bool:
        """Whether the last tree is that of its text, not an older one with shifted positions."""
        return self._exact

    def settle(self, text: str) -> None:
        """Parse without haste, if the last look at the tree had to do with an older one."""
        if self.tree(text) is None or self._exact or self._parser is None:
            return
        parsed = self._parse(self._parser, self._tree, PARSE_SECONDS)
        if parsed is not None:
            self._tree, self._exact = parsed, True

    def copy(self) -> SyntaxTree:
        """An independent tree in the same state; cheap, since nodes are shared."""
        other = SyntaxTree(self.language)
        other._tree = self._tree.copy() if self._tree is not None else None
        other._source = self._source
        other._current, other._exact = self._current, self._exact
        other._pending = list(self._pending)
        other._gave_up_at, other._was_quick = self._gave_up_at, self._was_quick
        return other

    def _parse(self, parser: Parser, old: Tree | None, seconds: float) -> Tree | None:
        """The tree of the source, or None if it takes more than ``seconds`` of work.

        Only a parse that reads by call-back can be stopped, but then each text of a node that
        a query compares is a call as well. So that is for parses that may take long.
        """
        source = self._source
        quick = self._was_quick
        if quick is None:
            quick = len(source) <= _SURELY_QUICK_BYTES
        begun = time.thread_time()  # not the clock: a busy machine makes no parse long
        if not quick:
            parsed = _parse_within(parser, source, old, seconds)
        elif old is None:
            parsed = parser.parse(source)
        else:
            parsed = parser.parse(source, old)
        self._was_quick = time.thread_time() - begun < _QUICK_SECONDS
        return parsed

    def _forget(self) -> None:
        self._tree = None
        self._source = b""
        self._pending.clear()


def _is_too_deep(text: str, language: Language | None) -> bool:
    """Whether a scanner that stores its indents in a fixed buffer might overflow it.

    tree-sitter-yaml 0.7.2 crashes at about 300 levels. A level takes a column of indentation
    or an indicator with a space after it, so only long lines can have many.
    """
    deepest = language.deepest if language else None
    if deepest is None:
        return False
    for match in re.finditer(rf"^.{{{deepest},}}", text, re.MULTILINE):
        line = match[0]
        indent = len(line) - len(line.lstrip(" "))
        if indent + len(_INDICATOR.findall(line)) > deepest:
            return True
    return False


def _source_bytes(text: str) -> bytes:
    source = encode_utf8(text)
    return _LONE_CR.sub(b"\n", source) if b"\r" in source else source


def _parse_within(parser: Parser, source: bytes, old: Tree | None, seconds: float) -> Tree | None:
    """A parse that is given up after ``seconds`` of processor time.

    Not of the clock: that others keep the machine busy makes no parse long.
    """
    deadline = time.thread_time() + seconds

    def too_late(_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > deadline

    reader = _Reader(source)
    try:
        if old is None:
            return parser.parse(reader, progress_callback=too_late)
        return parser.parse(reader, old, progress_callback=too_late)
    except ValueError:
        # Without a reset the parser would go on with this text when it is given another.
        parser.reset()
        log.debug("Gave up parsing a text of %d bytes", len(source))
        return None
    finally:
        reader.finish()


class _Reader:
    """A call-back that a parse reads a source by, and then nodes their own texts.

    The binding (up to 0.26.1) never lets go of what a parse is given: at each keystroke that
    would be nearly the whole text. So it is given views, which let go of the text themselves
    when the parse has finished; what stays is some 200 bytes for each of a few reads.
    """

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._whole = memoryview(source)
        self._views: list[memoryview] | None = []  # None once the parse has finished

    def finish(self) -> None:
        """The parse is over; the parser itself reads no more."""
        for view in self._views or ():
            view.release()
        self._whole.release()
        self._views = None

    def __call__(self, offset: int, _point: Point) -> memoryview | bytes:
        if self._views is None:
            return self._source[offset : offset + _NODE_BYTES]
        view = self._whole[offset:]
        self._views.append(view)
        return view


def byte_offset(lines: LineIndex, text: str, offset: int) -> tuple[int, tuple[int, int]]:
    """The byte offset and the tree-sitter point of a code point offset."""
    line = lines.line_of(offset)
    column = units_before(text[lines.start(line) : offset], "utf-8")
    return lines.byte_start(line) + column, (line, column)
