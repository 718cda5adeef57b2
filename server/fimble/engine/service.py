"""The engine's HTTP service: OpenAI's endpoints and a few of ours, on loopback.

Parses, submits jobs, formats what they deliver, and cancels them when nobody listens any
more. Runs on the event loop and never touches the runtime; the scheduler's thread does.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import psutil
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import fimble
from fimble.engine.answers import Shape, Style, event_line
from fimble.engine.bodies import parse_chat, parse_completion, parse_load, parse_tokenize
from fimble.engine.chat_template import chat_segments, read_chat_template
from fimble.engine.guard import BodyRefused
from fimble.engine.host import ModelHost
from fimble.engine.metrics import Metrics, prometheus_text
from fimble.engine.protocol import (
    CLIENT_HEADER,
    PROTOCOL_VERSION,
    CompletionChunk,
    CompletionRequest,
)
from fimble.engine.scheduler import Done, Event, Job, Scheduler, TooManyRequests
from fimble.engine.wire import error_to_json, model_info_to_json
from fimble.errors import FimbleError, ModelError, RequestRejected

__all__ = ["Service"]


class Service:
    """The application; ``app`` is what the server runs."""

    def __init__(self, host: ModelHost, scheduler: Scheduler, metrics: Metrics) -> None:
        self._host = host
        self._scheduler = scheduler
        self._metrics = metrics
        self._begun = time.monotonic()
        self.app = Starlette(
            routes=[
                Route("/health", self._health),
                Route("/metrics", self._metrics_text),
                Route("/v1/models", self._models),
                Route("/v1/completions", self._completions, methods=["POST"]),
                Route("/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/tokenize", self._tokenize, methods=["POST"]),
                Route("/load", self._load, methods=["POST"]),
            ],
            exception_handlers={
                FimbleError: _on_error,
                HTTPException: _on_http_error,
                BodyRefused: _on_body_refused,
                ClientDisconnect: _on_disconnect,
                Exception: _on_bug,
            },
        )

    # --- asking --------------------------------------------------------------------------

    async def _completions(self, request: Request) -> Response:
        wanted, stream = parse_completion(await _json_body(request))
        return await self._answer(request, wanted, "completion", stream)

    async def _chat(self, request: Request) -> Response:
        messages, wanted, stream = parse_chat(await _json_body(request))
        config = self._host.config(wanted.model)
        template = await run_in_threadpool(read_chat_template, config.folder)
        if template is None:
            raise RequestRejected(
                f"{config.name} has no chat template.",
                next_step="Use an instruct model's package for chat.",
            )
        # The model named by its folder, so that the template and it are the same package's.
        prompt = await run_in_threadpool(chat_segments, template, messages)
        wanted = replace(wanted, prompt=prompt, model=str(config.folder))
        return await self._answer(request, wanted, "chat", stream)

    async def _load(self, request: Request) -> Response:
        model, provider = parse_load(await _json_body(request))
        delivery = self._submit(request, model, provider, None)
        async with _cancelled_with(request.receive, delivery):
            await _collect(delivery)
        loaded = delivery.job.loaded
        if loaded is None:
            raise RequestRejected("The load was cancelled.", next_step="Try again.")
        return JSONResponse(model_info_to_json(loaded.info))

    async def _tokenize(self, request: Request) -> Response:
        wanted = parse_tokenize(await _json_body(request))

        def work() -> dict[str, Any]:
            tokenizer = self._host.tokenizer(self._host.config(wanted.model))
            ids = [tokenizer.encode_text(text) for text in wanted.texts]
            answer: dict[str, Any] = {"counts": [len(each) for each in ids]}
            if wanted.ids:
                answer["ids"] = ids
            return answer

        return JSONResponse(await run_in_threadpool(work))

    async def _answer(
        self, request: Request, wanted: CompletionRequest, style: Style, stream: bool
    ) -> Response:
        delivery = self._submit(request, wanted.model, wanted.provider, wanted)
        shape = Shape(style)
        async with _cancelled_with(request.receive, delivery):
            if not stream:
                return JSONResponse(shape.whole(await _collect(delivery)))
            # The first event decides between a stream and an error with its own status.
            first = await delivery.next()
            if isinstance(first, FimbleError):
                raise first
        if delivery.job.loaded is not None:
            shape.model = delivery.job.loaded.info.name
        return _EventStream(delivery, shape, first)

    def _submit(
        self, request: Request, model: str, provider: str, wanted: CompletionRequest | None
    ) -> _Delivery:
        delivery = _Delivery(self._scheduler, asyncio.get_running_loop())
        client = request.headers.get(CLIENT_HEADER, "")[:64]
        job = Job(model, wanted, delivery.put, provider, client)
        delivery.job = job
        self._scheduler.submit(job)
        return delivery

    # --- looking -------------------------------------------------------------------------

    async def _models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": self._model_list()})

    async def _health(self, request: Request) -> Response:
        state = self._host.state
        return JSONResponse(
            {
                "state": state,
                "stage": self._host.stage,
                "pid": os.getpid(),
                "version": fimble.__version__,
                "protocol": PROTOCOL_VERSION,
                "uptime_s": round(time.monotonic() - self._begun, 3),
                "rss_bytes": _rss_bytes(),
                "waiting": self._scheduler.waiting,
                "models": self._model_list(),
                "slots": self._slot_list(),
                "freed": {what: self._metrics.freed[what] for what in ("slots", "models")},
            }
        )

    async def _metrics_text(self, request: Request) -> Response:
        slots = self._slot_list()
        gauges = {
            "slots": float(len(slots)),
            "slots_busy": float(sum(slot["busy"] for slot in slots)),
            "slot_tokens": float(sum(slot["tokens"] for slot in slots)),
            "requests_waiting": float(self._scheduler.waiting),
            "resident_bytes": float(_rss_bytes()),
        }
        return PlainTextResponse(
            prometheus_text(self._metrics, gauges),
            media_type="text/plain; version=0.0.4; charset=utf-8",
        )

    def _model_list(self) -> list[dict[str, Any]]:
        return [
            {**model_info_to_json(loaded.info), "state": self._host.state}
            for loaded in self._host.models
        ]

    def _slot_list(self) -> list[dict[str, Any]]:
        return [
            {"model": loaded.info.name, "tokens": len(slot.ids), "busy": slot.holder is not None}
            for loaded in self._host.models
            for slot in (loaded.pool.slots if loaded.pool is not None else ())
        ]


class _Delivery:
    """What a job delivers on the worker's thread, to be awaited on the event loop's."""

    job: Job

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._events: asyncio.Queue[Event] = asyncio.Queue()

    def put(self, event: Event) -> None:
        # The loop is closed when the process ends while the worker still works.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def next(self) -> Event:
        return await self._events.get()

    def cancel(self) -> None:
        self._scheduler.cancel(self.job)


async def _collect(delivery: _Delivery) -> list[CompletionChunk]:
    """All chunks of a job. Raises its error."""
    chunks: list[CompletionChunk] = []
    while True:
        event = await delivery.next()
        if isinstance(event, FimbleError):
            raise event
        if isinstance(event, Done):
            return chunks
        chunks.append(event)


@contextlib.asynccontextmanager
async def _cancelled_with(receive: Receive, delivery: _Delivery) -> AsyncGenerator[None, None]:
    """Cancels the job when the client closes the connection, or we stop waiting for it."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        delivery.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except BaseException:
        delivery.cancel()
        raise
    finally:
        watching.cancel()


