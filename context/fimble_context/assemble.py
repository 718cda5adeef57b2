"""What goes into a prompt: ordered sections with a reason and a token count, in a budget.

Gets a document, an offset and a function that counts tokens. Knows no model and no prompt
format: how sections are laid out is the caller's affair. Text in sections has ``\\n`` line
ends and no byte order mark, whatever the document has.
"""

from __future__ import annotations

from dataclasses import dataclass

from fimble_context.document import Document
from fimble_context.skeleton import Piece, cut_to_syntax, pieces
from fimble_context.window import (
    Side,
    TokenCounter,
    after_cursor,
    before_cursor,
    count_both,
    fill,
)

__all__ = ["Context", "LeftOut", "Section", "TokenCounter", "assemble"]

_SKELETON_SHARE = 5  # the skeleton gets at most one part of the budget in so many
_SHORTEST = 100  # tokens of budget below which a skeleton would only take room from the text


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a prompt.

    ``kind`` is ``prefix`` or ``suffix`` for the text around the cursor, and ``skeleton`` for
    the short form of what stands above the prefix in the same file: it belongs directly in
    front of the prefix's text.
    """

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
    document: Document,
    offset: int,
    *,
    budget: int,
    count_tokens: TokenCounter,
    skeleton: bool = False,
) -> Context:
    """The text around ``offset`` (code points, clamped) within ``budget`` tokens.

    The suffix gets a quarter of the budget; what one side does not need goes to the other.
    Cuts are at line ends; only a line that alone is over its side's budget is cut inside.
    With ``skeleton``, a file that does not fit is cut at a statement, and what is above is
    there in short. Tokens are counted in one call in the usual case.
    """
    offset = _cursor(document, offset)
    budget = max(budget, 0)
    before, after = before_cursor(document, offset), after_cursor(document, offset)
    # A character is a token at most, so a text that short is never cut.
    wanted = skeleton and budget >= _SHORTEST and len(document.text) > budget
    candidates = pieces(document, offset) if wanted else []
    texts = [piece.text for piece in candidates]
    counts = count_both(before, after, budget, count_tokens, texts)
    sections: list[Section] = []
    if candidates and not before.fits(budget - budget // 4):
        counted = list(zip(candidates, counts, strict=True))
        reserve = min(sum(counts), budget // _SKELETON_SHARE)
        fill(before, after, budget - reserve, count_tokens)
        _cut(document, before, offset)
        left = budget - before.tokens - after.tokens
        start = before.starts[before.used - 1] if before.used else offset
        sections = _skeleton(document, counted, start, left)
    else:
        fill(before, after, budget, count_tokens)
    sections += (
        Section(document.path, "prefix", "text before the cursor", before.tokens, before.text),
        Section(document.path, "suffix", "text after the cursor", after.tokens, after.text),
    )
    left_out = [
        LeftOut(document.path, f"text {where} is over the budget")
        for side, where in ((before, "further up"), (after, "further down"))
        if not side.complete
    ]
    return Context(tuple(sections), budget, tuple(left_out))


def _cursor(document: Document, offset: int) -> int:
    """``offset`` within the text, not between ``\\r`` and ``\\n``."""
    offset = min(max(offset, 0), len(document.text))
    return min(offset, document.line_end(document.line_of(offset)))


def _cut(document: Document, before: Side, offset: int) -> None:
    """Let the prefix begin with a statement, at the cost of a tenth of it at most."""
    if before.used and not before.cut:
        before.give_back(cut_to_syntax(document, before.starts[before.used - 1], offset))


def _skeleton(
    document: Document, counted: list[tuple[Piece, int]], start: int, budget: int
) -> list[Section]:
    """A section of the most wanted pieces that stand for text above ``start``."""
    above = [(piece, tokens) for piece, tokens in counted if piece.end <= start]
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
    return [Section(document.path, "skeleton", reason, tokens, text)]
