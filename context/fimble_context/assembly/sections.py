"""What an assembly gives: sections with a reason and a cost each, and what was left out.

Plain data; what a prompt makes of it is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["OTHER_KINDS", "Context", "LeftOut", "Section"]

OTHER_KINDS = ("definition", "sibling", "caller", "similar", "recent")
"""Kinds of sections about other places than the cursor's, in the order of a prompt."""


@dataclass(frozen=True, slots=True)
class Section:
    """A piece of a prompt.

    ``kind`` is one of ``OTHER_KINDS``; or ``prefix`` or ``suffix`` for the text around the
    cursor; or ``skeleton`` for the short form of what stands above the prefix in the same
    file, which belongs directly in front of the prefix's text. ``path`` is relative to the
    workspace, with forward slashes. ``tokens`` is what the section costs in a prompt, its
    heading (the path) included where it has one.
    """

    path: str
    kind: str
    reason: str
    tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What could have been in the prompt and is not, and why, in words for a person."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Context:
    """Sections in prompt order, within ``budget_tokens`` together.

    ``repository`` names the workspace; empty where there are no sections of other places.
    """

    sections: tuple[Section, ...]
    budget_tokens: int
    left_out: tuple[LeftOut, ...] = field(default=())
    repository: str = ""

    @property
    def tokens(self) -> int:
        """What all sections cost together."""
        return sum(section.tokens for section in self.sections)
