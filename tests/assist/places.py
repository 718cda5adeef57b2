"""Source with a cursor mark, as fixtures write it."""

from __future__ import annotations

from fimble_context.syntax import Document

__all__ = ["MARK", "at_mark"]

MARK = "│"


def at_mark(marked: str, *, path: str = "a.py", language: str = "python") -> tuple[Document, int]:
    """The document without its mark, and the mark's offset in code points."""
    before, mark, after = marked.partition(MARK)
    assert mark, f"no {MARK} in the fixture"
    return Document(before + after, path=path, language=language), len(before)
