"""From what the model said to what is inserted. Works on text alone; knows no syntax.

A suggestion inside a line is one line; at the end of a line it may be a block, which ends
where its lines dedent. Where the suggestion's end repeats what stands right of the cursor,
it is removed if the brackets of the line balance no worse without it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fimble.engine.protocol import CONTROL_TOKENS
from fimble_context.document import Document

__all__ = ["Place", "block_end", "place_of", "trim"]

_OPENING = "([{"
_CLOSING = ")]}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a suggestion goes: the line on both sides of the cursor, and the document's ways.

    ``literals`` are the spellings of control tokens that the document itself contains.
    """

    before: str
    after: str
    newline: str
    literals: frozenset[str]

    @property
    def one_line(self) -> bool:
        """Whether there is something right of the cursor, so that no new line may start."""
        return bool(self.after.strip())


def place_of(document: Document, offset: int) -> Place:
    """The place of ``offset`` (code points) in ``document``."""
    line = document.line_of(offset)
    start, end = document.line_start(line), document.line_end(line)
    text = document.text
    return Place(
        before=text[start : min(offset, end)],
        after=text[offset:end],
        newline=document.newline,
        literals=_literals(text),
    )


def _literals(text: str) -> frozenset[str]:
    if "<|" not in text:  # nine searches of a long document less
        return frozenset()
    return frozenset(token for token in CONTROL_TOKENS.values() if token in text)


def trim(answer: str, place: Place) -> str:
    """What to insert at ``place``; empty where nothing of the answer is of use."""
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    text = _before_control_tokens(text, place.literals)
    if place.one_line:
        text = _without_overlap(text.partition("\n")[0], place)
    else:
        end = block_end(text, place.before)
        text = (text if end is None else text[:end]).rstrip()
    if not text.strip():
        return ""
    return text if place.newline == "\n" else text.replace("\n", place.newline)


def block_end(answer: str, before: str) -> int | None:
    """Where a block ends that starts after ``before`` on its line; None while it goes on.

    It ends before the first line that is indented less than its own first line (with what
    is left of the cursor), and, once it went deeper, before a line that is not deeper and
    follows a blank one: the next definition. The answer may grow: what is decided stays.
    """
    base = _indent(before + answer.partition("\n")[0])
    deeper = blank = False
    position = answer.find("\n") + 1
    while position:
        following = answer.find("\n", position)
        line = answer[position : None if following < 0 else following]
        if line.strip():
            indent = _indent(line)
            if indent < base or (deeper and blank and indent <= base):
                return position
            deeper = deeper or indent > base
            blank = False
        else:
            blank = True
        position = following + 1
    return None


def _indent(line: str) -> int:
    """Columns of leading white space; a tab goes to the next multiple of 4."""
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _before_control_tokens(text: str, literals: frozenset[str]) -> str:
    """``text`` up to the first spelled control token that the document does not have itself.

    Our engine stops at control tokens; other servers may spell them out.
    """
    ends = [text.find(token) for token in CONTROL_TOKENS.values() if token not in literals]
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def _without_overlap(text: str, place: Place) -> str:
    """``text`` without an end that repeats the beginning of what is right of the cursor."""
    after = place.after.rstrip()
    for length in range(min(len(text), len(after)), 0, -1):
        overlap = after[:length]
        # A few letters in common are chance; punctuation, or all there is, is repetition.
        if overlap != after and any(character.isalnum() for character in overlap):
            continue
        if text.endswith(overlap):
            kept = text[:-length]
            if _imbalance(place, kept) <= _imbalance(place, text):
                return kept
    return text


def _imbalance(place: Place, text: str) -> int:
    """Brackets of the line, with ``text`` inserted, that have no partner."""
    unmatched = 0
    open_brackets: list[str] = []
    for character in place.before + text + place.after:
        if character in _OPENING:
            open_brackets.append(character)
        elif character in _CLOSING:
            partner = _OPENING[_CLOSING.index(character)]
            if open_brackets and open_brackets[-1] == partner:
                open_brackets.pop()
            else:
                unmatched += 1
    return unmatched + len(open_brackets)
