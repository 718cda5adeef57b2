"""A server elsewhere that lies, never ends or sends nonsense: a clear error, and little memory."""

from __future__ import annotations

import gzip
import itertools
import json
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.engine.protocol import CompletionRequest, Text, Usage
from fimble.engine.remote import client as client_module
from fimble.engine.remote.abilities import Abilities, find_out
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.reading import json_of, pieces_of
from fimble.errors import EngineError, EngineUnavailable, GenerationFailed, ModelNotFound
from tests.support.raw_server import HEAD, raw_server

REQUEST = CompletionRequest((Text("x"),), max_tokens=8, n=2)
EVENT = b'data: {"choices": [{"text": "a", "index": 0}]}\n\n'
#: Bytes that a reader may hold, whatever comes.
ROOM = 60_000_000


def engine_at(url: str) -> RemoteEngine:
    engine = RemoteEngine(Endpoint.at(url))
    engine._abilities = Abilities("m", 2048, "text")
    return engine


async def failure(ask: Callable[[RemoteEngine], Any], pieces: Iterable[bytes], **more: Any) -> str:
    """What the user is told of it."""
    with raw_server(pieces, **more) as url:
        engine = engine_at(url)
        tracemalloc.start()
        try:
            with pytest.raises(EngineError) as caught:
                await ask(engine)
            assert tracemalloc.get_traced_memory()[1] < ROOM
        finally:
            tracemalloc.stop()
            await engine.aclose()
    said = str(caught.value)
    assert caught.value.next_step and len(said) < 600
    assert said.isprintable() or said.replace("\n", "").isprintable()
    return said


async def complete(engine: RemoteEngine) -> None:
    async for _ in engine.complete(REQUEST):
        pass


def endless(piece: bytes) -> Iterator[bytes]:
    return itertools.repeat(piece)


