"""What goes into a prompt: ordered sections with a reason and a token count, in a budget.

Gets a document, an offset and a function that counts tokens. Knows no model and no prompt
format: how sections are laid out is the caller's affair. Text in sections has ``\\n`` line
ends and no byte order mark, whatever the document has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from fimble_context.document import Document

__all__ = ["Context", "LeftOut", "Section", "TokenCounter", "assemble"]

TokenCounter: TypeAlias = Callable[[Sequence[str]], list[int]]
"""Token counts of a batch of texts, in order. One call an assembly in the usual case."""

_CHARS_A_TOKEN = 5  # how much text to have counted for a budget at first: code has 3 to 4
_LONGEST_UNIT = 16  # characters a token of budget, beyond which a line is cut uncounted


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a prompt. ``kind`` is ``prefix`` or ``suffix`` for the text around the cursor."""

    path: str
    kind: str
    reason: str
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that could have been in the prompt, and why it is not."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """The sections of a prompt in their order; prefix and suffix are always the last two."""

    sections: tuple[Section, ...]
    budget_tokens: int
    left_out: tuple[LeftOut, ...]


def assemble(
    document: Document, offset: int, *, budget: int, count_tokens: TokenCounter
) -> Context:
    """The text around ``offset`` (code points, clamped) within ``budget`` tokens.

    The suffix gets a quarter of the budget; what one side does not need goes to the other.
    Cuts are at line ends; only a line that alone is over its side's budget is cut inside.
    """
    offset = _cursor(document, offset)
    before = _Side(_units_before(document, offset), tail=True)
    after = _Side(_units_after(document, offset), tail=False)
    _fill(before, after, max(budget, 0), count_tokens)
    sections = (
        Section(document.path, "prefix", "text before the cursor", before.tokens, before.text),
        Section(document.path, "suffix", "text after the cursor", after.tokens, after.text),
    )
    left_out = [
        LeftOut(document.path, f"text {where} is over the budget")
        for side, where in ((before, "further up"), (after, "further down"))
        if not side.complete
    ]
    return Context(sections, budget, tuple(left_out))


def _cursor(document: Document, offset: int) -> int:
    """``offset`` within the text, not between ``\\r`` and ``\\n``."""
    offset = min(max(offset, 0), len(document.text))
    return min(offset, document.line_end(document.line_of(offset)))


@dataclass(slots=True)
class _Side:
    """The text on one side of the cursor: units nearest first, the first ``used`` are taken.

    A unit is a line with the blank lines that follow it. Qwen's pre-tokenizer joins a line
    end with the blank lines after it and with nothing else across a line end, so the counts
    of units add up to the count of the whole.
    """

    source: Iterator[str]
    tail: bool  # which end of a unit is the nearer to the cursor: True for the prefix
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

    def fetch(self, characters: int, longest: int) -> list[str]:
        """Read units from the document, about ``characters`` long together; the new ones."""
        new: list[str] = []
        while characters > 0 and not self.exhausted:
            unit = next(self.source, None)
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

    def _clip(self, unit: str, length: int) -> str:
        return unit[-length:] if self.tail else unit[:length]


def _fill(before: _Side, after: _Side, budget: int, count_tokens: TokenCounter) -> None:
    share = budget // 4
    _count((before, budget), (after, share), longest=budget * _LONGEST_UNIT, count=count_tokens)
    _extend(after, share, count_tokens)
    # A line that is over the suffix's share alone gets that share for a part of it.
    reserved = share if after.units and not after.used else after.tokens
    _extend(before, budget - reserved, count_tokens)
    if before.units and not before.used:
        before.take_part(budget - reserved, count_tokens)
    _extend(after, budget - before.tokens, count_tokens)
    if after.units and not after.used:
        after.take_part(budget - before.tokens, count_tokens)
    # A shorter line may still fit into what the suffix's last line left.
    _extend(before, budget - after.tokens, count_tokens)


def _extend(side: _Side, limit: int, count_tokens: TokenCounter) -> None:
    """Take units within ``limit``; read and count more of them where too few were counted."""
    side.take(limit)
    while side.used == len(side.units) and side.tokens < limit and not side.exhausted:
        missing = limit - side.tokens
        _count((side, missing), longest=limit * _LONGEST_UNIT, count=count_tokens)
        side.take(limit)


def _count(*wanted: tuple[_Side, int], longest: int, count: TokenCounter) -> None:
    """Read and count text for so many tokens on each side, in one call of the counter."""
    # At least one unit, so that a side knows whether there was anything to take.
    news = [side.fetch(tokens * _CHARS_A_TOKEN + 1, max(longest, 1)) for side, tokens in wanted]
    texts = [unit for new in news for unit in new]
    counts = iter(count(texts) if texts else ())
    for (side, _), new in zip(wanted, news, strict=True):
        side.counts += islice(counts, len(new))


def _units_before(document: Document, offset: int) -> Iterator[str]:
    """The units that end at ``offset``, nearest first."""
    end = offset
    line = document.line_of(offset)
    while line > 0:
        start = document.line_start(line)
        content = document.text[start : min(end, document.line_end(line))]
        if content and not content.isspace():  # a blank line belongs to the one above
            yield _normalised(document, start, end)
            end = start
        line -= 1
    if end > 0:
        yield _normalised(document, 0, end)


def _units_after(document: Document, offset: int) -> Iterator[str]:
    """The units that start at ``offset``, nearest first."""
    start = offset
    line = document.line_of(offset) + 1
    while line < document.line_count:
        end = document.line_start(line)
        following = document.text[end : document.line_end(line)]
        if following and not following.isspace():
            yield _normalised(document, start, end)
            start = end
        line += 1
    if start < len(document.text):
        yield _normalised(document, start, len(document.text))


def _normalised(document: Document, start: int, end: int) -> str:
    text = document.text[start:end]
    if start == 0:
        text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
