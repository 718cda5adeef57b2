"""A candidate: a piece of some other place than the cursor's that a prompt may show.

Plain data between those who find candidates and the one who chooses among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

__all__ = ["Candidate", "Kind", "Place"]

Kind: TypeAlias = Literal["definition", "sibling", "caller", "similar", "recent"]


@dataclass(frozen=True, slots=True)
class Place:
    """Code points ``start`` to ``end`` of a file."""

    file: Path
    start: int
    end: int

    def overlaps(self, other: Place) -> bool:
        """Whether the two have text in common."""
        return self.file == other.file and self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Candidate:
    """``path`` is what a section names, ``place`` where the text is from.

    ``forms`` are texts that may stand for it, the longest first; ``header`` are the header
    lines of what is around it, and are shown once for neighbours that share them. All end with
    a line end. ``reason`` is for a person. ``name`` is that of a definition, with the names
    around it; ``wanted`` says that a prompt without it should be made anew.
    """

    path: str
    kind: Kind
    place: Place
    reason: str
    forms: tuple[str, ...]
    header: str = ""
    name: str = ""
    wanted: bool = False
    also: tuple[Place, ...] = ()

    @property
    def places(self) -> tuple[Place, ...]:
        """All that it shows: ``place`` and, for a struct, where its methods are."""
        return (self.place, *self.also)

    @property
    def key(self) -> tuple[Path, str]:
        """Tells candidates apart from one assembly to the next."""
        return self.place.file, self.name or self.kind