class _EventStream(Response):
    """Server-sent events of a job, from ``first`` on; OpenAI's framing."""

    media_type = "text/event-stream"

    def __init__(self, delivery: _Delivery, shape: Shape, first: Event) -> None:
        self._delivery = delivery
        self._shape = shape
        self._first = first
        # Not Response's own, which would announce a length.
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({"cache-control": "no-store"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Starlette's own streaming response notices a closed connection only when it
        # sends, and with some servers not even then.
        async with _cancelled_with(receive, self._delivery):
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for line in self._lines():
                body = {"type": "http.response.body", "body": line.encode(), "more_body": True}
                await send(body)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _lines(self) -> AsyncGenerator[str, None]:
        event = self._first
        while not isinstance(event, Done):
            if isinstance(event, FimbleError):
                yield event_line(error_to_json(event))
                return
            yield event_line(self._shape.piece(event))
            event = await self._delivery.next()
        yield "data: [DONE]\n\n"


async def _json_body(request: Request) -> Any:
    raw = await request.body()
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise RequestRejected(
            f"The body is not valid JSON: {error}.", next_step="Send a JSON object."
        ) from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@functools.cache
def _own_process() -> psutil.Process:
    return psutil.Process()


def _rss_bytes() -> int:
    return int(_own_process().memory_info().rss)


# --- errors ------------------------------------------------------------------------------


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, FimbleError)
    if isinstance(error, TooManyRequests):
        status = 429
    elif isinstance(error, ModelError):
        status = 404
    elif isinstance(error, RequestRejected):
        status = 400
    else:
        status = 503
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse(error_to_json(error, kind=kind), status_code=status)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    rejected = RequestRejected(
        f"{request.method} {request.url.path}: {error.detail}.",
        next_step="The engine has /v1/completions, /v1/chat/completions, /v1/models, "
        "/tokenize, /load, /health and /metrics.",
    )
    content = error_to_json(rejected, kind="invalid_request_error")
    return JSONResponse(content, status_code=error.status_code, headers=error.headers)


async def _on_body_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, BodyRefused)
    return error.answer


async def _on_disconnect(request: Request, error: Exception) -> Response:
    # Nobody reads it; 499 is what servers log for it.
    return Response(status_code=499)


async def _on_bug(request: Request, error: Exception) -> Response:
    content = {
        "error": {
            "message": f"The engine failed ({type(error).__name__}).",
            "type": "server_error",
            "code": "internal_error",
            "next_step": "The engine's log has the details.",
        }
    }
    return JSONResponse(content, status_code=500)