STREAMS: dict[str, tuple[Callable[[], Iterable[bytes]], str]] = {
    "pieces without end": (lambda: [HEAD, *[EVENT * 100] * 1000], "far more than"),
    "long pieces": (
        lambda: [HEAD, *[b'data: {"choices": [{"text": "%s"}]}\n' % (b"y" * 200_000)] * 9],
        "far more than",
    ),
    "events of nothing": (lambda: [HEAD, *[b'data: {"choices": []}\n' * 1000] * 99], "far more"),
    "one line": (lambda: itertools.chain([HEAD], endless(b"data: " + b"x" * 65536)), "line"),
    "a header line": (
        lambda: itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], endless(b"x" * 65536)),
        "broke",
    ),
    "header lines": (
        lambda: itertools.chain([b"HTTP/1.1 200 OK\r\n"], endless(b"X: y\r\n" * 9000)),
        "broke",
    ),
    "a page": (
        lambda: [HEAD.replace(b"text/event-stream", b"text/html"), b"<html>log in first</html>"],
        "text/html",
    ),
    "a bomb": (
        lambda: [
            HEAD.replace(b"Connection", b"Content-Encoding: gzip\r\nConnection"),
            gzip.compress(b"data: " + b"x" * 80_000_000),
        ],
        "compressed",
    ),
    "depth": (lambda: [HEAD, b"data: " + b"[" * 100_000 + b"\n"], "not OpenAI"),
    "NaN": (lambda: [HEAD, b'data: {"choices": [{"index": NaN}]}\n'], "not OpenAI"),
    "many digits": (lambda: [HEAD, b'data: {"choices": [{"index": %s}]}\n' % (b"9" * 9000)], "not"),
    "another's choice": (lambda: [HEAD, b'data: {"choices": [{"index": 2}]}\n'], "not OpenAI"),
    "a negative one": (lambda: [HEAD, b'data: {"choices": [{"index": -1}]}\n'], "not OpenAI"),
    "a text that is none": (lambda: [HEAD, b'data: {"choices": [{"text": [1]}]}\n'], "not OpenAI"),
    "no HTTP": (lambda: [b"\xff\xfe SSH-2.0\r\n\r\n"], "broke"),
    "a wrong length": (lambda: [b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"], "broke"),
    "a way elsewhere": (
        lambda: [b"HTTP/1.1 307 X\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n"],
        "another address",
    ),
    "an endless refusal": (
        lambda: itertools.chain([b"HTTP/1.1 400 No\r\n\r\n"], endless(b"x" * 65536)),
        "without end",
    ),
    "words that steer": (
        lambda: [
            b"HTTP/1.1 400 No\r\n\r\n",
            json.dumps({"error": {"message": "\x1b]0;x\x07\u202egnp.exe\x9b2J\n" * 99}}).encode(),
        ],
        "gnp.exe",
    ),
}


@pytest.mark.parametrize(("pieces", "why"), STREAMS.values(), ids=STREAMS)
async def test_an_answer(pieces: Callable[[], Iterable[bytes]], why: str) -> None:
    assert why in await failure(complete, pieces())


def dripped(begin: bytes, piece: bytes) -> Iterator[bytes]:
    yield begin
    while True:
        time.sleep(0.05)
        yield piece


DRIPS = {
    "nothing": (b"", b""),
    "a header": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "answers that are only announced": (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
    "signs of life": (HEAD, b": still here\n\n"),
    "a line": (HEAD + b"data: ", b"x"),
    "a refusal": (b"HTTP/1.1 503 Later\r\n\r\n", b"x"),
}


@pytest.mark.parametrize(("begin", "piece"), DRIPS.values(), ids=DRIPS)
async def test_an_answer_that_only_drips(
    begin: bytes, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "_PIECE", 0.5)
    assert "too long" in await failure(complete, dripped(begin, piece))


@pytest.mark.parametrize(
    "body",
    [
        lambda: itertools.chain([b"HTTP/1.1 200 OK\r\n\r\n"], endless(b"x" * 65536)),
        lambda: [b"HTTP/1.1 200 OK\r\n\r\n", b"[" * 100_000],
        lambda: [b"HTTP/1.1 200 OK\r\n\r\n", b'{"data": NaN}'],
        lambda: [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", gzip.compress(b"{}")],
    ],
    ids=["endless", "deep", "NaN", "compressed"],
)
async def test_what_it_says_of_itself(body: Callable[[], Iterable[bytes]]) -> None:
    async def ask(engine: RemoteEngine) -> None:
        engine._abilities = None
        await engine.model_info()

    assert await failure(ask, body())


@pytest.mark.parametrize(
    "entry",
    ["x", {"id": 5}, {"id": "a\x1b[2Jb"}, {"id": "a\u202eb"}, {"id": "x" * 5000}, None, ["id"]],
)
async def test_a_model_with_a_name_that_cannot_be_shown_is_none(entry: Any) -> None:
    async def ask(path: str, body: object) -> dict[str, Any] | None:
        return {"data": [entry]} if path == "/models" else None

    with pytest.raises(ModelNotFound):
        await find_out(Endpoint.at("http://127.0.0.1:1"), ask, None)


@pytest.mark.parametrize("window", [10**30, -1, 0, True, "9", 1e9, None])
async def test_a_window_is_believed_within_reason(window: Any) -> None:
    async def ask(path: str, body: object) -> dict[str, Any] | None:
        return {"data": [{"id": "m", "max_model_len": window}]} if path == "/models" else None

    abilities = await find_out(Endpoint.at("http://127.0.0.1:1"), ask, None)
    assert abilities.window in (4096, 1_048_576)


NUMBERS: st.SearchStrategy[Any] = st.sampled_from(
    [-1, 0, 5, 10**12, 1e308, float("inf"), True, "7", None, [], {}]
)
NAMES = st.sampled_from(
    ["choices", "text", "index", "delta", "content", "usage", "prompt_tokens", "completion_tokens",
     "prompt_tokens_details", "cached_tokens", "timings", "extra", "mean_logprob", "notice",
     "logprobs", "tokens", "finish_reason", "model", "provider", "queued_ms"]
)  # fmt: skip
VALUES = st.recursive(
    NUMBERS | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_of_any_object_nothing_wrong_is_taken(data: dict[str, Any]) -> None:
    try:
        chunks = pieces_of(data, REQUEST)
    except ValueError:
        return
    for chunk in chunks:
        assert isinstance(chunk.text, str) and chunk.index in (0, 1)
        assert chunk.finish_reason in (None, "stop", "length")
        assert chunk.model.isprintable() and chunk.provider.isprintable()
        assert set(chunk.extra) <= {"mean_logprob"} and not chunk.logprobs
        usage = chunk.usage or Usage()
        for count in (usage.prompt_tokens, usage.reused_tokens, usage.completion_tokens):
            assert type(count) is int and 0 <= count <= 10**9


@given(st.binary(max_size=40) | st.text(max_size=40))
def test_what_is_no_json_is_a_value_error(text: str | bytes) -> None:
    try:
        json_of(text)
    except ValueError:
        return


async def test_after_all_that_an_honest_answer_is_still_one() -> None:
    with raw_server([HEAD, EVENT, b"data: [DONE]\n\n"]) as url:
        engine = engine_at(url)
        assert [chunk.text async for chunk in engine.complete(REQUEST)] == ["a"]
        await engine.aclose()
    assert issubclass(GenerationFailed, EngineError) and issubclass(EngineUnavailable, EngineError)
