"""Notebooks: ``notebookDocument/*``. A cell is completed with the cells above it in front.

Cells are open documents like any other; here is only their order. The code cells above a cell
are its document's beginning; text cells are left out.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from lsprotocol import types

from fimble.lsp.convert import document_key, document_path
from fimble.lsp.text_sync import OpenDocuments
from fimble.lsp.views import View
from fimble_context.document import Document

__all__ = ["SYNC", "Notebooks"]

logger = logging.getLogger(__name__)

#: All notebooks, whatever their kind.
SYNC = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(types.NotebookDocumentFilterScheme(scheme="*"))]
)


@dataclass
class _Notebook:
    path: str
    cells: list[types.NotebookCell] = field(default_factory=list)


class Notebooks:
    """The open notebooks. Their cells' texts are in ``documents``."""

    def __init__(self, documents: OpenDocuments) -> None:
        self._documents = documents
        self._notebooks: dict[str, _Notebook] = {}
        self._notebook_of: dict[str, _Notebook] = {}

    def opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """``notebookDocument/didOpen``."""
        item = params.notebook_document
        notebook = _Notebook(document_path(item.uri), list(item.cells))
        self._notebooks[document_key(item.uri)] = notebook
        self._index(notebook)
        for cell in params.cell_text_documents:
            self._documents.open(cell)

    def changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
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
        for cell in cells.data or []:
            notebook.cells = [cell if c.document == cell.document else c for c in notebook.cells]
        for content in cells.text_content or []:
            self._documents.change(content.document, content.changes)

    def closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        """``notebookDocument/didClose``."""
        self._notebooks.pop(document_key(params.notebook_document.uri), None)
        for cell in params.cell_text_documents:
            self._notebook_of.pop(document_key(cell.uri), None)
            self._documents.close(cell)

    def view_of(self, uri: str) -> View | None:
        """What completions see of an open document, be it a cell or not; None if not open."""
        document = self._documents.get(uri)
        notebook = self._notebook_of.get(document_key(uri))
        if document is None or notebook is None:
            return None if document is None else View(document)
        above = self._above(notebook, uri, document)
        text = "".join(f"{part.text.rstrip()}\n\n" for part in above)
        combined = Document(
            text + document.text,
            path=notebook.path,
            language=document.language,
            version=document.version,
        )
        return View(combined, len(text))

    def _above(self, notebook: _Notebook, uri: str, document: Document) -> list[Document]:
        """The code cells in the same language above the cell, from the top."""
        found = []
        for cell in notebook.cells:
            if document_key(cell.document) == document_key(uri):
                break
            above = self._documents.get(cell.document)
            if (
                cell.kind == types.NotebookCellKind.Code
                and above is not None
                and above.language == document.language
            ):
                found.append(above)
        return found

    def _index(self, notebook: _Notebook) -> None:
        for cell in notebook.cells:
            self._notebook_of[document_key(cell.document)] = notebook
