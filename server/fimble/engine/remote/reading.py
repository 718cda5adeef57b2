"""What a server sends, read within bounds: it may be hostile, or no server of models at all.

Sizes, times and counts are bounded, nothing is decompressed, and of an answer's fields only those
that we know are taken, where they have the type and the range that they must have.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, TypeGuard, TypeVar

import httpx

from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.engine.remote.problems import in_short
from fimble.engine.wire import chunks_from_json
from fimble.errors import GenerationFailed

__all__ = [
    "UNCOMPRESSED",
    "Allowance",
    "body_of",
    "json_of",
    "lines_of",
    "pieces_of",
    "read_to_end",
    "within",
]

#: A few bytes could become gigabytes.
UNCOMPRESSED = {"Accept-Encoding": "identity"}

#: Bytes. No honest answer is as long; a hostile server could fill the memory.
_LONGEST_LINE, _LONGEST_BODY = 1_000_000, 4_000_000
_MOST_TOKENS = 1_000_000_000
#: Lines and characters for each token that was asked for, and so many more.
_LINES, _MORE_LINES = 4, 1000
_CHARACTERS, _MORE_CHARACTERS = 200, 100_000

#: The longest wait for the end of a stream whose last event has come.
_END_SECONDS = 0.05

_T = TypeVar("_T")


async def within(seconds: float, work: Awaitable[_T]) -> _T:
    """What ``work`` gives. Raises httpx.ReadTimeout where it takes longer."""
    try:
        return await asyncio.wait_for(work, max(0.001, seconds))
    except asyncio.TimeoutError as error:
        raise httpx.ReadTimeout("it does not come to an end") from error


async def body_of(response: httpx.Response, seconds: float) -> bytes:
    """A whole answer. Raises httpx.TransportError and GenerationFailed."""
    _check_encoding(response)

    async def read() -> bytes:
        body = bytearray()
        async for piece in response.aiter_raw():
            body += piece
            if len(body) > _LONGEST_BODY:
                raise GenerationFailed(
                    "The server sent an answer without end.",
                    next_step="Check the server's address.",
                )
        return bytes(body)

    return await within(seconds, read())


async def lines_of(response: httpx.Response, seconds: float) -> AsyncGenerator[str, None]:
    """The lines of an event stream, each of bounded length; one with data has to come within
    ``seconds`` each time. Raises httpx.TransportError and GenerationFailed.
    """
    _check_encoding(response)
    kind = response.headers.get("content-type", "text/event-stream").partition(";")[0].strip()
    if kind.lower() != "text/event-stream":
        raise GenerationFailed(
            f"The server sent {in_short(kind)} where a stream of events was asked for.",
            next_step="Check the server's address.",
        )
    now = asyncio.get_running_loop().time
    pieces = response.aiter_raw()
    deadline = now() + seconds
    rest = b""
    while True:
        try:
            piece = await within(deadline - now(), pieces.__anext__())
        except StopAsyncIteration:
            break
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            _check_length(line)
            yield line.decode("utf-8", "replace").rstrip("\r")
            if line.startswith(b"data:"):
                deadline = now() + seconds
        _check_length(rest)
    if rest:
        yield rest.decode("utf-8", "replace").rstrip("\r")


async def read_to_end(lines: AsyncGenerator[str, None]) -> None:
    """Reads what is behind the last event, nothing as a rule: only a connection whose answer was
    read to its end is used again. One that stays open is not waited for.
    """

    async def read() -> None:
        async for _ in lines:
            pass

    with contextlib.suppress(httpx.TransportError, GenerationFailed):
        await within(_END_SECONDS, read())


def _check_length(line: bytes) -> None:
    if len(line) > _LONGEST_LINE:
        raise GenerationFailed(
            "The server sent a line without end.", next_step="Check the server's address."
        )


def _check_encoding(response: httpx.Response) -> None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise GenerationFailed(
            "The server sent a compressed answer, which was not asked for.",
            next_step="Switch compression off there.",
        )


class Allowance:
    """How much of an answer is taken: some times of what was asked for."""

    def __init__(self, request: CompletionRequest) -> None:
        tokens = request.max_tokens * request.n
        self._lines = tokens * _LINES + _MORE_LINES
        self._characters = tokens * _CHARACTERS + _MORE_CHARACTERS

    def take(self, chunks: list[CompletionChunk]) -> None:
        """Counts the pieces of one line. Raises GenerationFailed where it is too much."""
        self._lines -= 1
        self._characters -= sum(len(chunk.text) for chunk in chunks)
        if self._lines < 0 or self._characters < 0:
            raise GenerationFailed(
                "The server sent far more than it was asked for.",
                next_step="Check the server's address.",
            )


def json_of(text: str | bytes) -> Any:
    """The value. Raises ValueError, also for NaN and for what is nested too deeply."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def pieces_of(data: dict[str, Any], request: CompletionRequest) -> list[CompletionChunk]:
    """The pieces in one event. Raises ValueError for what is none."""
    choices = data.get("choices") or []
    if not isinstance(choices, list):
        raise ValueError("choices is no list")
    known: dict[str, Any] = {
        "choices": [_choice(each, request.n) for each in choices],
        "model": _word(data.get("model")),
        "provider": _word(data.get("provider")),
    }
    if isinstance(data.get("usage"), dict):
        known["usage"] = _usage(data["usage"])
    timings = data.get("timings")
    if isinstance(timings, dict) and all(map(_is_amount, timings.values())):
        known["timings"] = timings
    certainty = data["extra"].get("mean_logprob") if isinstance(data.get("extra"), dict) else None
    if _is_number(certainty) and float(certainty) <= 0:
        known["extra"] = {"mean_logprob": certainty}
    return chunks_from_json(known)


def _choice(choice: Any, candidates: int) -> dict[str, Any]:
    if not isinstance(choice, dict):
        raise ValueError("a choice is no object")
    index = choice.get("index") or 0
    if type(index) is not int or not 0 <= index < candidates:
        raise ValueError("a choice that was not asked for")
    delta = choice.get("delta") or {}
    text = choice.get("text") or (delta.get("content") if isinstance(delta, dict) else None) or ""
    if not isinstance(text, str):
        raise ValueError("a text that is none")
    reason = choice.get("finish_reason")
    if reason is not None and reason != "length":
        reason = "stop"
    return {"text": text, "index": index, "finish_reason": reason}


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Counts that can be; what cannot counts as not said."""
    details = usage.get("prompt_tokens_details")
    known = _counts(usage, "prompt_tokens", "completion_tokens", "reused_tokens", "computed_tokens")
    if isinstance(details, dict):
        known["prompt_tokens_details"] = _counts(details, "cached_tokens")
    return known


def _counts(source: dict[str, Any], *names: str) -> dict[str, Any]:
    return {
        name: source[name]
        for name in names
        if isinstance(source.get(name), int)
        and not isinstance(source[name], bool)
        and 0 <= source[name] <= _MOST_TOKENS
    }


def _word(value: Any) -> str:
    return in_short(value) if isinstance(value, str) else ""


def _is_number(value: Any) -> TypeGuard[float]:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) < 1e15
        and math.isfinite(value)
    )


def _is_amount(value: Any) -> bool:
    return _is_number(value) and value >= 0
