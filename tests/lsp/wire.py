"""A client that speaks JSON-RPC and nothing more: it sees every message as it was sent.

It holds all that the server sends against the specification (``conformance``), counts answers,
so that a test can say "exactly one", and can send what no well-behaved client would.
``in_process`` runs a server on pipes in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from fimble.engine.base import Engine
from fimble.engine.client import EngineEvent
from fimble.lsp.roles import ModelChoice, Roles
from fimble.lsp.server import FimbleServer
from fimble.lsp.transport import messages_from, read_in_thread
from tests.lsp.conformance import Conformance
from tests.support.waiting import PATIENCE

__all__ = ["Wire", "in_process"]


@dataclass
class Wire:
    """One side of a connection. ``config`` is the answer to ``workspace/configuration``.

    A ``silent`` client answers no request of the server's.
    """

    write: Callable[[bytes], Any]
    config: Any = None
    silent: bool = False
    messages: list[dict[str, Any]] = field(default_factory=list)
    next_id: int = 0
    closed: bool = False
    conformance: Conformance = field(default_factory=Conformance)

    async def read(self, reader: asyncio.StreamReader) -> None:
        """Collects messages until the other side closes, and answers its requests."""
        async for message in messages_from(reader):
            self.messages.append(message)
            self.conformance.received(message)
            if "id" in message and "method" in message and not self.silent:
                result = [self.config] if message["method"] == "workspace/configuration" else None
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self.closed = True

    def send(self, message: Any) -> None:
        """Sends a message as it is."""
        self.conformance.sent(message)
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    @contextlib.contextmanager
    def in_one_breath(self) -> Iterator[None]:
        """What is sent meanwhile goes out in one piece, so that nothing comes in between."""
        write = self.write
        pieces: list[bytes] = []
        self.write = pieces.append
        try:
            yield
        finally:
            self.write = write
        write(b"".join(pieces))

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: Any = None) -> int:
        """Sends a request; its id."""
        self.next_id += 1
        self.send({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params})
        return self.next_id

    async def request(self, method: str, params: Any = None, *, patience: float = PATIENCE) -> Any:
        """The result of a request."""
        answer = await self.answer(self.ask(method, params), patience=patience)
        assert "error" not in answer, answer
        return answer.get("result")

    async def answer(self, request: int, *, patience: float = PATIENCE) -> dict[str, Any]:
        """The response to request ``request``."""
        await self.until(lambda: bool(self.answers(request)), patience=patience)
        return self.answers(request)[0]

    def answers(self, request: int | None) -> list[dict[str, Any]]:
        return [m for m in self.messages if "method" not in m and m.get("id") == request]

    def sent(self, method: str) -> list[Any]:
        """Parameters of every notification or request of that method so far."""
        return [m.get("params") for m in self.messages if m.get("method") == method]

    async def until(self, holds: Callable[[], bool], *, patience: float = PATIENCE) -> None:
        """Waits until ``holds()``; fails after ``patience`` seconds, or without a server."""
        deadline = asyncio.get_running_loop().time() + patience
        while not holds():
            assert not self.closed, f"the server is gone; it sent {self.messages}"
            assert asyncio.get_running_loop().time() < deadline, self.messages
            await asyncio.sleep(0.005)

    # --- what every session does -----------------------------------------------------------

    async def initialize(self, **more: Any) -> Any:
        """Opens the session; ``more`` are further parameters of ``initialize``."""
        params = {"processId": None, "rootUri": None, "capabilities": {}, **more}
        result = await self.request("initialize", params)
        self.notify("initialized", {})
        return result

    def open(self, uri: str, text: str, language: str = "python", version: int = 1) -> None:
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        document = {"uri": uri, "version": version}
        self.notify(
            "textDocument/didChange", {"textDocument": document, "contentChanges": list(changes)}
        )

    def ask_completion(self, uri: str, line: int, character: int) -> int:
        return self.ask("textDocument/inlineCompletion", completion_params(uri, line, character))

    async def complete(
        self, uri: str, line: int, character: int, *, patience: float = PATIENCE
    ) -> list[dict[str, Any]]:
        """The items of an inline completion."""
        params = completion_params(uri, line, character)
        result = await self.request("textDocument/inlineCompletion", params, patience=patience)
        items: list[dict[str, Any]] = result["items"]
        return items

    async def quit(self) -> None:
        await self.request("shutdown")
        self.notify("exit")


def completion_params(uri: str, line: int, character: int) -> dict[str, Any]:
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": character},
        "context": {"triggerKind": 2},
    }


@dataclass
class Session:
    """A running server and the client on it. ``tell`` lets something happen to the engine,
    ``choices`` are the models and providers of ``engines``.
    """

    wire: Wire
    server: FimbleServer
    serving: asyncio.Task[int]
    engines: list[Any]
    tell: Callable[[EngineEvent], None]
    choices: list[ModelChoice]


@contextlib.asynccontextmanager
async def in_process(
    make_engine: Callable[[str], Engine], *, model: str = "", config: Any = None
) -> AsyncIterator[Session]:
    """A server on pipes; ``make_engine`` gets the model and is called once for each."""
    to_server, from_client = os.pipe()
    to_client, from_server = os.pipe()
    engines: list[Engine] = []
    choices: list[ModelChoice] = []
    listeners: list[Callable[[EngineEvent], None]] = []

    def connect(choice: ModelChoice, on_event: Callable[[EngineEvent], None]) -> Engine:
        listeners.append(on_event)
        engines.append(make_engine(choice.model))
        choices.append(choice)
        return engines[-1]

    server = FimbleServer(connect, roles=Roles(ModelChoice(model)))
    serving = asyncio.create_task(
        server.run(io.FileIO(to_server, "rb"), io.FileIO(from_server, "wb"))
    )
    wire = Wire(lambda data: os.write(from_client, data), config=config)
    reader = read_in_thread(io.FileIO(to_client, "rb"))
    reading = asyncio.create_task(wire.read(reader))
    try:
        yield Session(wire, server, serving, engines, lambda event: listeners[-1](event), choices)
    finally:
        with contextlib.suppress(OSError):
            os.close(from_client)
        await serving
        reading.cancel()
