"""The sources of a chat without an editor: a folder's files as they are on disk.

The index is opened when something is looked for in it, and waited for a moment; whoever owns
the sources closes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fimble.assist.chat.pieces import Sources
from fimble.assist.workspace import is_too_wide, open_workspace, project_root
from fimble_context.assembly import Workspace
from fimble_context.syntax import Document
from fimble_context.workspace import Policy

__all__ = ["FolderSources"]

#: What is indexed by then is found; the next question finds more.
_PATIENCE_SECONDS = 5.0


class FolderSources(Sources):
    """``folder`` is where relative names start from; the project around it is the workspace.

    Where there is no project, and the folder is too wide for one, only what is named is read.
    ``patience`` is how long its first scan is waited for, in seconds.
    """

    def __init__(self, folder: Path, patience: float = _PATIENCE_SECONDS) -> None:
        self._folder = folder.absolute()
        self._root = project_root(self._folder / "any") or self._folder
        self._patience = patience
        self._policy = Policy((self._root,))
        self._workspace: Workspace | None = None
        self._documents: dict[str, Document] = {}

    @property
    def policy(self) -> Policy:
        return self._policy

    @property
    def bases(self) -> tuple[Path, ...]:
        return (self._folder, self._root)

    def workspace(self) -> Workspace | None:
        if self._workspace is None and not is_too_wide(self._root):
            self._workspace = open_workspace([self._root])
            for name, document in self._documents.items():
                self._workspace.opened(Path(name), document)
            self._workspace.start()
            self._workspace.index.wait(self._patience)
        return self._workspace

    def documents(self) -> Iterable[tuple[str, Document]]:
        return self._documents.items()

    def open(self, document: Document) -> None:
        """A document that questions are about; its name is its path."""
        self._documents[document.path] = document

    def close(self) -> None:
        """Ends indexing."""
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None
