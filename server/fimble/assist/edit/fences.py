"""The code of an answer: out of its fence, also where the code has fences of its own.

Markdown cannot tell a fence in a docstring from the end of the block. The end is taken at
which the code is whole: ``errors`` says how many syntax errors a text has at its place, and the
first end with the fewest is the one. Where no grammar can tell, the number of fences that the
code had before decides. Knows texts only.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Block", "blocks_in", "fence_lines"]

_OPENING = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`]*?)[ \t]*$")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
#: So many ends are looked at; each costs a parse.
_MOST_ENDS = 16


@dataclass(frozen=True, slots=True)
class Block:
    """``text`` is without its last line end; ``language`` as the answer says it, in lower case.

    ``complete`` is False where the fence is never closed. ``errors`` are the syntax errors
    that the text would have at its place; 0 where nobody can tell.
    """

    language: str
    text: str
    complete: bool
    errors: int = 0


def fence_lines(text: str) -> int:
    """How many lines of a text look like a fence."""
    return sum(_FENCE.match(line) is not None for line in text.splitlines())


def blocks_in(answer: str, errors: Callable[[str], int] | None, inner_fences: int) -> list[Block]:
    """The blocks of an answer, in order.

    ``errors`` is None where there is no grammar to ask; ``inner_fences`` is how many lines of
    the original code look like fences.
    """
    lines = answer.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks: list[Block] = []
    place = 0
    while place < len(lines):
        opening = _OPENING.match(lines[place])
        place += 1
        if opening is None:
            continue
        inside = [line.removeprefix(opening["indent"]) for line in lines[place:]]
        ends = [number for number, line in enumerate(inside) if _closes(line, opening["fence"])][
            :_MOST_ENDS
        ]
        language = (opening["info"].split() or [""])[0].strip("{}.").lower().partition(":")[0]
        if not ends:
            text = "\n".join(inside).rstrip("\n")
            blocks.append(Block(language, text, False, errors(text) if errors else 0))
            break
        end, count = _best_end(inside, ends, errors, inner_fences)
        blocks.append(Block(language, "\n".join(inside[:end]), True, count))
        place += end + 1
    return blocks


def _best_end(
    inside: list[str], ends: list[int], errors: Callable[[str], int] | None, inner_fences: int
) -> tuple[int, int]:
    """The line that ends the block, and the errors of what is above it."""
    if errors is None:
        return _balanced_end(inside, ends, inner_fences), 0
    best, fewest = ends[0], -1
    for end in ends:
        count = errors("\n".join(inside[:end]))
        if fewest < 0 or count < fewest:
            best, fewest = end, count
        if count == 0:
            break
    return best, fewest


def _balanced_end(inside: list[str], ends: list[int], inner_fences: int) -> int:
    """The first end with as many fences above it as the code had; else the last with pairs."""
    even = ends[0]
    for end in ends:
        above = fence_lines("\n".join(inside[:end]))
        if above == inner_fences:
            return end
        if inner_fences and above % 2 == 0:
            even = end
    return even


def _closes(line: str, fence: str) -> bool:
    text = line.strip(" \t")
    indented = len(line) - len(line.lstrip(" \t")) > 3
    return not indented and len(text) >= len(fence) and set(text) == {fence[0]}
