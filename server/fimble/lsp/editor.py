"""The editor's side of the protocol, just big enough to open, type, ask and accept.

For the demo, benchmarks and tests: they meet the server as a real editor does, over stdio.
Knows nothing of what the server is made of.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from fimble import __version__
from fimble.system import uri_from_path
from fimble_context.syntax import Document, Edit

__all__ = ["Editor", "Proposal"]


class Proposal:
    """A suggestion as the server sent it, and the code point range it replaces."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text = text
        self.start = start
        self.end = end


class Editor:
    """One window with one open document and one cursor (a code point offset).

    ``on_message`` gets what the server would show the user; ``on_status`` the parameters of
    ``fimble/status``.
    """

    def __init__(
        self,
        *,
        on_message: Callable[[str], None] = lambda message: None,
        on_status: Callable[[dict[str, Any]], None] = lambda status: None,
    ) -> None:
        self._client = LanguageClient("fimble-editor", __version__)
        self._uri = ""
        self.document = Document("")
        self.cursor = 0

        def show(params: types.ShowMessageParams) -> None:
            on_message(params.message)

        def status(params: Any) -> None:
            on_status(_plain(params))

        self._client.feature(types.WINDOW_SHOW_MESSAGE)(show)
        self._client.feature("fimble/status")(status)

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

    def open(self, path: Path, text: str, language: str) -> None:
        """Opens a document with the cursor at its end."""
        self._uri = uri_from_path(path)
        self.document = Document(text, path=str(path), language=language, version=1)
        self.cursor = len(text)
        self._client.text_document_did_open(
            types.DidOpenTextDocumentParams(
                types.TextDocumentItem(uri=self._uri, language_id=language, version=1, text=text)
            )
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

    async def ask(self) -> list[Proposal]:
        """What the server suggests at the cursor."""
        answer = await self._client.text_document_inline_completion_async(
            types.InlineCompletionParams(
                context=types.InlineCompletionContext(
                    trigger_kind=types.InlineCompletionTriggerKind.Automatic
                ),
                position=self._position(self.cursor),
                text_document=types.TextDocumentIdentifier(self._uri),
            )
        )
        items = answer.items if isinstance(answer, types.InlineCompletionList) else answer or []
        return [self._proposal(item) for item in items]

    def accept(self, proposal: Proposal) -> None:
        """Puts a suggestion into the document, as the Tab key does."""
        self.replace(proposal.start, proposal.end, proposal.text)

    async def stop(self) -> None:
        """Shuts the server down as an editor does when its window closes."""
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
            return Proposal(inserted, self.cursor, self.cursor)
        start, end = item.range.start, item.range.end
        return Proposal(
            inserted,
            self.document.offset_at(start.line, start.character, "utf-16"),
            self.document.offset_at(end.line, end.character, "utf-16"),
        )


def _plain(params: Any) -> dict[str, Any]:
    """A notification's parameters as a dictionary; pygls gives unknown ones as objects."""
    if isinstance(params, dict):
        return params
    if hasattr(params, "_asdict"):
        return dict(params._asdict())
    return dict(vars(params))
