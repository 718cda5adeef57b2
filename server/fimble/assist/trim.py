"""From what the model said to what is inserted: trimmed by parsing, fitted to the document.

What repeats the text right of the cursor or the lines below goes where the document then
parses no worse; brackets are neither doubled nor lost. Nothing right of the cursor is
rewritten. Only ends are cut off: what rewrites a text is in ``manner``.
"""

from __future__ import annotations

from collections.abc import Iterator

from fimble.assist.brackets import unmatched_closer
from fimble.assist.cleaning import before_control_tokens, before_fence, without_loop
from fimble.assist.fit import badness
from fimble.assist.manner import Manner
from fimble.assist.place import Place
from fimble.assist.stops import Stops, is_closing_line

__all__ = ["trim"]

#: Lines of the document below the cursor that an answer may repeat.
_LINES_BELOW = 12
#: Beginnings of an answer that are parsed at most: each costs a look at the tree.
_MOST_TRIED = 6


def trim(answer: str, place: Place, *, continued: bool = False, complete: bool = True) -> str:
    """What to insert at ``place``; empty where nothing of the answer is of use.

    ``complete`` says that the answer ended by itself: else its last line is a fragment, and
    left out where there is another. ``continued``: see ``Stops``; the beginning of such a text
    is in the document, so it has the document's manner already.
    """
    text = answer if continued else Manner(place).of(answer)
    text = before_control_tokens(text, place.literals)
    text = before_fence(text, place)
    end = Stops(place, continued=continued).end(text, complete=True)
    if end is not None:
        text = text[:end]
    elif not complete and "\n" in text.strip("\n"):
        text = text[: text.rindex("\n")]
    text = without_loop(text)
    if place.one_line:
        text = _fitted_in_line(text, place)
    else:
        text = _without_lines_below(text.rstrip(), place)
        text = _without_extra_closers(text, place).rstrip()
    if not text.strip():
        return ""
    return text if place.newline == "\n" else text.replace("\n", place.newline)


def _fitted_in_line(text: str, place: Place) -> str:
    """``text`` without an end that repeats the beginning of what is right of the cursor."""
    now: int | None = None
    for kept, strict in _shorter(text, place):
        if now is None:
            now = badness(place, text)
        then = badness(place, kept)
        if then < now or (then == now and not strict):
            return kept
    return text


def _shorter(text: str, place: Place) -> Iterator[tuple[str, bool]]:
    """Beginnings of ``text`` to try, and whether they must parse better rather than no worse."""
    after = place.after.rstrip()
    tried = 0
    for length in range(min(len(text), len(after)), 0, -1):
        overlap = after[:length]
        # A few letters in common are chance; punctuation, or all there is, is repetition.
        if overlap != after and any(character.isalnum() for character in overlap):
            continue
        if text.endswith(overlap) and tried < _MOST_TRIED:
            tried += 1
            yield text[:-length], False
    # All of the rest of the line, with more behind it.
    at = text.find(after) if len(after) > 1 else -1
    if at >= 0:
        yield text[:at], False
    closer = unmatched_closer(text)
    if closer is not None and after.startswith(text[closer]):
        yield text[:closer], True


def _without_lines_below(text: str, place: Place) -> str:
    """``text`` without an end that repeats the lines below the cursor."""
    below = _lines_below(place)
    if not below or not text.strip():
        return text
    lines = text.split("\n")
    first = 0 if not place.before.strip() else 1
    for start in range(first, len(lines)):
        echo = [line.rstrip() for line in lines[start:] if line.strip()]
        if not lines[start].strip() or not _repeats(echo, below):
            continue
        kept = "\n".join(lines[:start]).rstrip()
        if badness(place, kept) <= badness(place, text):
            return kept
    return text


def _repeats(lines: list[str], below: list[str]) -> bool:
    """Whether ``lines`` begin as the document goes on: to their end, or for two lines."""
    common = 0
    for ours, theirs in zip(lines, below, strict=False):
        # The last line may have been cut off, or be at another depth if it is the first.
        if ours != theirs and not (common == 0 and ours.strip() == theirs.strip()):
            break
        common += 1
    return common > 0 and (common == len(lines) or common >= 2)


def _lines_below(place: Place) -> list[str]:
    document = place.document
    line = document.line_of(place.offset)
    found = []
    for number in range(line + 1, min(document.line_count, line + 1 + 4 * _LINES_BELOW)):
        text = document.line_text(number).rstrip()
        if text:
            found.append(text)
        if len(found) == _LINES_BELOW:
            break
    return found


def _without_extra_closers(text: str, place: Place) -> str:
    """``text`` without closing lines or brackets at its end that the document has already."""
    if not text.strip() or not place.code:
        return text
    for kept in _without_last_closers(text):
        if badness(place, kept) < badness(place, text):
            return kept
    return text


def _without_last_closers(text: str) -> Iterator[str]:
    lines = text.split("\n")
    count = 0
    while len(lines) > 1 and is_closing_line(lines[-1]) and count < _MOST_TRIED:
        lines.pop()
        count += 1
        yield "\n".join(lines).rstrip()
    closer = unmatched_closer(text)
    if closer is not None:
        yield text[:closer].rstrip()
