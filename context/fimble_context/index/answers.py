"""What the index answers with: plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from fimble_context.index.facts import Fact, Facts

__all__ = ["Definition", "IndexStatus", "definition", "shape", "shared_path"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition in a file of the workspace.

    Offsets are code points and lines zero-based, of the file's text when it was indexed: who
    shows that text must see that the definition is still there.
    """

    path: Path
    name: str
    kind: str
    container: str
    start: int
    end: int
    line: int
    end_line: int
    signature: str
    doc: str


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """``phase``: ``starting``, ``waiting`` (another window indexes), ``scanning``, ``idle``,
    ``unavailable`` or ``closed``.

    ``files`` were found by the scan so far and ``read`` of them had changed; ``complete`` is
    False where limits left files out; ``refused`` counts files by reason.
    """

    phase: str
    files: int = 0
    read: int = 0
    bytes: int = 0
    complete: bool = True
    refused: dict[str, int] = field(default_factory=dict)
    reason: str = ""


def shape(facts: Facts) -> tuple[object, ...]:
    """What of a file's facts matters to other files."""
    definitions = tuple((item.container, item.name, item.signature) for item in facts.definitions)
    return definitions, tuple((item.source, item.names, item.alias) for item in facts.imports)


def definition(path: str, fact: Fact) -> Definition:
    """A fact with its file."""
    return Definition(
        shared_path(path), fact.name, fact.kind, fact.container, fact.start, fact.end,
        fact.line, fact.end_line, fact.signature, fact.doc,
    )  # fmt: skip


@lru_cache(maxsize=8_192)
def shared_path(path: str) -> Path:
    """One ``Path`` for each path: it keeps its text and its hash, which are asked for often."""
    return Path(path)
