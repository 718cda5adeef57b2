"""A server that speaks OpenAI's protocol, as an ``Engine``.

Text leaves the machine here, so what is sent is only what was asked for, encrypted and to the
server that the user chose: certificates are verified, redirects are not followed, and an answer
is text, whatever it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx

from fimble import __version__
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.client import EngineEvent
from fimble.engine.connections import Connections
from fimble.engine.protocol import CompletionChunk, CompletionRequest, Usage
from fimble.engine.remote.abilities import Abilities, find_out
from fimble.engine.remote.breaker import Breaker
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.keys import api_key
from fimble.engine.remote.problems import (
    in_short,
    problem_of_answer,
    problem_of_connection,
)
from fimble.engine.remote.prompts import (
    estimated_tokens,
    messages_body,
    prompt_body,
    without_last_blank,
)
from fimble.engine.remote.proxy import proxy_for
from fimble.engine.remote.reading import (
    UNCOMPRESSED,
    Allowance,
    body_of,
    json_of,
    lines_of,
    pieces_of,
    read_to_end,
    within,
)
from fimble.engine.remote.retry import attempts_for, is_passing, pause_before
from fimble.engine.remote.speed import Speed
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import EngineUnavailable, GenerationFailed, RequestRejected

__all__ = ["RemoteEngine"]

_END = "data: [DONE]"
#: Seconds. Who types does not wait; a long answer's pieces come one by one.
_CONNECT, _PIECE, _CHAT_PIECE = 5.0, 30.0, 120.0


class RemoteEngine(Engine):
    """``find_tokenizer`` loads the one of an installed Qwen2.5 package, if there is one; it is
    called in a thread. With it prompts are counted exactly, and said as token ids where the
    server has the same vocabulary.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        find_tokenizer: Callable[[], PackageTokenizer | None] = lambda: None,
        on_event: Callable[[EngineEvent], None] = lambda event: None,
        breaker: Breaker | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._find_tokenizer = find_tokenizer
        self._tokenizer: PackageTokenizer | None = None
        self._on_event = on_event
        self._breaker = breaker or Breaker()
        self._transport = transport
        self._asking = asyncio.Lock()
        self._http: httpx.AsyncClient | None = None
        self._abilities: Abilities | None = None
        self._speed = Speed()

    # --- Engine --------------------------------------------------------------------------

    async def model_info(self) -> ModelInfo:
        abilities = await self._find_out()
        host = self.endpoint.host
        away = self.endpoint.leaves_machine
        return ModelInfo(
            name=abilities.model,
            window=abilities.window,
            provider=f"remote: {host}",
            fim=abilities.fim,
            continuation=False,
            prefill_tokens_per_s=self._speed.prefill,
            decode_tokens_per_s=self._speed.decode,
            remote=host if away else "",
            # Servers differ in it, and do not say.
            goes_on=False,
        )

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        if self._tokenizer is not None:
            return [len(self._tokenizer.encode_text(text)) for text in texts]
        return [estimated_tokens(text) for text in texts]

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        abilities = await self._find_out()
        prompt, blank = without_last_blank(request.prompt)
        path, body = self._body(replace(request, prompt=prompt), abilities)
        count = self._prompt_tokens(body)
        attempts = attempts_for(request.priority)
        for attempt in range(1, attempts + 1):
            try:
                answers = _behind(blank, self._stream(path, body, request))
                async for chunk in _counted(count, answers):
                    yield chunk
            except _MayPass as error:
                if attempt == attempts:
                    raise error.problem from error
                await asyncio.sleep(pause_before(attempt, error.headers))
            else:
                return

    async def aclose(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    # --- one request ---------------------------------------------------------------------

    def _body(self, request: CompletionRequest, abilities: Abilities) -> tuple[str, dict[str, Any]]:
        """Path and body. Only what every server knows is in it: ours would be refused."""
        body: dict[str, Any] = {
            "model": abilities.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": request.max_tokens,
        }
        for name in ("temperature", "top_p", "seed"):
            if getattr(request, name) is not None:
                body[name] = getattr(request, name)
        if request.n > 1:
            body["n"] = request.n
        if request.top_k:
            body["top_k"] = request.top_k
        if request.stop:
            body["stop"] = list(request.stop[:4])  # what OpenAI allows
        if request.messages:
            return "/chat/completions", {**body, **messages_body(request.messages)}
        if abilities.form is None:
            raise RequestRejected(
                f"{self.endpoint.host} has no completions, only chat.",
                next_step="Use it for chat alone: `fimble engine use URL --for chat`.",
            )
        prompt = prompt_body(request.prompt, abilities.form, self._tokenizer)
        return "/completions", {**body, **prompt}

    def _prompt_tokens(self, body: Mapping[str, Any]) -> int:
        """Of a completion, as far as it is known here; 0 of a chat, which the server lays out."""
        prompt = body.get("prompt", "")
        if not isinstance(prompt, str):
            return len(prompt)
        text = prompt + body.get("suffix", "")
        if self._tokenizer is None:
            return estimated_tokens(text)
        return len(self._tokenizer.encode_text(text))

    async def _stream(
        self, path: str, body: dict[str, Any], request: CompletionRequest
    ) -> AsyncGenerator[CompletionChunk, None]:
        """One try. Raises _MayPass before the first piece, where another try may help."""
        http = await self._connected()
        patience = _CHAT_PIECE if request.priority == "chat" else _PIECE
        timeout = httpx.Timeout(patience, connect=_CONNECT)
        pieces = 0
        allowance = Allowance(request)
        clock = self._speed.request()
        try:
            asked = http.build_request("POST", self._url(path), json=body, timeout=timeout)
            response = await within(patience, http.send(asked, stream=True))
            async with aclosing(response):
                if response.status_code != 200:
                    await self._refused(response)
                lines = lines_of(response, patience)
                async for line in lines:
                    if line == _END:
                        await read_to_end(lines)
                        break
                    chunks = _chunks(line, self.endpoint, request)
                    allowance.take(chunks)
                    for chunk in chunks:
                        pieces += 1
                        clock.saw(chunk)
                        yield chunk
                else:
                    raise GenerationFailed(
                        f"The answer of {self.endpoint.host} broke off before its end.",
                        next_step="Try again.",
                    )
        except httpx.TransportError as error:
            self._breaker.failed()
            problem = problem_of_connection(error, self.endpoint)
            if pieces == 0:
                raise _MayPass(problem, {}) from error
            raise problem from error
        self._breaker.succeeded()

    async def _refused(self, response: httpx.Response) -> None:
        """Raises what an answer with another status than 200 means."""
        said = await body_of(response, _PIECE)
        problem = problem_of_answer(response, said, self.endpoint)
        if is_passing(response.status_code) or response.status_code >= 500:
            self._breaker.failed()
        else:
            self._breaker.succeeded()
        if is_passing(response.status_code):
            raise _MayPass(problem, response.headers)
        raise problem

    # --- the connection ------------------------------------------------------------------

    async def _find_out(self) -> Abilities:
        """What the server can, asked for once. The first time, the user is told where text goes."""
        async with self._asking:
            if self._abilities is not None:
                return self._abilities
            self._on_event(EngineEvent("starting", f"Asking {self.endpoint.host} what it has."))
            self._tokenizer = await asyncio.to_thread(self._find_tokenizer)
            abilities = await find_out(self.endpoint, self._ask, self._tokenizer)
            self._abilities = abilities
            self._on_event(EngineEvent("ready", f"{self.endpoint.host} answers."))
            if self.endpoint.leaves_machine:
                self._on_event(EngineEvent("notice", _warning(self.endpoint)))
            return abilities

    async def _ask(self, path: str, body: dict[str, Any] | None) -> dict[str, Any] | None:
        """For ``abilities``: the answer's object, or None where the server refuses."""
        http = await self._connected()
        timeout = httpx.Timeout(_PIECE, connect=_CONNECT)
        try:
            asked = http.build_request(
                "GET" if body is None else "POST", self._url(path), json=body, timeout=timeout
            )
            response = await within(_PIECE, http.send(asked, stream=True))
            async with aclosing(response):
                said = await body_of(response, _PIECE)
        except httpx.TransportError as error:
            self._breaker.failed()
            raise problem_of_connection(error, self.endpoint) from error
        if response.status_code in (400, 404, 405, 415, 422, 501):
            return None
        if response.status_code != 200:
            if response.status_code >= 500:
                self._breaker.failed()
            raise problem_of_answer(response, said, self.endpoint)
        self._breaker.succeeded()
        try:
            data = json_of(said)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise EngineUnavailable(
                f"{self.endpoint.url} does not speak OpenAI's protocol.",
                next_step="Check the address; it usually ends with /v1.",
            )
        return data

    async def _connected(self) -> httpx.AsyncClient:
        """The client, unless the server is to be left alone for a while."""
        wait = self._breaker.seconds_left
        if wait > 0:
            raise EngineUnavailable(
                f"{self.endpoint.host} failed repeatedly; it is asked again in {wait:.0f} s.",
                next_step="Check the server, or go back with `fimble engine use local`.",
            )
        if self._http is None:
            key = await asyncio.to_thread(api_key, self.endpoint)
            headers = {"User-Agent": f"fimble/{__version__}", **UNCOMPRESSED}
            if key:
                headers["Authorization"] = f"Bearer {key}"
            transport = self._transport or await asyncio.to_thread(_connections, self.endpoint)
            self._http = httpx.AsyncClient(
                headers=headers, follow_redirects=False, trust_env=False, transport=transport
            )
        return self._http

    def _url(self, path: str) -> str:
        return f"{self.endpoint.url}{path}"


def _connections(endpoint: Endpoint) -> Connections:
    """What leaves nothing open of cancelled requests, through the proxy if there is one.
    Certificate authorities are the environment's. Raises EngineUnavailable.
    """
    proxy = proxy_for(endpoint)
    context = httpx.create_ssl_context()
    return Connections(lambda: httpx.AsyncHTTPTransport(verify=context, proxy=proxy))


class _MayPass(Exception):
    """A failure before the first piece that another try may get over."""

    def __init__(self, problem: Exception, headers: Mapping[str, str]) -> None:
        super().__init__(str(problem))
        self.problem = problem
        self.headers = headers


async def _behind(
    blank: str, chunks: AsyncGenerator[CompletionChunk, None]
) -> AsyncGenerator[CompletionChunk, None]:
    """The answers behind ``blank``, which each has to begin with; one that does not is empty."""
    fits: dict[int, bool] = {}
    try:
        async for chunk in chunks:
            if blank and chunk.text and chunk.index not in fits:
                fits[chunk.index] = chunk.text.startswith(blank)
                chunk = replace(chunk, text=chunk.text[len(blank) :])
            yield chunk if fits.get(chunk.index, True) else replace(chunk, text="")
    finally:
        await chunks.aclose()


async def _counted(
    prompt_tokens: int, chunks: AsyncGenerator[CompletionChunk, None]
) -> AsyncGenerator[CompletionChunk, None]:
    """The answers with a usage each. Servers tell it at the end, and who types rarely waits for
    that: until then it is counted here, a token a piece, as if nothing had been reused.
    """
    pieces = 0
    try:
        async for chunk in chunks:
            pieces += 1
            if prompt_tokens and chunk.usage is None:
                chunk = replace(chunk, usage=Usage(prompt_tokens, 0, prompt_tokens, pieces))
            yield chunk
    finally:
        await chunks.aclose()


def _chunks(line: str, endpoint: Endpoint, request: CompletionRequest) -> list[CompletionChunk]:
    """The pieces in one line; raises GenerationFailed for what is none, or tells of an error."""
    if not line.startswith("data:"):
        return []
    try:
        data = json_of(line.removeprefix("data:"))
        if "error" not in data:
            return pieces_of(data, request)
        said = data["error"]
        message = said.get("message") if isinstance(said, dict) else said
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise GenerationFailed(
            f"{endpoint.host} sent an answer that is not OpenAI's protocol.",
            next_step="Check the server's address and version.",
        ) from error
    raise GenerationFailed(
        f"{endpoint.host}: {in_short(str(message))}", next_step="See the server's log."
    )


def _warning(endpoint: Endpoint) -> str:
    plain = "" if endpoint.encrypted else " It is not encrypted on the way."
    return f"Code and questions are sent to {endpoint.host}.{plain}"
