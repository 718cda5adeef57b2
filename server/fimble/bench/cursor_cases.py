"""Cases by where the cursor stands: the rest of a line of real code is masked behind it.

What a prompt's layout is worth depends on what was typed last: text that ends inside a token is
foreign to a model. The positions take turns, so that each has as many cases.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

from fimble.bench.cases import (
    Case,
    code_files,
    draw_visits,
    is_code_to_its_end,
    open_document,
)
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import text_kind

__all__ = ["POSITIONS", "draw_cursor_cases"]

#: Where the cursor is, by what is left of it in its line and what is right of it.
POSITIONS = {
    "after a space": (re.compile(r"\S $"), re.compile(r"\S")),
    "inside a word": (re.compile(r"\w[A-Za-z]$"), re.compile(r"[A-Za-z]{2}")),
    "after a bracket": (re.compile(r"[(\[{]$"), re.compile(r"[^\s)\]}]")),
    "at a line start": (re.compile(r"^(?:  {1,}|\t+)$"), re.compile(r"[A-Za-z]")),
}
_REST = range(4, 50)  # code points that are masked
_LEAST_ABOVE = 10  # lines
_MOST_ROUNDS = 40


def draw_cursor_cases(
    folders: Sequence[Path], index: WorkspaceIndex, count: int, seed: int
) -> list[Case]:
    """``count`` cases (fewer where there are no more), one a file and round."""
    random = Random(f"{seed} cursor")
    files = code_files(folders)
    random.shuffle(files)
    names = list(POSITIONS)
    drawn: list[Case] = []
    taken: set[tuple[Path, int]] = set()
    for round_ in range(_MOST_ROUNDS):
        for file in files:
            if len(drawn) == count:
                return drawn
            position = names[len(drawn) % len(names)]
            chance = Random(f"{seed} cursor {file.name} {round_}")
            case = _draw(file, folders, index, position, chance)
            if case is not None and (file, case.offset) not in taken:
                taken.add((file, case.offset))
                drawn.append(case)
    return drawn


def _draw(
    file: Path, folders: Sequence[Path], index: WorkspaceIndex, position: str, random: Random
) -> Case | None:
    document = open_document(file)
    if document.line_count < 2 * _LEAST_ABOVE or document.tree is None:
        return None
    lines = list(range(_LEAST_ABOVE, document.line_count - 1))
    random.shuffle(lines)
    for line in lines[:200]:
        columns = _columns(document.line_text(line), position)
        if not columns:
            continue
        offset, end = document.line_start(line) + random.choice(columns), document.line_end(line)
        # A line that ends in a comment or a string is no code to its end.
        if text_kind(document, offset) == "code" and is_code_to_its_end(document, line):
            text = document.text
            return Case(
                file,
                text[:offset] + text[end:],
                offset,
                text[offset:end],
                "cursor",
                "rest",
                (),
                tuple(draw_visits(document, file, line, folders, index, random)),
                position,
            )
    return None


def _columns(line: str, position: str) -> list[int]:
    """Where in a line the cursor is at such a position."""
    left, right = POSITIONS[position]
    body = line.rstrip("\r\n")
    return [
        column
        for column in range(1, len(body))
        if len(body) - column in _REST and left.search(body[:column]) and right.match(body, column)
    ]
