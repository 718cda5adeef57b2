"""Pieces made to fit: what is short stays whole, what is long shares what is left.

Asks for token counts only. What is cut or left out is said, never silent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from fimble.assist.chat.pieces import Piece
from fimble_context.assembly import LeftOut

__all__ = ["HEADING_TOKENS", "Count", "fit"]

#: Exact token counts of texts, from the engine.
Count: TypeAlias = Callable[[Sequence[str]], Awaitable[list[int]]]

#: What a piece costs besides its text: where it is from, its fence.
HEADING_TOKENS = 32
#: Less of a piece is of no use.
_LEAST_TOKENS = 48
_MOST_TRIES = 4
#: What is asked for by itself comes before what explains it.
_SECONDARY = ("definition", "sibling", "caller", "similar", "recent", "open file", "files")


async def fit(
    pieces: Sequence[Piece], room: int, count: Count
) -> tuple[list[Piece], list[LeftOut]]:
    """The pieces, in their order, that ``room`` tokens can hold, and what is not among them.

    Those that were asked for come first, each with an equal share of the room where they do
    not all fit whole; then the others one after the other, whole or not at all.
    """
    costs = await count([piece.text for piece in pieces]) if pieces else []
    sized = [replace(p, tokens=c + HEADING_TOKENS) for p, c in zip(pieces, costs, strict=True)]
    first = [piece for piece in sized if piece.kind not in _SECONDARY]
    shares = _shares([piece.tokens for piece in first], room)
    kept: dict[int, Piece] = {}
    left_out: list[LeftOut] = []
    for piece, share in zip(first, shares, strict=True):
        cut = piece if piece.tokens <= share else await _cut(piece, share, count)
        if cut is None:
            left_out.append(LeftOut(piece.path, f"{_named(piece)}: no room for it"))
            continue
        if cut.tokens < piece.tokens:
            left_out.append(LeftOut(piece.path, _missing(piece, cut)))
        kept[sized.index(piece)] = cut
        room -= cut.tokens
    for piece in sized:
        if piece.kind in _SECONDARY:
            if piece.tokens <= room:
                kept[sized.index(piece)] = piece
                room -= piece.tokens
            else:
                left_out.append(LeftOut(piece.path, f"{_named(piece)}: no room for it"))
    return [kept[place] for place in sorted(kept)], left_out


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """What each gets: all that it wants, or the same as the others that want too much."""
    shares = [0] * len(wanted)
    left = max(0, room)
    waiting = sorted(range(len(wanted)), key=lambda place: wanted[place])
    for done, place in enumerate(waiting):
        shares[place] = min(wanted[place], left // (len(waiting) - done))
        left -= shares[place]
    return shares


async def _cut(piece: Piece, share: int, count: Count) -> Piece | None:
    """The beginning of a piece, in whole lines, for at most ``share`` tokens."""
    room = share - HEADING_TOKENS
    if room < _LEAST_TOKENS:
        return None
    text, tokens = piece.text, piece.tokens - HEADING_TOKENS
    for _ in range(_MOST_TRIES):
        # A little less than in proportion: lines differ.
        size = min(len(text) - 1, int(len(text) * room / tokens * 0.95))
        text = _lines_within(text, size)
        if not text:
            return None
        (tokens,) = await count([text])
        if tokens <= room:
            lines = piece.lines
            if lines is not None:
                lines = lines[0], lines[0] + text.count("\n") - 1
            # Only part of it is known, so an answer's code cannot stand in for it.
            return replace(
                piece, text=text, lines=lines, tokens=tokens + HEADING_TOKENS, target=None
            )
    return None


def _lines_within(text: str, size: int) -> str:
    """Whole lines of the first ``size`` characters; part of a line where that is longer."""
    end = text.rfind("\n", 0, size) + 1
    return text[:end] if end > 0 else text[:size]


def _named(piece: Piece) -> str:
    if piece.lines is not None and piece.kind in ("selection", "around"):
        return f"lines {piece.lines[0]} to {piece.lines[1]}"
    return {"diff": "the changes", "files": "the list of files"}.get(piece.kind, piece.reason)


def _missing(whole: Piece, cut: Piece) -> str:
    if whole.lines is None or cut.lines is None:
        missing = whole.text.count("\n") - cut.text.count("\n")
        return f"the last {missing} lines of {_named(whole)}: no room for them"
    return f"lines {cut.lines[1] + 1} to {whole.lines[1]}: no room for them"
