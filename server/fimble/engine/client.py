"""The user's own engine as an ``Engine``: started on demand, restarted when it died.

HTTP on loopback with server-sent events. Knows nothing of editors; says what happens to
the engine through ``on_event``, so that whoever shows it can.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import httpx

from fimble import system
from fimble.engine.address import EngineAddress, read_address
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.connections import Connections
from fimble.engine.crash import crash_cause
from fimble.engine.launcher import ensure_running, log_path
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CLIENT_HEADER, CompletionChunk, CompletionRequest
from fimble.engine.watchdog import Watchdog
from fimble.engine.wire import (
    chunks_from_json,
    completion_body,
    error_from_json,
    model_info_from_json,
)
from fimble.errors import (
    EngineEnded,
    EngineError,
    EngineUnavailable,
    FimbleError,
    GenerationFailed,
)
from fimble.models.genai_config import canonical_provider
from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = ["EngineEvent", "LocalEngine", "ignore_event", "model_reference"]

#: The line that ends a complete stream of answers; OpenAI's.
_END = "data: [DONE]"

#: This process, among those that the engine serves.
_CLIENT = secrets.token_hex(8)
_FIRST_PAUSE = 1.0
#: How often a load is asked what it is at.
_STAGE_SECONDS = 0.25
#: Stages of a load that may take long, for the user.
_STAGES = {
    "open": "The model's weights are being loaded.",
    "probe": "It is being tried what the provider can do.",
    "warm up": "The provider is warming up; the first time it compiles what the model needs.",
    "reserve": "Memory for prompts is being reserved.",
}
_LONGEST_PAUSE = 60.0
_DYING_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Something that happened to the engine and that its user may want to see.

    ``starting`` and ``loading`` precede work that takes seconds, ``ready`` ends it; ``stage``
    says what a long load is at;
    ``died`` comes once for each unexpected end, ``failed`` when start or load failed;
    ``notice`` tells of a model that is loaded, but not as it was meant to be.
    """

    kind: Literal["starting", "loading", "stage", "ready", "died", "failed", "notice"]
    message: str
    next_step: str = ""


def model_reference(model: str) -> str:
    """A model as the engine understands it: a name as it is, a path made absolute.

    The engine runs in a folder of its own, where a relative path would mean another file.
    """
    if any(mark in model for mark in "/\\") or model.startswith((".", "~")):
        return str(Path(model).expanduser().absolute())
    return model


def ignore_event(event: EngineEvent) -> None:
    """Nobody looks."""


