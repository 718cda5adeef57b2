"""What a chat's prompt is made of: what was asked for, and the pieces that came of it.

Plain data, and where the texts are from. Offsets are code points, lines begin at 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from fimble_context.assembly import Diagnostic, Workspace
from fimble_context.syntax import Document
from fimble_context.workspace import Policy

__all__ = ["PIECE_KINDS", "Attachment", "AttachmentKind", "Piece", "Sources", "Target"]

AttachmentKind: TypeAlias = Literal[
    "selection", "file", "symbol", "diagnostics", "diff", "open files", "workspace"
]

#: Kinds of pieces in the order of a prompt: what a question is about stands nearest to it.
PIECE_KINDS = (
    "files",  # names of files
    "similar",
    "recent",
    "open file",
    "sibling",
    "definition",
    "caller",
    "file",
    "symbol",
    "diff",
    "around",  # the whole statements that a selection is, or is part of
    "selection",
    "diagnostics",
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """Something that a message is about.

    ``document`` is an open one (``selection``, ``diagnostics``), whose ``source`` names it for
    the client; ``start`` and ``end`` are a selection in it, equal for a mere cursor. ``path``
    is a file's, as far as it is known. ``name`` is a symbol's (``Class.method``). ``mention`` is
    the text that asked for it, where it was in the message.
    """

    kind: AttachmentKind
    document: Document | None = None
    source: str = ""
    start: int = 0
    end: int = 0
    path: Path | None = None
    name: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    staged: bool = False
    mention: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A place that code of an answer may be meant for.

    ``path`` is the shown one, ``file`` the whole one (empty for an unsaved document).
    ``source`` names the document for the client; empty for a file that is not open.
    ``version`` is the document's when the place was looked at.
    """

    path: str
    file: str
    source: str
    start: int
    end: int
    version: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt; ``kind`` is one of ``PIECE_KINDS``.

    ``text`` has ``\\n`` line ends and no keys in it. ``path`` is relative to the workspace, with
    forward slashes; ``reason`` is for a person; ``language`` is for a fence in Markdown;
    ``lines`` are the first and the last, where that is known. ``tokens`` is what it costs.
    """

    kind: str
    path: str
    reason: str
    text: str
    language: str = ""
    lines: tuple[int, int] | None = None
    tokens: int = 0
    target: Target | None = None


class Sources(ABC):
    """Where texts are from: open documents first, then files. Belongs to one thread."""

    @property
    @abstractmethod
    def policy(self) -> Policy:
        """Which files may be used."""

    @abstractmethod
    def workspace(self) -> Workspace | None:
        """The workspace with its index; None where no folder is open."""

    @abstractmethod
    def documents(self) -> Iterable[tuple[str, Document]]:
        """The open documents with the client's names for them."""

    @property
    def bases(self) -> tuple[Path, ...]:
        """The folders that a relative path may start from, the likeliest first."""
        folders = self.policy.folders
        above = {folder.parent for folder in folders} if len(folders) > 1 else set()
        return (*folders, *sorted(above))

    def document(self, path: Path) -> tuple[str, Document] | None:
        """The open document of a file."""
        for source, document in self.documents():
            if document.path and Path(document.path) == path:
                return source, document
        return None

    def shown_path(self, path: Path) -> str:
        """A path as a prompt names it: relative to its folder, with forward slashes."""
        folders = self.policy.folders
        folder = self.policy.folder_of(path)
        if folder is None:
            return path.name
        relative = path.relative_to(folder).as_posix()
        return f"{folder.name}/{relative}" if len(folders) > 1 else relative
