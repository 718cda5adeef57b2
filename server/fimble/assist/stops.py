"""Where an answer ends while it is still being made: by syntax, and never by likeness.

One line ends at its end. A statement ends where the next one begins, a body where the node
that its header began would end. For plain text, and where the tree cannot tell, indentation
decides. What is decided stays: more text never moves an end that was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from fimble.assist.brackets import closers_for, indent_width, openers_around, unmatched_closer
from fimble.assist.place import Place
from fimble_context.syntax import Document, Edit, cut_points, text_kind

__all__ = ["Stops", "in_long_string", "is_closing_line"]

#: Enough of a line to know its first word: "el" may be "else" yet.
_FIRST_WORD = re.compile(r"[ \t]*(?:\w+[^\w\n]|\w+\n|[^\w\s])")
_CLOSING_WORD = re.compile(r"\s*(?:[)\]}]|(?:end|fi|done|esac)\b)")
_LONG_QUOTES = ('"""', "'''", "`")


def is_closing_line(line: str) -> bool:
    """Whether a line begins by closing what lines above it opened."""
    return _CLOSING_WORD.match(line) is not None


class Stops:
    """The end of one answer at ``place``. ``end`` is asked again whenever the answer grew.

    ``continued`` is for text that begins with the end of a line that is whole already: the
    one line asked for is then the next one.

    ``goes_on`` is for an answer that is made beyond the one line that is asked for. It is
    asked once, with the answer up to the end of its first line that is not blank, whether
    that calls for more below; then the answer ends with its statement.
    """

    def __init__(
        self,
        place: Place,
        *,
        continued: bool = False,
        goes_on: Callable[[str], bool] | None = None,
    ) -> None:
        self._place = place
        self._goes_on = goes_on
        self._beyond: Stops | None = None
        self._continued = continued and not place.one_line
        self._found: int | None = None
        self._looked_at = 0  # the line start that was judged last
        self._openers: str | None = None

    def end(self, answer: str, *, complete: bool = False) -> int | None:
        """Where ``answer`` (``\\n`` line ends) ends, in characters; None while it goes on.

        ``complete`` says that no more will come.
        """
        if self._found is None:
            self._found = self._look(answer, complete)
        return self._found

    def _look(self, answer: str, complete: bool) -> int | None:
        if self._place.shape == "line":
            return self._look_beyond_line(answer, complete)
        position = answer.find("\n", max(0, self._looked_at - 1)) + 1
        while position:
            following = answer.find("\n", position)
            line = answer[position : None if following < 0 else following + 1]
            if not complete and following < 0 and not _FIRST_WORD.match(line):
                return None
            if position > self._looked_at and line.strip():
                found = self._judge(answer, position, following, complete)
                if found is not None:
                    return found
                if following < 0 and not complete and is_closing_line(line):
                    return None  # its end belongs to it
                self._looked_at = position
            position = following + 1
        return None

    def _look_beyond_line(self, answer: str, complete: bool) -> int | None:
        if self._beyond is not None:
            return self._beyond.end(answer, complete=complete)
        end = self._line_end(answer)
        if end is None or self._goes_on is None or not self._goes_on(answer[:end]):
            return end
        self._beyond = Stops(replace(self._place, shape="statement"))
        return self._beyond.end(answer, complete=complete)

    def _line_end(self, answer: str) -> int | None:
        start = 0
        if self._continued or self._goes_on is not None:
            start = len(answer) - len(answer.lstrip())
            if start == len(answer):
                return None
        found = answer.find("\n", start)
        return None if found < 0 else found

    def _judge(self, answer: str, position: int, following: int, complete: bool) -> int | None:
        """Whether the line at ``position`` is beyond the end: where the end is, or None."""
        if in_long_string(answer[:position]):
            return None
        line_end = len(answer) if following < 0 else following
        closer = unmatched_closer(answer[:line_end]) if self._place.code else None
        if closer is not None and closer >= position:
            # It closes what was opened before the cursor: that is the end of the node.
            return line_end if following >= 0 or complete else None
        lower = self._is_lower(answer, position, line_end)
        if lower and is_closing_line(answer[position:line_end]):
            return line_end if following >= 0 or complete else None
        if self._place.language is None:
            return _first_dedent(answer[:line_end], self._place.before, position)
        tried = self._with(answer[:line_end])
        found = self._sibling(tried, position)
        if found is not None:
            return found
        at = self._place.offset + position
        if lower and text_kind(tried, _first_character(tried, at)) == "code":
            return position
        return None

    def _is_lower(self, answer: str, position: int, line_end: int) -> bool:
        """Whether a line is indented less than the answer's first line, or than its body."""
        first = self._place.before + answer.partition("\n")[0]
        if not first.strip():
            first = next((line for line in answer.split("\n") if line.strip()), first)
        return indent_width(answer[position:line_end]) < indent_width(first)

    def _with(self, answer: str) -> Document:
        """The document with ``answer`` at the place, and what is open there closed after it.

        Line ends of the answer stay ``\\n``, so that offsets into it hold.
        """
        place = self._place
        document = place.document.copy()
        language = place.language
        if language is not None and language.closing == "end":
            document.apply(Edit(place.offset, place.offset, answer + "\n"))
            return document
        if self._openers is None:
            self._openers = openers_around(place.document, place.offset)
        rest = "\n" + closers_for(self._openers)
        document.apply(Edit(place.offset, len(document.text), answer + rest))
        return document

    def _sibling(self, tried: Document, position: int) -> int | None:
        """The offset into the answer at which the next statement begins, up to ``position``."""
        place = self._place
        line = place.document.line_of(place.offset)
        own = line if place.header_line is None else place.header_line
        if place.header_line is None and not self._first_line(tried, own).strip():
            # The cursor's line is whole, or blank: the statement is the one below.
            own += 1
            while own < tried.line_count - 1 and not tried.line_text(own).strip():
                own += 1
        start = tried.line_start(own)
        width = indent_width(tried.line_text(own))
        # To the line's end: a statement that begins in the line counts only if it is in reach.
        last = tried.line_end(tried.line_of(place.offset + position))
        cuts = cut_points(tried, start, last)
        at_own = [cut.depth for cut in cuts if cut.offset == start]
        if not at_own and place.header_line is not None:
            return self._indented_sibling(tried, cuts_from=own, width=width, position=position)
        if not at_own:
            return None
        depth = min(at_own)
        for cut in cuts:
            beyond = cut.offset > max(place.offset, tried.line_end(own))
            if not beyond or cut.depth > depth or cut.offset > place.offset + position:
                continue
            # A comment at a block's end may lie outside of it in the tree.
            if indent_width(tried.line_text(tried.line_of(cut.offset))) <= width:
                return cut.offset - place.offset
        return None

    def _first_line(self, tried: Document, line: int) -> str:
        """What the answer put into the cursor's line."""
        return tried.text[self._place.offset : tried.line_end(line)]

    def _indented_sibling(
        self, tried: Document, *, cuts_from: int, width: int, position: int
    ) -> int | None:
        """For a header that begins no statement ("else:", "} else {"): the next line as deep."""
        at = self._place.offset + position
        line = tried.line_text(tried.line_of(at))
        if indent_width(line) > width or is_closing_line(line):
            return None
        if text_kind(tried, _first_character(tried, at)) != "code":
            return None
        return position if tried.line_of(at) > cuts_from else None


def in_long_string(answer: str) -> bool:
    """Whether a string of several lines is open at the end of ``answer``.

    While it is open it does not parse, and its lines look like code.
    """
    return any(answer.count(mark) % 2 for mark in _LONG_QUOTES)


def _first_character(document: Document, offset: int) -> int:
    line = document.line_of(offset)
    text = document.line_text(line)
    return document.line_start(line) + len(text) - len(text.lstrip())


def _first_dedent(answer: str, before: str, position: int) -> int | None:
    """By indentation alone: whether the line at ``position`` is beyond the block's end.

    It is if it is indented less than the first line, or, once the block went deeper, no
    deeper than that after a blank line: the next definition.
    """
    base = indent_width(before + answer.partition("\n")[0])
    above = answer[:position].split("\n")[1:-1]
    deeper = any(line.strip() and indent_width(line) > base for line in above)
    blank = bool(above) and not above[-1].strip()
    indent = indent_width(answer[position:])
    if indent < base or (deeper and blank and indent <= base):
        return position
    return None