class LocalEngine(Engine):
    """``model`` is the package (name or path), ``provider`` what computes; "" leaves it to
    the engine.
    """

    def __init__(
        self,
        *,
        model: str = "",
        provider: str = "",
        options: EngineOptions | None = None,
        on_event: Callable[[EngineEvent], None] | None = None,
    ) -> None:
        self._model = model_reference(model)
        self._provider = provider
        options = options or EngineOptions()
        self._options = replace(options, model=model_reference(options.model) or self._model)
        self._on_event = on_event or ignore_event
        self._starting = asyncio.Lock()
        self._loading = asyncio.Lock()
        self._address: EngineAddress | None = None
        self._http: httpx.AsyncClient | None = None
        self._watchdog: Watchdog | None = None
        self._info: ModelInfo | None = None
        self._noticed: set[str] = set()
        self._not_before = 0.0
        self._pause = 0.0
        # Whether the last engine that is gone ended unexpectedly.
        self._crashed = False
        # Why the last start failed; None after one that did not.
        self._start_failure: EngineError | None = None

    # --- Engine --------------------------------------------------------------------------

    async def model_info(self) -> ModelInfo:
        return await self.load()

    async def load(self, progress: Progress = ignore_progress) -> ModelInfo:
        """The loaded model; starts the engine and loads it first where need be.

        Raises RuntimeMissing, EngineUnavailable, ModelNotFound, PackageError, LoadFailed.
        """
        async with self._loading:
            http = await self._connect(progress)
            if self._info is not None:
                return self._info
            if not await self._is_loaded(http):
                self._on_event(EngineEvent("loading", "The model is being loaded."))
            progress(ProgressEvent("load model", 0, 1, "steps"))
            try:
                data = await self._load_with_stages(http)
            except FimbleError as error:
                if not isinstance(error, EngineUnavailable):
                    self._on_event(EngineEvent("failed", error.message, error.next_step))
                raise
            self._info = model_info_from_json(data)
            progress(ProgressEvent("load model", 1, 1, "steps"))
            self._on_event(EngineEvent("ready", f"{self._info.name} is loaded."))
            self._tell_notice(self._info.notice)
            return self._info

    def _tell_notice(self, notice: str) -> None:
        """Each once: two models that take each other's place would say so at every turn."""
        if notice and notice not in self._noticed:
            self._noticed.add(notice)
            self._on_event(EngineEvent("notice", notice))

    async def _load_with_stages(self, http: httpx.AsyncClient) -> Any:
        body = {"model": self._model, "provider": self._provider}
        watching = asyncio.create_task(self._tell_stages(http))
        try:
            return await self._post(http, "/load", body)
        finally:
            watching.cancel()

    async def _tell_stages(self, http: httpx.AsyncClient) -> None:
        told = ""
        with contextlib.suppress(httpx.TransportError, ValueError):
            while True:
                await asyncio.sleep(_STAGE_SECONDS)
                stage = str((await http.get("/health")).json().get("stage"))
                if stage != told and stage in _STAGES:
                    told = stage
                    self._on_event(EngineEvent("stage", _STAGES[stage]))

    async def _is_loaded(self, http: httpx.AsyncClient) -> bool:
        """Whether the engine holds the model already, so that nobody has to be told to wait."""
        try:
            with self._waiting():
                health = (await http.get("/health")).json()
        except (httpx.TransportError, ValueError):
            return False  # the next request says what is wrong
        wanted, provider = Path(self._model).name, canonical_provider(self._provider)
        return health.get("state") == "ready" and any(
            wanted in ("", model.get("name"))
            and provider in ("", canonical_provider(str(model.get("provider"))))
            for model in health.get("models", [])
        )

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        http = await self._connect()
        data = await self._post(http, "/tokenize", {"model": self._model, "texts": list(texts)})
        return [int(count) for count in data["counts"]]

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        await self.load()
        http = await self._connect()
        model = model_reference(request.model) or self._model
        body = completion_body(
            replace(request, model=model, provider=request.provider or self._provider), stream=True
        )
        path = "/v1/chat/completions" if request.messages else "/v1/completions"
        complete = False
        try:
            with self._waiting() as heard:
                async with http.stream("POST", path, json=body) as response:
                    if response.status_code != 200:
                        await response.aread()
                        if response.status_code == 400:
                            # The window may have become smaller since the model was loaded.
                            self._info = None
                        raise error_from_json(response.status_code, _json_or_none(response))
                    async for line in response.aiter_lines():
                        heard()
                        complete = complete or line == _END
                        for chunk in _chunks_in(line):
                            self._tell_notice(str(chunk.extra.get("notice", "")))
                            yield chunk
        except httpx.TransportError as error:
            raise await self._lost(error, "The engine ended while it answered.") from error
        if not complete:
            raise GenerationFailed(
                "The engine's answer broke off before its end.",
                next_step="Try again; the engine's log says more.",
            )
        self._pause = 0.0

    async def aclose(self) -> None:
        http, self._http = self._http, None
        if self._watchdog is not None:
            self._watchdog.close()
        if http is not None:
            await http.aclose()

    # --- the connection ------------------------------------------------------------------

    async def _connect(self, progress: Progress = ignore_progress) -> httpx.AsyncClient:
        """A client for a living engine, which is started first where there is none."""
        async with self._starting:
            if self._http is not None and self._address is not None:
                if system.is_alive(self._address.pid, self._address.started_at):
                    return self._http
                self._note_death()
            wait = self._not_before - monotonic()
            if wait > 0 and self._start_failure is not None:
                # The same words, so that whoever shows them says so once.
                raise self._start_failure
            if wait > 0:
                raise EngineUnavailable(
                    f"The engine ended repeatedly; it is started again in {wait:.0f} s.",
                    next_step=f"Its log is {log_path()}.",
                )
            return await self._start(progress)

    async def _start(self, progress: Progress) -> httpx.AsyncClient:
        def on_progress(event: ProgressEvent) -> None:
            # Only when there was none: to find a running one is nothing to tell.
            if event.stage == "start engine" and not event.done:
                self._on_event(EngineEvent("starting", "The engine is being started."))
            progress(event)

        try:
            address = await ensure_running(self._options, on_progress)
        except EngineError as error:
            self._back_off()
            self._start_failure = error
            self._on_event(EngineEvent("failed", error.message, error.next_step))
            raise
        await self.aclose()
        self._start_failure = None
        self._info = None
        self._address = address
        self._http = httpx.AsyncClient(
            base_url=address.url,
            headers={"Authorization": f"Bearer {address.secret}", CLIENT_HEADER: _CLIENT},
            trust_env=False,
            transport=_loopback_connections(),
            # No read limit, since a prefill may take minutes and a dead process closes its
            # connections.
            timeout=httpx.Timeout(None, connect=10.0),
        )
        self._watchdog = Watchdog(address, self._http)
        return self._http

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[Callable[[], None]]:
        """While the block runs the engine owes an answer; the function says that some came."""
        if self._watchdog is None:  # in tests of what goes over the connection alone
            yield lambda: None
            return
        with self._watchdog.waiting():
            yield self._watchdog.heard

    async def _post(self, http: httpx.AsyncClient, path: str, body: dict[str, Any]) -> Any:
        try:
            with self._waiting() as heard:
                response = await http.post(path, json=body)
                heard()
        except httpx.TransportError as error:
            raise await self._lost(error, "The engine ended before it answered.") from error
        if response.status_code != 200:
            raise error_from_json(response.status_code, _json_or_none(response))
        return response.json()

    async def _lost(self, error: httpx.TransportError, message: str) -> EngineError:
        """What a broken connection means: usually that the engine is gone."""
        refused = isinstance(error, httpx.ConnectError)
        if refused or await self._is_gone():
            self._note_death()
            kind = EngineUnavailable if self._crashed else EngineEnded
            return kind(message, next_step="The next request starts it again.")
        return GenerationFailed(
            f"The connection to the engine broke: {type(error).__name__}.",
            next_step="Try again.",
        )

    async def _is_gone(self) -> bool:
        """A process that is killed closes its connections a moment before it is gone."""
        deadline = monotonic() + _DYING_SECONDS
        while (address := self._address) is not None:
            if not system.is_alive(address.pid, address.started_at):
                break
            if monotonic() > deadline:
                return False
            await asyncio.sleep(0.02)
        return True

    def _note_death(self) -> None:
        """Says once that the engine is gone, and decides when it may be started again."""
        if self._address is None:
            return
        published = read_address()
        self._crashed = published is not None and published.pid == self._address.pid
        port = self._address.port
        self._address = None
        self._info = None
        if not self._crashed:
            # An engine that ends on purpose (idle, stopped) takes its runtime file away.
            return
        self._back_off()
        hung = self._watchdog is not None and self._watchdog.bit
        cause = crash_cause(log_path(), port)
        how = "hung and was ended" if hung else "ended unexpectedly"
        how += f", by {cause}" if cause else ""
        self._on_event(
            EngineEvent(
                "died",
                f"The engine {how}; the next request starts it again.",
                f"Its log is {log_path()}.",
            )
        )

    def _back_off(self) -> None:
        """The first restart is immediate; each one without an answer in between waits longer."""
        self._not_before = monotonic() + self._pause
        self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2))


def _loopback_connections() -> Connections:
    """Plain HTTP: no proxy, and no certificates, whose loading takes longer than a request."""
    unused = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limits = httpx.Limits(max_connections=None, keepalive_expiry=20.0)
    return Connections(
        lambda: httpx.AsyncHTTPTransport(verify=unused, trust_env=False, limits=limits)
    )


def _json_or_none(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _chunks_in(line: str) -> list[CompletionChunk]:
    """The pieces in one line of a server-sent event stream; raises the error it reports."""
    if not line.startswith("data: ") or line == _END:
        return []
    data = json.loads(line.removeprefix("data: "))
    if "error" in data:
        raise error_from_json(500, data)
    return chunks_from_json(data)
