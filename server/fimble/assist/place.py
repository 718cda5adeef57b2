"""Where a suggestion goes: the line on both sides of the cursor, and how long it may be.

Whether one line or a block is wanted follows from syntax: a block after a header or in an
empty body, a statement where one may begin, and one line anywhere else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from fimble.assist.brackets import indent_width, openers_around
from fimble.engine.protocol import CONTROL_TOKENS
from fimble_context.syntax import Document, Language, text_kind

__all__ = ["Multiline", "Place", "Shape", "place_of"]

Multiline = Literal["auto", "always", "never"]
#: ``line``: up to the line's end. ``statement``: one statement with what belongs to it.
#: ``body``: all of the body that the header at or above the cursor begins.
Shape = Literal["line", "statement", "body"]

#: Languages whose blocks are told by indentation.
_INDENTED = frozenset({"python", "yaml"})
_PYTHON_HEADER = re.compile(
    r"\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b"
)
#: A line that ends so begins a body, in the languages that have such words.
_WORD_OPENER = re.compile(r"\b(?:then|do|else|begin|repeat)\s*(?:\|[^|]*\|)?$|(?<![=!<>])=>$")
#: A line that begins so begins a body, in languages whose bodies end with a word.
_WORD_HEADER = re.compile(
    r"\s*(?:(?:local|private|protected|public)\s+)?"
    r"(?:def|class|module|function|if|elsif|elseif|else|unless|while|until|for|case|when|begin"
    r"|rescue|ensure|repeat)\b"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in ``document`` as it was when the place was taken: it is not edited after.

    ``before`` and ``after`` are the parts of the cursor's line. ``literals`` are the
    spellings of control tokens that the document itself contains. ``code`` is False in a
    comment or a string. ``header_line`` is the line whose body is wanted, for ``body``.
    """

    document: Document
    offset: int
    before: str
    after: str
    newline: str
    literals: frozenset[str]
    code: bool
    shape: Shape
    header_line: int | None = None

    @property
    def one_line(self) -> bool:
        """Whether there is something right of the cursor, so that no new line may start."""
        return bool(self.after.strip())

    @property
    def language(self) -> Language | None:
        """The language whose grammar parses the document; None for plain text."""
        return self.document.syntax_language


def place_of(document: Document, offset: int, multiline: Multiline = "auto") -> Place:
    """The place of ``offset`` (code points) in ``document``, which may be edited afterwards."""
    # Parsed here, so that what an edit left whole is parsed once and not by each copy.
    _ = document.tree
    document = document.copy()
    line = document.line_of(offset)
    start, end = document.line_start(line), document.line_end(line)
    offset = min(offset, end)
    text = document.text
    before, after = text[start:offset], text[offset:end]
    code = text_kind(document, offset) == "code"
    header = _header_line(document, line, before) if code else None
    return Place(
        document=document,
        offset=offset,
        before=before,
        after=after,
        newline=document.newline,
        literals=_literals(text),
        code=code,
        shape=_shape(document, offset, before, after, code, header, multiline),
        header_line=header,
    )


def _shape(
    document: Document,
    offset: int,
    before: str,
    after: str,
    code: bool,
    header: int | None,
    multiline: Multiline,
) -> Shape:
    if after.strip() or multiline == "never":
        return "line"
    if header is not None:
        return "body"
    if multiline == "always":
        return "statement"
    if not code or before.strip():
        return "line"
    return "line" if _in_expression(document, offset) else "statement"


def _in_expression(document: Document, offset: int) -> bool:
    """Whether a blank line is inside brackets that hold no statements."""
    openers = openers_around(document, offset)
    language = document.syntax_language
    if language is not None and language.id in _INDENTED:
        return bool(openers)
    return openers.endswith(("(", "["))


def _header_line(document: Document, line: int, before: str) -> int | None:
    """The line whose body begins at the cursor and is empty so far; None where there is none."""
    number, text = line, before
    if not before.strip():
        number = line - 1
        # A docstring or a comment is no body yet.
        while number >= 0 and _is_no_code(document, number):
            number -= 1
        text = document.line_text(number)
    if number < 0 or not _is_header(document, number, text):
        return None
    below = _next_line(document, line)
    if below is not None and indent_width(below) > indent_width(text):
        return None  # there is a body already
    return number


def _is_no_code(document: Document, line: int) -> bool:
    """Whether a line is blank, or all comment or string."""
    text = document.line_text(line)
    stripped = text.strip()
    if not stripped:
        return True
    start = document.line_start(line) + len(text) - len(text.lstrip())
    ends = (start + 1, start + len(stripped) - 1)
    return len(stripped) > 1 and all(text_kind(document, end) != "code" for end in ends)


def _next_line(document: Document, line: int) -> str | None:
    for number in range(line + 1, document.line_count):
        text = document.line_text(number)
        if text.strip():
            return text
    return None


def _is_header(document: Document, number: int, text: str) -> bool:
    language = document.syntax_language
    stripped = text.rstrip()
    if language is None or not stripped:
        return False
    if text_kind(document, document.line_start(number) + len(stripped) - 1) != "code":
        return False
    if language.id == "python":
        return stripped.endswith(":") and _PYTHON_HEADER.match(text) is not None
    if language.id in _INDENTED:
        return stripped.endswith(":")
    if stripped.endswith("{") or _WORD_OPENER.search(stripped):
        return True
    return language.closing == "end" and _WORD_HEADER.match(text) is not None


def _literals(text: str) -> frozenset[str]:
    if "<|" not in text:  # nine searches of a long document less
        return frozenset()
    return frozenset(token for token in CONTROL_TOKENS.values() if token in text)
