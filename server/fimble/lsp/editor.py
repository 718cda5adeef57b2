"""The editor's side of the protocol, just big enough to open, type, ask and accept.

For the demo, benchmarks and tests: they meet the server as a real editor does, over stdio.
Knows nothing of what the server is made of.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.protocol import LanguageServerProtocol

from fimble import __version__
from fimble.errors import FimbleError
from fimble.lsp.plain import plain
from fimble.system import uri_from_path
from fimble_context.syntax import Document, Edit

__all__ = ["Editor", "Proposal", "ready_editor"]

_PATIENCE_SECONDS = 120.0


class Proposal:
    """A suggestion as the server sent it, and the code point range it replaces.

    ``command`` is what the server wants to hear once it was accepted.
    """

    def __init__(
        self, text: str, start: int, end: int, command: types.Command | None = None
    ) -> None:
        self.text = text
        self.start = start
        self.end = end
        self.command = command


class _Protocol(LanguageServerProtocol):
    """Counts the responses to each request."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.responses: Counter[str] = Counter()

    def handle_message(self, message: Any) -> None:
        if getattr(message, "id", None) is not None and not hasattr(message, "method"):
            self.responses[str(message.id)] += 1
        super().handle_message(message)


class Editor:
    """One window with one open document and one cursor (a code point offset).

    ``on_message`` gets what the server would show the user; ``on_status`` the parameters of
    ``fimble/status``. ``asked`` are the ids of all requests for suggestions, and
    ``responses`` says how often the server answered which request.
    """

    def __init__(
        self,
        *,
        on_message: Callable[[str], None] = lambda message: None,
        on_status: Callable[[dict[str, Any]], None] = lambda status: None,
    ) -> None:
        self._client = LanguageClient("fimble-editor", __version__, protocol_cls=_Protocol)
        self._protocol = self._client.protocol
        assert isinstance(self._protocol, _Protocol)
        self.responses = self._protocol.responses
        self.asked: list[str] = []
        self._told: set[asyncio.Future[Any]] = set()
        self._uri = ""
        self.document = Document("")
        self.cursor = 0

        def show(params: types.ShowMessageParams) -> None:
            on_message(params.message)

        def status(params: Any) -> None:
            on_status(plain(params))

        self._client.feature(types.WINDOW_SHOW_MESSAGE)(show)
        self._client.feature("fimble/status")(status)

    @property
    def server_pid(self) -> int:
        """The process of the server, once it was started."""
        server = self._client._server
        assert server is not None, "no server was started"
        return server.pid

    async def start(self, command: Sequence[str], folder: Path) -> None:
        """Starts the server and opens ``folder`` as its workspace."""
        await self._client.start_io(*command)
        await self._client.initialize_async(
            types.InitializeParams(
                capabilities=types.ClientCapabilities(
                    general=types.GeneralClientCapabilities(
                        position_encodings=[types.PositionEncodingKind.Utf16]
                    ),
                    text_document=types.TextDocumentClientCapabilities(
                        inline_completion=types.InlineCompletionClientCapabilities()
                    ),
                ),
                client_info=types.ClientInfo(name="fimble-editor", version=__version__),
                process_id=os.getpid(),
                workspace_folders=[types.WorkspaceFolder(uri_from_path(folder), folder.name)],
            )
        )
        self._client.initialized(types.InitializedParams())

    def open(self, path: Path, text: str, language: str, cursor: int | None = None) -> None:
        """Opens a document with the cursor at an offset, or at its end."""
        self._uri = uri_from_path(path)
        self.document = Document(text, path=str(path), language=language, version=1)
        self.cursor = len(text) if cursor is None else cursor
        self._client.text_document_did_open(
            types.DidOpenTextDocumentParams(
                types.TextDocumentItem(uri=self._uri, language_id=language, version=1, text=text)
            )
        )

    def close(self) -> None:
        """Closes the document, so that another one can be opened."""
        self._client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(self._uri))
        )

    def type_text(self, text: str) -> None:
        """Types at the cursor: one change to the document."""
        self.replace(self.cursor, self.cursor, text)

    def replace(self, start: int, end: int, text: str) -> None:
        """Replaces a range and puts the cursor behind the new text."""
        change = types.TextDocumentContentChangePartial(
            range=types.Range(self._position(start), self._position(end)), text=text
        )
        self.document.apply(Edit(start, end, text))
        self.document.version += 1
        self.cursor = start + len(text)
        self._client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.document.version, self._uri),
                [change],
            )
        )

    def move(self, offset: int) -> None:
        """Puts the cursor elsewhere, and tells the server, as editors do that can."""
        self.cursor = offset
        position = self._position(offset)
        self._protocol.notify(
            "fimble/cursor",
            {
                "uri": self._uri,
                "position": {"line": position.line, "character": position.character},
            },
        )

    async def ask(self) -> list[Proposal]:
        """What the server suggests at the cursor. Cancelling the task cancels the request."""
        identifier = str(uuid.uuid4())
        self.asked.append(identifier)
        params = types.InlineCompletionParams(
            context=types.InlineCompletionContext(
                trigger_kind=types.InlineCompletionTriggerKind.Automatic
            ),
            position=self._position(self.cursor),
            text_document=types.TextDocumentIdentifier(self._uri),
        )
        response = asyncio.ensure_future(
            self._protocol.send_request_async(
                types.TEXT_DOCUMENT_INLINE_COMPLETION, params, identifier
            )
        )
        try:
            answer = await asyncio.shield(response)
        except asyncio.CancelledError:
            # The response still comes, and says that the request was cancelled.
            response.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._protocol.notify(types.CANCEL_REQUEST, types.CancelParams(identifier))
            raise
        items = answer.items if isinstance(answer, types.InlineCompletionList) else answer or []
        return [self._proposal(item) for item in items]

    async def settled(self) -> None:
        """Waits until the server has answered all that was asked, also what was cancelled.

        Raises TimeoutError where an answer does not come.
        """

        async def all_answered() -> None:
            while not all(self.responses[each] for each in self.asked):
                await asyncio.sleep(0.02)

        await asyncio.wait_for(all_answered(), _PATIENCE_SECONDS)

    def accept(self, proposal: Proposal, length: int | None = None) -> None:
        """Puts a suggestion into the document, as the Tab key does; or its first ``length``
        characters. The server hears of it.
        """
        text = proposal.text if length is None else proposal.text[:length]
        self.replace(proposal.start, proposal.end, text)
        command = proposal.command
        if command is None:
            return
        if length is not None and length < len(proposal.text):
            units = len(text.encode("utf-16-le")) // 2
            arguments = [*(command.arguments or ()), units]
            command = types.Command("", "fimble.partiallyAccepted", arguments=arguments)
        request = asyncio.ensure_future(
            self._client.workspace_execute_command_async(
                types.ExecuteCommandParams(command.command, command.arguments)
            )
        )
        self._told.add(request)
        request.add_done_callback(self._told.discard)

    async def stop(self) -> None:
        """Shuts the server down as an editor does when its window closes."""
        if self._told:
            await asyncio.wait(self._told)
        await self._client.shutdown_async(None)
        self._client.exit(None)
        await self._client.stop()  # type: ignore[no-untyped-call]

    async def __aenter__(self) -> Editor:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def _position(self, offset: int) -> types.Position:
        position = self.document.position_at(offset, "utf-16")
        return types.Position(position.line, position.column)

    def _proposal(self, item: types.InlineCompletionItem) -> Proposal:
        text = item.insert_text
        inserted = text if isinstance(text, str) else text.value
        if item.range is None:
            return Proposal(inserted, self.cursor, self.cursor, item.command)
        start, end = item.range.start, item.range.end
        return Proposal(
            inserted,
            self.document.offset_at(start.line, start.character, "utf-16"),
            self.document.offset_at(end.line, end.character, "utf-16"),
            item.command,
        )


@contextlib.asynccontextmanager
async def ready_editor(
    model: str, folder: Path, *, on_message: Callable[[str], None] = lambda message: None
) -> AsyncIterator[Editor]:
    """An editor on ``folder`` and its server, once ``model`` (name or path) is loaded.
    ``on_message`` gets what the user would be shown.

    Raises FimbleError where it cannot be loaded.
    """
    ready, problems = asyncio.Event(), list[str]()

    def on_status(status: dict[str, Any]) -> None:
        if status.get("state") in ("ready", "error"):
            ready.set()

    def told(message: str) -> None:
        problems.append(message)
        on_message(message)

    editor = Editor(on_message=told, on_status=on_status)
    await editor.start([sys.executable, "-m", "fimble", "serve", "--model", model], folder)
    try:
        try:
            await asyncio.wait_for(ready.wait(), _PATIENCE_SECONDS)
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise FimbleError(
                f"The model was not ready within {_PATIENCE_SECONDS:.0f} seconds.",
                next_step="Run `fimble engine status`, or try again.",
            ) from error
        if problems:
            raise FimbleError(problems[0])
        yield editor
    finally:
        await editor.stop()
