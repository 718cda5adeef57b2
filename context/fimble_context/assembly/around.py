"""The cursor's own file in a prompt: skeleton, prefix and suffix within a limit.

Knows one document. What else a prompt holds is known only by what it leaves of the budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fimble_context.assembly.sections import LeftOut, Section
from fimble_context.assembly.skeleton import Piece, cut_to_syntax, pieces
from fimble_context.assembly.window import (
    SUFFIX_SHARE,
    Side,
    TokenCounter,
    after_cursor,
    before_cursor,
    count_both,
    extend,
    fill,
)
from fimble_context.syntax.document import Document

__all__ = ["Around", "Begin"]

_SKELETON_SHARE = 5  # the skeleton gets at most one part of the budget in so many
_SPARE = 40
_WASTED_AT_MOST = 34  # one part of the budget in so many may stay unused
_SMALLEST_FILLED = 256  # tokens of budget below which a cut within a line says too little
_SHORTEST = 100  # tokens of budget below which a skeleton would only take room from the text
_CHARS_A_TOKEN = 6  # of a file that might fit whole
_LEAST_SUFFIX = 6  # one part of the limit in so many; with less, the prefix is cut anew


@dataclass(frozen=True, slots=True)
class Begin:
    """Where the prefix of an earlier prompt began, and the skeleton in front of it.

    It holds while the text above ``start`` is as it was in ``text``.
    """

    start: int
    text: str
    skeleton: tuple[Section, ...]


class Around:
    """The text around one cursor. Count first, then fill."""

    def __init__(
        self, document: Document, offset: int, budget: int, *, skeleton: bool, path: str = ""
    ) -> None:
        """``path`` is what sections name; the document's own where it is empty."""
        self._document = document
        self.path = path or document.path
        self._offset = offset
        self._budget = budget
        self._before = before_cursor(document, offset)
        self._after = after_cursor(document, offset)
        # A byte is a token at most, so a text that short is never cut.
        self._wanted = (
            skeleton and budget >= _SHORTEST and document.byte_of(len(document.text)) > budget
        )
        self._pieces: list[Piece] | None = None if self._wanted else []
        self._counted: list[tuple[Piece, int]] = []
        self._sections: list[Section] = []

    def count(
        self, count_tokens: TokenCounter, others: Sequence[str], begin: Begin | None = None
    ) -> list[int]:
        """Have everything counted in one call; the counts of ``others``.

        With ``begin``, its skeleton is counted on, and none is made before it proves useless.
        """
        if begin is None or not self._still_begins(begin):
            # A signature of less than eight tokens is rare, so more of them would hardly fit.
            most = max(10, self._budget // _SKELETON_SHARE // 8)
            self._pieces = pieces(self._document, self._offset, most) if self._wanted else []
        short = self._pieces or []
        texts = [*(piece.text for piece in short), *others]
        whole = len(self._document.text) <= self._budget * _CHARS_A_TOKEN
        counts = count_both(
            self._before, self._after, self._budget, count_tokens, texts, whole=whole
        )
        self._counted = list(zip(short, counts, strict=False))
        return counts[len(short) :]

    @property
    def whole(self) -> int | None:
        """The tokens of all of the file, if that may fit into the budget."""
        if not (self._before.fits(self._budget) and self._after.fits(self._budget)):
            return None
        total = sum(self._before.counts) + sum(self._after.counts)
        return total if total <= self._budget else None

    @property
    def start(self) -> int:
        """Where the prefix begins in the document."""
        before = self._before
        return before.starts[before.used - 1] if before.used else self._offset

    @property
    def end(self) -> int:
        """Where the suffix ends in the document; not before the last unit's beginning."""
        after = self._after
        if not after.used:
            return self._offset
        whole = after.used < len(after.starts)
        return after.starts[after.used] if whole else after.starts[-1] + len(after.units[-1])

    def begin(self) -> Begin:
        """For ``fill`` of the next keystroke."""
        skeleton = tuple(item for item in self._sections if item.kind == "skeleton")
        return Begin(self.start, self._document.text, skeleton)

    def fill(self, limit: int, count_tokens: TokenCounter, begin: Begin | None = None) -> None:
        """Take text within ``limit`` tokens, from where ``begin`` says if that still holds."""
        if begin is not None and self._fill_from(begin, limit, count_tokens):
            return
        if self._pieces is None:
            self._pieces = pieces(self._document, self._offset)
            counts = count_tokens([piece.text for piece in self._pieces])
            self._counted = list(zip(self._pieces, counts, strict=True))
        before, after, counted = self._before, self._after, self._counted
        if before.fits(limit - min(sum(after.counts), limit // SUFFIX_SHARE)):
            counted = []
        reserve = min(sum(tokens for _, tokens in counted), limit // _SKELETON_SHARE)
        fill(before, after, limit - reserve, count_tokens)
        if before.used and not before.complete and not before.cut:
            before.give_back(cut_to_syntax(self._document, self.start, self._offset))
        self._sections = self._skeleton(counted, reserve)
        extend(after, after.tokens + limit - self.tokens, count_tokens)
        self._regrow(limit, counted, count_tokens)
        self._use_up(limit, count_tokens, (after, before))

    def _use_up(self, limit: int, count_tokens: TokenCounter, sides: tuple[Side, ...]) -> None:
        """Where lines are too long for what is left of a small budget, take a part of one.

        Where no suffix can give way to what is typed, a little stays free for that if it can.
        """
        if self._budget < _SMALLEST_FILLED:
            return
        enough = limit - limit // _WASTED_AT_MOST
        for side in sides:
            spare = limit // _SPARE if side is self._before and self._after.complete else 0
            for most, least in ((limit - spare, enough), (limit, 0)):
                if self.tokens < enough and not side.complete:
                    others = self.tokens - side.tokens
                    side.take_words(most - others, count_tokens, least=least - others)

    def _regrow(
        self, limit: int, counted: list[tuple[Piece, int]], count_tokens: TokenCounter
    ) -> None:
        """Where all of the suffix is there and room is left, let the prefix have it.

        A little stays free, so that some typing goes by before the prefix is cut anew.
        """
        before = self._before
        least = limit - limit // _WASTED_AT_MOST
        for spare in (limit // _SPARE, 0, 0):
            if self.tokens >= least or before.complete:
                return
            skeleton = limit - before.tokens - self._after.tokens
            extend(before, before.tokens + limit - spare - self.tokens, count_tokens)
            # Other pieces are above now; they get what those before got.
            skeleton = min(skeleton, limit - before.tokens - self._after.tokens)
            self._sections = self._skeleton(counted, skeleton)

    def _fill_from(self, begin: Begin, limit: int, count_tokens: TokenCounter) -> bool:
        """Begin the prefix where an earlier one did, as long as there is room for it."""
        before, after = self._before, self._after
        if not before.starts or before.starts[-1] > begin.start or not self._still_begins(begin):
            return False
        used = next(n for n, start in enumerate(before.starts, 1) if start <= begin.start)
        # It may have begun within a line.
        cut_off = begin.start - before.starts[used - 1]
        piece = before.units[used - 1][cut_off:]
        if not piece:
            return False
        (last,) = count_tokens([piece]) if cut_off else (before.counts[used - 1],)
        tokens = sum(before.counts[: used - 1]) + last
        own = tokens + sum(section.tokens for section in begin.skeleton)
        # The suffix gives way to what is typed, but not for ever.
        share = limit // _LEAST_SUFFIX
        needed = min(share, sum(after.counts)) if after.exhausted else share
        if own + needed > limit:
            return False
        before.used, before.tokens = used, tokens
        if cut_off:
            before.used, before.tokens = used - 1, tokens - last
            before.cut_next(piece, last)
        self._sections = list(begin.skeleton)
        extend(after, limit - own, count_tokens)
        self._use_up(limit, count_tokens, (after,))
        full = self.tokens >= limit - limit // _WASTED_AT_MOST
        if full or before.complete:
            return True
        if before.cut or after.cut:
            # Anew, from lines that have not been cut.
            self._before = before_cursor(self._document, self._offset)
            self._after = after_cursor(self._document, self._offset)
            count_both(self._before, self._after, self._budget, count_tokens)
        else:
            before.used = before.tokens = after.used = after.tokens = 0
        return False

    def _still_begins(self, begin: Begin) -> bool:
        return self._document.text.startswith(begin.text[: begin.start])

    @property
    def tokens(self) -> int:
        """What has been taken."""
        skeleton = sum(section.tokens for section in self._sections)
        return self._before.tokens + self._after.tokens + skeleton

    def sections(self) -> list[Section]:
        """Skeleton, prefix and suffix."""
        path, before, after = self.path, self._before, self._after
        return [
            *self._sections,
            Section(path, "prefix", "text before the cursor", before.tokens, before.text),
            Section(path, "suffix", "text after the cursor", after.tokens, after.text),
        ]

    def left_out(self) -> list[LeftOut]:
        """What of the file is not there."""
        return [
            LeftOut(self.path, f"text {where} is over the budget")
            for side, where in ((self._before, "further up"), (self._after, "further down"))
            if not side.complete
        ]

    def _skeleton(self, counted: list[tuple[Piece, int]], budget: int) -> list[Section]:
        """A section of the most wanted pieces that stand for text above the prefix."""
        start = self.start
        # The opening of a piece is shorter than the piece, whose count is then a little high.
        shown = [(piece.above(start), tokens) for piece, tokens in counted]
        above = [(piece, tokens) for piece, tokens in shown if piece is not None]
        chosen: list[tuple[Piece, int]] = []
        # Of one rank, the nearest first.
        for piece, tokens in sorted(above, key=lambda item: (item[0].rank, -item[0].start)):
            if tokens <= budget:
                chosen.append((piece, tokens))
                budget -= tokens
        if not chosen:
            return []
        chosen.sort(key=lambda item: (item[0].start, item[0].end))
        text = "".join(piece.text for piece, _ in chosen)
        tokens = sum(tokens for _, tokens in chosen)
        reason = "imports, headers and signatures above"
        return [Section(self.path, "skeleton", reason, tokens, text)]
