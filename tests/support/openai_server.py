"""A stand-in for servers of OpenAI's protocol that refuse, fail, stall or lie, on loopback.

The servers that work are real ones in the tests; this one is for what those do not do on
demand. It counts letters as tokens, reads control tokens out of a text if ``controls``, and
takes ``suffix`` and token ids where it is told to.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from fimble.engine.protocol import CONTROL_TOKENS
from tests.support.tls_server import CERTIFICATES

__all__ = ["StandInServer"]


@dataclass
class StandInServer:
    """``answer`` is what it says to everything. ``statuses`` come first, one a streamed request:
    200 answers, 0 drops the connection, -1 breaks off in the middle, others refuse.
    ``asked`` has the body of every POST, ``keys`` the Authorization of every request, ``ports`` the
    client's port of each. It speaks TLS with the ``certificate`` of that name.
    """

    answer: str = "a + b"
    statuses: list[int] = field(default_factory=list)
    retry_after: str = ""
    key: str = ""
    models: Any = field(default_factory=lambda: {"data": [{"id": "coder", "max_model_len": 2048}]})
    ids: bool = False
    controls: bool = True
    suffix: bool = False
    completions: bool = True
    raw_event: str = ""
    stall: bool = False
    certificate: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> StandInServer:
        routes = [
            Route("/v1/models", self._list),
            Route("/v1/completions", self._complete, methods=["POST"]),
            Route("/v1/chat/completions", self._complete, methods=["POST"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), port=0, log_level="error", lifespan="off")
        # What a client leaves open stays open, for a test to find it.
        config.timeout_keep_alive = 3600
        if self.certificate:
            config.ssl_certfile = CERTIFICATES / f"{self.certificate}.pem"
            config.ssl_keyfile = CERTIFICATES / "server.key"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.01)
        self.port: int = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, connections included; the port refuses from then on."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()

    @property
    def streamed(self) -> list[dict[str, Any]]:
        """The bodies of requests that were not mere questions about abilities."""
        return [body for body in self.asked if body.get("stream")]

    # --- its answers ---------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        refused = self._refusal(request)
        return refused or JSONResponse(self.models)

    async def _complete(self, request: Request) -> Response:
        refused = self._refusal(request)
        if refused is not None:
            return refused
        body = await request.json()
        self.asked.append(body)
        chat = "messages" in body
        if not chat and not self.completions:
            return JSONResponse({"detail": "Not Found"}, 404)
        tokens = 0 if chat else self._tokens(body)
        if tokens is None:
            return JSONResponse({"error": {"message": "no such field here"}}, 400)
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        if not body.get("stream"):
            return JSONResponse({"choices": [{"text": "a"}], "usage": usage})
        status = self.statuses.pop(0) if self.statuses else 200
        if status > 200:
            headers = {"retry-after": self.retry_after} if self.retry_after else {}
            return JSONResponse({"error": {"message": "not now"}}, status, headers)
        return StreamingResponse(self._events(status, usage), media_type="text/event-stream")

    def _refusal(self, request: Request) -> Response | None:
        given = request.headers.get("authorization", "")
        self.keys.append(given)
        assert request.client is not None
        self.ports.append(request.client.port)
        if self.key and given != f"Bearer {self.key}":
            return JSONResponse({"error": {"message": "who are you?"}}, 401)
        return None

    def _tokens(self, body: dict[str, Any]) -> int | None:
        prompt = body["prompt"]
        if isinstance(prompt, list):
            return len(prompt) if self.ids else None
        if "suffix" in body and not self.suffix:
            return None
        if self.controls:
            for spelling in CONTROL_TOKENS.values():
                prompt = prompt.replace(spelling, "\0")
        return len(prompt) + len(body.get("suffix", ""))

    async def _events(self, status: int, usage: dict[str, int]) -> AsyncIterator[str]:
        try:
            if status == 0:
                raise ConnectionResetError
            if self.raw_event:
                yield f"{self.raw_event}\n\n"
            half = len(self.answer) // 2
            yield _event({"choices": [{"text": self.answer[:half], "index": 0}]})
            if status == -1:
                return
            while self.stall:
                await asyncio.sleep(0.01)
            end = {"text": self.answer[half:], "index": 0, "finish_reason": "stop"}
            yield _event({"choices": [end]})
            yield _event({"choices": [], "usage": usage})
            yield "data: [DONE]\n\n"
        finally:
            self.gone.set()


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
