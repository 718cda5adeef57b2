"""The workspace of the session: told of documents and files, asked for contexts.

Indexing happens in a process of its own. Without folders there is no workspace, and prompts
are made of the document alone. An editor that has the user's whole home open, as Kate has where it
knows no project, gets the projects of the documents that it opens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from lsprotocol import types

from fimble.assist.prompt import own_text_only
from fimble.assist.workspace import assemble_in, is_too_wide, open_workspace, project_root
from fimble.errors import FimbleError
from fimble.lsp.convert import document_path
from fimble.lsp.text_sync import DocumentListener, OpenDocuments
from fimble_context.assembly import Context, TokenCounter, Workspace
from fimble_context.syntax import Document, Edit, Language, detect, prepare
from fimble_context.workspace import Policy

__all__ = ["WorkspaceHost"]

logger = logging.getLogger(__name__)


class WorkspaceHost(DocumentListener):
    """The workspace of the folders that are open; another one when they change."""

    def __init__(self, documents: OpenDocuments) -> None:
        self._documents = documents
        self._folders: tuple[Path, ...] = ()
        #: Whether the editor named a folder that was not taken.
        self._wide = False
        self._in_use = False
        self._globs: tuple[str, ...] = ()
        self._workspace: Workspace | None = None
        self._policy = Policy(())
        self._tasks: set[asyncio.Future[None]] = set()
        self._prepared: set[Language] = set()

    # --- folders -------------------------------------------------------------------------

    def initialize(self, params: types.InitializeParams) -> None:
        """Takes the folders that the editor has open."""
        folders = params.workspace_folders or []
        uris = [folder.uri for folder in folders] or [params.root_uri or ""]
        self._folders = self._taken(_paths(uris))

    def folders_changed(self, event: types.WorkspaceFoldersChangeEvent) -> None:
        """``workspace/didChangeWorkspaceFolders``."""
        removed = set(_paths(folder.uri for folder in event.removed))
        added = self._taken(_paths(folder.uri for folder in event.added))
        self._folders = tuple(
            dict.fromkeys((*(f for f in self._folders if f not in removed), *added))
        )
        self._reopen()

    def use(self, exclude_globs: tuple[str, ...]) -> None:
        """Leaves out what the user's patterns exclude; opens the workspace the first time."""
        if self._workspace is None or exclude_globs != self._globs:
            self._globs = exclude_globs
            self._in_use = True
            self._reopen()

    def close(self) -> None:
        """Ends indexing."""
        workspace, self._workspace = self._workspace, None
        if workspace is not None:
            workspace.close()

    def _taken(self, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        taken = tuple(folder for folder in folders if not is_too_wide(folder))
        if taken != folders:
            self._wide = True
            logger.warning("the user's home is no workspace: projects of open documents are")
        return taken

    def _take_project(self, path: Path) -> None:
        """Has the project of an open document in the workspace."""
        root = project_root(path)
        if root is None or any(folder in (root, *root.parents) for folder in self._folders):
            return
        self._folders += (root,)
        if self._in_use:
            self._reopen()

    def _reopen(self) -> None:
        former, self._workspace = self._workspace, None
        if former is not None:
            self._in_thread(former.close)
        self._policy = Policy(self._folders, self._globs)
        if not self._folders:
            return
        try:
            workspace = open_workspace(self._folders, self._globs)
        except (OSError, FimbleError) as error:
            logger.warning("there is no index: %s", type(error).__name__)
            return
        self._workspace = workspace
        for document in self._documents.all():
            if document.path:
                workspace.opened(Path(document.path), document)
        self._in_thread(workspace.start)

    def _in_thread(self, work: Callable[[], None]) -> None:
        task = asyncio.ensure_future(asyncio.to_thread(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- what happens --------------------------------------------------------------------

    def opened(self, uri: str, document: Document) -> None:
        self._prepare(detect(document.language, document.path, document.text))
        if self._wide and document.path:
            self._take_project(Path(document.path))
        if self._workspace is not None and document.path:
            self._workspace.opened(Path(document.path), document)

    def _prepare(self, language: Language | None) -> None:
        """Once a language, so that the first suggestion does not wait for its queries."""
        if language is not None and language not in self._prepared:
            self._prepared.add(language)
            self._in_thread(partial(prepare, language))

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        if self._workspace is not None and document.path:
            self._workspace.changed(Path(document.path), document, edits)

    def closed(self, uri: str) -> None:
        path = document_path(uri)
        if self._workspace is not None and path:
            self._workspace.closed(Path(path))

    def saved(self, uri: str) -> None:
        """``textDocument/didSave``."""
        path = document_path(uri)
        if self._workspace is not None and path:
            self._workspace.saved(Path(path))

    def visited(self, uri: str, offset: int) -> None:
        """The user looks at a place of an open document."""
        document = self._documents.get(uri)
        if self._workspace is not None and document is not None and document.path:
            self._workspace.visited(Path(document.path), document, offset)

    def files_changed(self, changes: Iterable[types.FileEvent]) -> None:
        """``workspace/didChangeWatchedFiles``."""
        for change in changes:
            path = document_path(change.uri)
            if self._workspace is not None and path:
                self._workspace.file_changed(Path(path))

    # --- questions -----------------------------------------------------------------------

    @property
    def workspace(self) -> Workspace | None:
        """The workspace of the moment, if folders are open."""
        return self._workspace

    @property
    def policy(self) -> Policy:
        """Which files may be used."""
        return self._policy

    def assemble(
        self, document: Document, offset: int, budget: int, count: TokenCounter
    ) -> Context:
        """The sections for a prompt, with those of other files as far as they are known."""
        if self._workspace is None:
            return own_text_only(document, offset, budget, count)
        return assemble_in(self._workspace)(document, offset, budget, count)


def _paths(uris: Iterable[str]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(Path(path) for path in map(document_path, uris) if path))
