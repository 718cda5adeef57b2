"""pygls's protocol with what we do otherwise.

- Documents go to ``OpenDocuments`` only: pygls's workspace splits the whole text on every
  change, which takes 30 ms for a file of 1.3 MB.
- ``exit`` ends the loop with the right exit code; pygls's way loses it.
- Every request is answered once, also before ``initialize``, after ``shutdown``, or with
  parameters that cannot be read; no message whatever ends the server (``well_formed``).
- An answer counts for a request of ours alone, and once. pygls keeps the editor's requests beside
  ours, and fails at an answer that comes after its request was given up.
- A text that a message may have changed, but which cannot be read, is no longer taken for the
  editor's: the document counts as closed until it is opened again.
- No traceback travels to the editor; it goes to the log.
- Cancelling ``workspace/executeCommand`` cancels the command, which sees the request's progress
  token in ``COMMAND_TOKEN``; pygls announces and hands on neither.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    FeatureNotificationError,
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import LanguageServerProtocol, lsp_method

from fimble.lsp.logs import log_file
from fimble.lsp.notebook import Notebooks
from fimble.lsp.progress import COMMAND_TOKEN
from fimble.lsp.text_sync import OpenDocuments
from fimble.lsp.well_formed import (
    id_of,
    is_id,
    is_message,
    takes_no_answer,
    without_needless_params,
)

__all__ = ["FimbleProtocol"]

logger = logging.getLogger(__name__)

#: Notifications after which the editor has other texts than before.
_ABOUT_TEXTS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


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
        self._asked: set[str | int] = set()

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
        if not is_message(message):
            self._refuse_unknown(message)
            return
        if not self._in_order(message):
            return
        try:
            structured = self.structure_message(without_needless_params(message))
        except JsonRpcException:
            self._refuse_unreadable(message)
            return
        self._initialize_seen = self._initialize_seen or message.get("method") == types.INITIALIZE
        try:
            self.handle_message(structured)
        except Exception as error:  # noqa: BLE001 - one message's fault must not end the session
            self._server._report_server_error(error, FeatureNotificationError)

    def _refuse_unknown(self, message: Any) -> None:
        self._forget_documents(message)
        error = JsonRpcInvalidRequest().to_response_error()
        self._send_response(id_of(message), error=error)

    def _refuse_unreadable(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        logger.warning("parameters of %s cannot be read", method or "a response")
        if method is None:
            self._handle_response(message["id"], None, types.ResponseError(-32603, "unreadable"))
            return
        self._forget_documents(message)
        if "id" in message:
            self._send_response(message["id"], error=JsonRpcInvalidParams().to_response_error())

    def _forget_documents(self, message: Any) -> None:
        """A change that cannot be read leaves us with another text than the editor has."""
        for uri in _documents_of(message):
            if self.documents.get(uri) is not None:
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
        elif request is not None and takes_no_answer(method):
            self._forget_documents(message)
            refusal = JsonRpcMethodNotFound(f"{method} is a notification.")
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

    def _check_handler_result(self, future: Any) -> None:
        error = None if future.cancelled() else future.exception()
        if isinstance(error, JsonRpcInvalidParams):
            logger.warning("a notification could not be meant: %s", error)
        elif error is not None:
            # The error itself: pygls's own one in its place has no frames for the log.
            self._server._report_server_error(error, FeatureNotificationError)

    def _send_response(
        self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if error is not None and error.code == JsonRpcInternalError.CODE:
            error = types.ResponseError(error.code, _without_traceback(error))
        if msg_id is None and error is not None:
            # The one answer whose id is null, which the converter would leave out.
            refusal = {"code": error.code, "message": error.message}
            self._send_data({"jsonrpc": self.VERSION, "id": None, "error": refusal})
            return
        super()._send_response(msg_id, result, error)

    # --- requests of ours --------------------------------------------------------------------

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: str | int | None = None,
    ) -> Future[Any]:
        id = str(uuid.uuid4()) if msg_id is None else msg_id
        self._asked.add(id)
        return super().send_request(method, params, callback, id)

    def _handle_response(
        self, msg_id: str | int, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if msg_id not in self._asked:
            logger.warning("an answer to no request of ours was ignored")
            return
        self._asked.discard(msg_id)
        future = self._request_futures.get(msg_id)
        if future is None or future.done():  # it was given up
            self._request_futures.pop(msg_id, None)
            return
        super()._handle_response(msg_id, result, error)

    def _handle_cancel_notification(self, msg_id: str | int) -> None:
        if is_id(msg_id) and msg_id not in self._asked:
            super()._handle_cancel_notification(msg_id)

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
        text_document = params.capabilities.text_document
        action = text_document.code_action if text_document else None
        if action is None or action.code_action_literal_support is None:
            # Kinds are told to nobody else, says the specification.
            result.capabilities.code_action_provider = True
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


def _documents_of(message: Any) -> Iterator[str]:
    """The URIs of the documents that a message is about if it opens, changes or closes any."""
    method = message.get("method") if isinstance(message, dict) else None
    if method in _ABOUT_TEXTS:
        yield from _uris_in(message.get("params"))


def _uris_in(value: Any) -> Iterator[str]:
    """Every ``uri`` and ``document`` in it: those of a notebook are its cells'."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            for name in ("uri", "document"):
                if isinstance(each.get(name), str):
                    yield each[name]
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _without_traceback(error: types.ResponseError) -> str:
    """The message for an unexpected failure; its frames and its type go to the log.

    The exception's text stays out of both: it may quote a document.
    """
    frames = error.data.get("traceback") if isinstance(error.data, dict) else None
    kind = error.message.partition(":")[0]
    logger.error("a request failed unexpectedly\n%s%s", "".join(frames or ()), kind)
    return f"fimble failed to answer; this is a fault of fimble's. {log_file()} says more."
