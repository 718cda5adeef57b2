"""The document as completions see it: an open document, or a notebook's cells up to one."""

from __future__ import annotations

from dataclasses import dataclass

from fimble_context.syntax import Document

__all__ = ["View"]


@dataclass(frozen=True, slots=True)
class View:
    """``document`` has ``shift`` code points in front of the text that the editor has."""

    document: Document
    shift: int = 0

    def inside(self, offset: int) -> int:
        """The offset in ``document`` of one in the editor's text."""
        return offset + self.shift

    def outside(self, offset: int) -> int:
        """The inverse of ``inside``."""
        return max(0, offset - self.shift)
