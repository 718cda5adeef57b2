"""An edit as a unified diff, for people and for ``patch``."""

from __future__ import annotations

import difflib

from fimble.assist.edit.hunks import lines_of

__all__ = ["unified_diff"]


def unified_diff(before: str, after: str, path: str, *, is_new: bool = False) -> str:
    """What turns ``before`` into ``after``; lines keep their ends. Empty where nothing does."""
    old = "/dev/null" if is_new else f"a/{path}"
    lines = difflib.unified_diff(lines_of(before), lines_of(after), old, f"b/{path}")
    pieces: list[str] = []
    for line in lines:
        pieces.append(line)
        if not line.endswith(("\n", "\r")):
            pieces.append("\n\\ No newline at end of file\n")
    return "".join(pieces)
