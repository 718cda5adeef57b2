"""pygls's protocol with what we do otherwise.

- Documents go to ``OpenDocuments`` only: pygls's workspace splits the whole text on every
  change, which takes 30 ms for a file of 1.3 MB.
- ``exit`` ends the loop with the right exit code; pygls's way loses it.
- Every request is answered once, also before ``initialize``, after ``shutdown``, or with
  parameters that cannot be read.
- No traceback travels to the editor; it goes to the log.
- Cancelling ``workspace/executeCommand`` cancels the command, which sees the request's progress
  token in ``COMMAND_TOKEN``; pygls announces and hands on neither.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from fimble.lsp.logs import log_file
from fimble.lsp.notebook import Notebooks
from fimble.lsp.progress import COMMAND_TOKEN
from fimble.lsp.text_sync import OpenDocuments

__all__ = ["FimbleProtocol"]

logger = logging.getLogger(__name__)


class FimbleProtocol(LanguageServerProtocol):
    """``on_exit`` is called with the exit code when the editor sends ``exit``."""

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self.documents = OpenDocuments()
        self.notebooks = Notebooks(self.documents)
        # First of all: the others look at what it makes of a change.
        self.documents.listeners.append(self.notebooks)
        self.on_exit: Callable[[int], None] = lambda code: None
        self._initialize_seen = False

    @property
    def exit_code(self) -> int:
        """0 if the editor said goodbye (``shutdown``), 1 otherwise."""
        return 0 if self._shutdown else 1

    # --- messages ------------------------------------------------------------------------

    def receive(self, message: Any) -> None:
        """Handles one message's JSON value, or the ValueError that stands for it."""
        if isinstance(message, ValueError):
            self._send_response(None, error=JsonRpcParseError().to_response_error())
            return
        if not isinstance(message, dict) or "jsonrpc" not in message:
            self._send_response(None, error=JsonRpcInvalidRequest().to_response_error())
            return
        if not self._in_order(message):
            return
        try:
            structured = self.structure_message(message)
        except JsonRpcException as error:
            self._refuse_unreadable(message, error)
            return
        self._initialize_seen = self._initialize_seen or message.get("method") == types.INITIALIZE
        self.handle_message(structured)

    def _refuse_unreadable(self, message: dict[str, Any], error: JsonRpcException) -> None:
        method = message.get("method")
        logger.warning("parameters of %s cannot be read", method or "a response")
        if method is not None and "id" in message:
            self._send_response(message["id"], error=error.to_response_error())
        elif method == types.TEXT_DOCUMENT_DID_CHANGE:
            self._forget_document(message.get("params"))
        elif "id" in message:
            self._handle_response(message["id"], None, types.ResponseError(-32603, "unreadable"))

    def _forget_document(self, params: Any) -> None:
        """A change that cannot be read leaves us with another text than the editor has."""
        document = params.get("textDocument") if isinstance(params, dict) else None
        uri = document.get("uri") if isinstance(document, dict) else None
        if isinstance(uri, str):
            self.documents.close(types.TextDocumentIdentifier(uri))

    def _in_order(self, message: dict[str, Any]) -> bool:
        """Whether the message may come now; answers requests that may not."""
        method, request = message.get("method"), message.get("id")
        if method is None or method == types.EXIT:
            return True
        refusal: JsonRpcException | None = None
        if self._shutdown:
            refusal = JsonRpcInvalidRequest("The server is shutting down.")
        elif method == types.INITIALIZE:
            if self._initialize_seen:
                refusal = JsonRpcInvalidRequest("The server is initialized already.")
        elif not self._initialize_seen:
            refusal = JsonRpcServerNotInitialized("The server is not initialized.")
        if refusal is not None and request is not None:
            self._send_response(request, error=refusal.to_response_error())
        return refusal is None

    def _run_generator(self, future: Any, *, gen: Any, result_future: Any) -> None:
        """A command's own work is cancelled with its request, which pygls forgets to do."""
        before = set(self._request_futures)
        super()._run_generator(future, gen=gen, result_future=result_future)
        for id in set(self._request_futures) - before:
            work = self._request_futures.pop(id)
            result_future.add_done_callback(partial(_cancel_with, work))

    def _send_response(
        self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None and error.code == JsonRpcInternalError.CODE:
            error = types.ResponseError(error.code, _without_traceback(error))
        super()._send_response(msg_id, result, error)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(
        self, params: types.ExecuteCommandParams
    ) -> Generator[Any, Any, Any]:
        COMMAND_TOKEN.set(params.work_done_token)
        return (yield from super().lsp_workspace__execute_command(params))

    # --- documents and life cycle --------------------------------------------------------

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(
        self, params: types.InitializeParams
    ) -> Generator[Any, Any, types.InitializeResult]:
        result = yield from super().lsp_initialize(params)
        if result.capabilities.execute_command_provider is not None:
            result.capabilities.execute_command_provider.work_done_progress = True
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        self.documents.open(params.text_document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        self.documents.change(params.text_document, params.content_changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        self.documents.close(params.text_document)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        self.notebooks.notebook_opened(params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> None:
        self.notebooks.notebook_changed(params)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: types.DidCloseNotebookDocumentParams
    ) -> None:
        self.notebooks.notebook_closed(params)

    @lsp_method(types.EXIT)
    def lsp_exit(self, *args: Any) -> Any:
        self.on_exit(self.exit_code)


def _cancel_with(work: Any, request: Any) -> None:
    if request.cancelled():
        work.cancel()


def _without_traceback(error: types.ResponseError) -> str:
    """The message for an unexpected failure; its frames and its type go to the log.

    The exception's text stays out of both: it may quote a document.
    """
    frames = error.data.get("traceback") if isinstance(error.data, dict) else None
    kind = error.message.partition(":")[0]
    logger.error("a request failed unexpectedly\n%s%s", "".join(frames or ()), kind)
    return f"fimble failed to answer; this is a fault of fimble's. {log_file()} says more."
