"""The text around a cursor, taken unit by unit within a token budget.

A ``Side`` is what lies before or after the cursor. It knows documents and token counts, and
neither syntax nor prompts. Text has ``\\n`` line ends and no byte order mark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from fimble_context.syntax.document import Document

__all__ = [
    "SUFFIX_SHARE",
    "Side",
    "TokenCounter",
    "after_cursor",
    "before_cursor",
    "count_both",
    "extend",
    "fill",
]

TokenCounter: TypeAlias = Callable[[Sequence[str]], list[int]]
"""Token counts of a batch of texts, in order."""

_CHARS_A_TOKEN = 5  # how much text to have counted for a budget at first: code has 3 to 4
SUFFIX_SHARE = 4  # the suffix gets one part in so many
_LONGEST_UNIT = 16  # characters a token of budget, beyond which a line is cut uncounted


@dataclass(slots=True)
class Side:
    """The text on one side of the cursor: units nearest first, the first ``used`` are taken.

    A unit is a line with the blank lines that follow it. Qwen's pre-tokenizer joins a line
    end with the blank lines after it and with nothing else across a line end, so the counts
    of units add up to the count of the whole.
    """

    source: Iterator[tuple[int, str]]  # where a unit starts in the document, and its text
    tail: bool  # which end of a unit is the nearer to the cursor: True for the prefix
    starts: list[int] = field(default_factory=list)
    units: list[str] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    used: int = 0
    tokens: int = 0
    exhausted: bool = False
    cut: bool = False

    @property
    def complete(self) -> bool:
        return self.exhausted and self.used == len(self.units) and not self.cut

    @property
    def text(self) -> str:
        taken = self.units[: self.used]
        return "".join(reversed(taken) if self.tail else taken)

    def fits(self, limit: int) -> bool:
        """Whether all of the side, as far as it has been counted, is within ``limit``."""
        return self.exhausted and not self.cut and sum(self.counts) <= limit

    def give_back(self, offset: int) -> None:
        """Do without the units taken that start before ``offset``; for the prefix."""
        while self.used > 0 and self.starts[self.used - 1] < offset:
            self.used -= 1
            self.tokens -= self.counts[self.used]

    def fetch(self, characters: int, longest: int) -> list[str]:
        """Read units from the document, about ``characters`` long together; the new ones."""
        new: list[str] = []
        while characters > 0 and not self.exhausted:
            start, unit = next(self.source, (0, None))
            if unit is None:
                self.exhausted = True
                break
            if len(unit) > longest:
                # No use counting all of a million-character line; nothing beyond it can fit.
                self.cut = self.exhausted = True
                if self.units or new:
                    break
                unit = self._clip(unit, longest)
            characters -= len(unit)
            new.append(unit)
            self.starts.append(start)
        self.units += new
        return new

    def take(self, limit: int) -> None:
        """Use further whole units while the side stays within ``limit`` tokens."""
        for count in islice(self.counts, self.used, None):
            if self.tokens + count > limit:
                return
            self.tokens += count
            self.used += 1

    def take_part(self, limit: int, count_tokens: TokenCounter) -> None:
        """Use as much of the nearest unit, which is over ``limit``, as fits."""
        unit, count = self.units[0], self.counts[0]
        for _ in range(8):
            # Aim a little low, so that the first or second try fits.
            length = min(len(unit) - 1, int(len(unit) * limit / count * 0.98))
            if length <= 0:
                return
            unit = self._clip(unit, length)
            (count,) = count_tokens([unit])
            if count <= limit:
                # What lies beyond the cut does not adjoin any more.
                self.units, self.counts = [unit], [count]
                self.used, self.tokens = 1, count
                self.cut = self.exhausted = True
                return

    def take_words(self, limit: int, count_tokens: TokenCounter, *, least: int = 0) -> None:
        """Use as many words of the next unit as fit; for what whole units leave of a small budget.

        Nothing beyond that unit can be taken after that. Takes nothing where less than ``least``
        tokens would be in use then.
        """
        room = limit - self.tokens
        if self.used >= len(self.units) or room <= 0:
            return
        unit = self.units[self.used]

        def tokens_of(length: int) -> int:
            length = self._word_boundary(unit, length)
            return count_tokens([self._clip(unit, length)])[0] if length else 0

        # Lengths are looked at where the search comes by: a unit may be a very long line.
        fitting = self._word_boundary(unit, bisect_right(range(1, len(unit)), room, key=tokens_of))
        if fitting == 0:
            return
        piece = self._clip(unit, fitting)
        (tokens,) = count_tokens([piece])
        # A longer text may have fewer tokens, but rarely.
        if tokens <= room and self.tokens + tokens >= least:
            self.cut_next(piece, tokens)

    def cut_next(self, piece: str, tokens: int) -> None:
        """Use a piece of the next unit, which is the last one then."""
        if self.tail:
            # Line ends are at its end, so what is cut off is as long as in the document.
            self.starts[self.used] += len(self.units[self.used]) - len(piece)
        self.units[self.used :], self.counts[self.used :] = [piece], [tokens]
        del self.starts[self.used + 1 :]
        self.used, self.tokens = self.used + 1, self.tokens + tokens
        self.cut = self.exhausted = True

    def _word_boundary(self, unit: str, length: int) -> int:
        """The largest length up to ``length`` at which no word is cut and no blank is left."""
        while length > 0:
            place = len(unit) - length if self.tail else length
            blank = unit[place if self.tail else place - 1].isspace()
            if not blank and not (_is_word(unit[place - 1]) and _is_word(unit[place])):
                break
            length -= 1
        return length

    def _clip(self, unit: str, length: int) -> str:
        return unit[-length:] if self.tail else unit[:length]


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def before_cursor(document: Document, offset: int) -> Side:
    """The text before ``offset``, nothing of it taken yet."""
    return Side(_units_before(document, offset), tail=True)


def after_cursor(document: Document, offset: int) -> Side:
    """The text after ``offset``, nothing of it taken yet."""
    return Side(_units_after(document, offset), tail=False)


def count_both(
    before: Side,
    after: Side,
    budget: int,
    count_tokens: TokenCounter,
    others: Sequence[str] = (),
    *,
    whole: bool = False,
) -> list[int]:
    """Have what a budget may need of both sides counted, and ``others``, in one call.

    The counts of ``others`` are the result. ``whole``: the suffix may need all of the budget.
    """
    wanted = ((before, budget), (after, budget if whole else budget // SUFFIX_SHARE))
    return _count(wanted, budget * _LONGEST_UNIT, count_tokens, others)


def fill(before: Side, after: Side, budget: int, count_tokens: TokenCounter) -> None:
    """Share ``budget`` tokens between two sides that have been counted."""
    share = budget // SUFFIX_SHARE
    extend(after, share, count_tokens)
    # A line that is over the suffix's share alone gets that share for a part of it.
    reserved = share if after.units and not after.used else after.tokens
    extend(before, budget - reserved, count_tokens)
    if before.units and not before.used:
        before.take_part(budget - reserved, count_tokens)
    extend(after, budget - before.tokens, count_tokens)
    if after.units and not after.used:
        after.take_part(budget - before.tokens, count_tokens)
    # A shorter line may still fit into what the suffix's last line left.
    extend(before, budget - after.tokens, count_tokens)


def extend(side: Side, limit: int, count_tokens: TokenCounter) -> None:
    """Take units within ``limit``; read and count more of them where too few were counted."""
    side.take(limit)
    while side.used == len(side.units) and side.tokens < limit and not side.exhausted:
        _count([(side, limit - side.tokens)], limit * _LONGEST_UNIT, count_tokens)
        side.take(limit)


def _count(
    wanted: Sequence[tuple[Side, int]],
    longest: int,
    count_tokens: TokenCounter,
    others: Sequence[str] = (),
) -> list[int]:
    """Read and count text for so many tokens on each side, and other texts, in one call."""
    # At least one unit, so that a side knows whether there was anything to take.
    news = [side.fetch(tokens * _CHARS_A_TOKEN + 1, max(longest, 1)) for side, tokens in wanted]
    texts = [*others, *(unit for new in news for unit in new)]
    counts = iter(count_tokens(texts) if texts else ())
    of_others = list(islice(counts, len(others)))
    for (side, _), new in zip(wanted, news, strict=True):
        side.counts += islice(counts, len(new))
    return of_others


def _units_before(document: Document, offset: int) -> Iterator[tuple[int, str]]:
    """The units that end at ``offset``, nearest first."""
    end = offset
    line = document.line_of(offset)
    while line > 0:
        start = document.line_start(line)
        content = document.text[start : min(end, document.line_end(line))]
        if content and not content.isspace():  # a blank line belongs to the one above
            yield start, _normalised(document, start, end)
            end = start
        line -= 1
    if end > 0:
        yield 0, _normalised(document, 0, end)


def _units_after(document: Document, offset: int) -> Iterator[tuple[int, str]]:
    """The units that start at ``offset``, nearest first."""
    start = offset
    line = document.line_of(offset) + 1
    while line < document.line_count:
        end = document.line_start(line)
        following = document.text[end : document.line_end(line)]
        if following and not following.isspace():
            yield start, _normalised(document, start, end)
            start = end
        line += 1
    if start < len(document.text):
        yield start, _normalised(document, start, len(document.text))


def _normalised(document: Document, start: int, end: int) -> str:
    text = document.text[start:end]
    if start == 0:
        text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
