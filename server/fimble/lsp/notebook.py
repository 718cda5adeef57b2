"""Notebooks: ``notebookDocument/*``. A cell is completed among the other cells' code.

Cells are open documents like any other. The code cells of one language are joined to one
document, as completions see it: the cells above are its beginning, those below its end. It is
edited along with the cells, never put together anew.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsprotocol import types

from fimble.lsp.convert import document_key, document_path
from fimble.lsp.joined import Joined
from fimble.lsp.text_sync import DocumentListener, OpenDocuments
from fimble.lsp.views import View
from fimble_context.syntax import Document, Edit

__all__ = ["SYNC", "Notebooks"]

logger = logging.getLogger(__name__)

#: All notebooks, whatever their kind.
SYNC = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(types.NotebookDocumentFilterScheme(scheme="*"))]
)


@dataclass
class _Notebook:
    """``joined`` are the documents made of the cells so far, by what they are made of."""

    path: str
    cells: list[types.NotebookCell] = field(default_factory=list)
    joined: dict[tuple[str, str | None], Joined] = field(default_factory=dict)
    rearranged: set[tuple[str, str | None]] = field(default_factory=set)

    def rearrange(self) -> None:
        """Other cells, or others in another order: to be looked at before the next use."""
        self.rearranged.update(self.joined)


class Notebooks(DocumentListener):
    """The open notebooks. Their cells' texts are in ``documents``."""

    def __init__(self, documents: OpenDocuments) -> None:
        self._documents = documents
        self._notebooks: dict[str, _Notebook] = {}
        self._notebook_of: dict[str, _Notebook] = {}

    # --- the protocol --------------------------------------------------------------------

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """``notebookDocument/didOpen``."""
        item = params.notebook_document
        notebook = _Notebook(document_path(item.uri), list(item.cells))
        self._notebooks[document_key(item.uri)] = notebook
        self._index(notebook)
        for cell in params.cell_text_documents:
            self._documents.open(cell)

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        """``notebookDocument/didChange``: cells come, go and move, and their texts change."""
        notebook = self._notebooks.get(document_key(params.notebook_document.uri))
        cells = params.change.cells
        if notebook is None or cells is None:
            return
        if cells.structure is not None:
            array = cells.structure.array
            end = array.start + array.delete_count
            notebook.cells[array.start : end] = array.cells or []
            for item in cells.structure.did_open or []:
                self._documents.open(item)
            for closed in cells.structure.did_close or []:
                self._notebook_of.pop(document_key(closed.uri), None)
                self._documents.close(closed)
            self._index(notebook)
            notebook.rearrange()
        for cell in cells.data or []:
            notebook.cells = [cell if c.document == cell.document else c for c in notebook.cells]
            notebook.rearrange()
        for content in cells.text_content or []:
            self._documents.change(content.document, content.changes)

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """``notebookDocument/didClose``."""
        self._notebooks.pop(document_key(params.notebook_document.uri), None)
        for cell in params.cell_text_documents:
            self._notebook_of.pop(document_key(cell.uri), None)
            self._documents.close(cell)

    # --- what happens to cells -----------------------------------------------------------

    def opened(self, uri: str, document: Document) -> None:
        notebook = self._notebook_of.get(document_key(uri))
        if notebook is not None:
            notebook.rearrange()

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        key = document_key(uri)
        notebook = self._notebook_of.get(key)
        if notebook is None:
            return
        for what, joined in notebook.joined.items():
            if what not in notebook.rearranged:
                joined.edited(key, edits)

    def closed(self, uri: str) -> None:
        self.opened(uri, Document(""))

    # --- what completions see ------------------------------------------------------------

    def view_of(self, uri: str) -> View | None:
        """What completions see of an open document, be it a cell or not; None if not open."""
        document, key = self._documents.get(uri), document_key(uri)
        notebook = self._notebook_of.get(key)
        if document is None or notebook is None:
            return None if document is None else View(document)
        code = any(document_key(cell.document) == key and _is_code(cell) for cell in notebook.cells)
        # A cell that is no code stands for itself.
        what = ("" if code else key, document.language)
        joined = notebook.joined.get(what)
        if joined is None:
            joined = notebook.joined[what] = Joined(notebook.path, document.language)
            notebook.rearranged.add(what)
        if what in notebook.rearranged:
            cells = self._code(notebook, document.language) if code else [(key, document)]
            joined.arrange([(name, cell.text) for name, cell in cells])
            notebook.rearranged.discard(what)
        # A copy: while somebody waits for an answer here, other cells may be edited.
        return View(joined.snapshot(), joined.start_of(key))

    def _code(self, notebook: _Notebook, language: str | None) -> list[tuple[str, Document]]:
        """The notebook's open code cells in one language, from the top."""
        found = []
        for cell in notebook.cells:
            document = self._documents.get(cell.document)
            if _is_code(cell) and document is not None and document.language == language:
                found.append((document_key(cell.document), document))
        return found

    def _index(self, notebook: _Notebook) -> None:
        for cell in notebook.cells:
            self._notebook_of[document_key(cell.document)] = notebook


def _is_code(cell: types.NotebookCell) -> bool:
    return cell.kind == types.NotebookCellKind.Code
