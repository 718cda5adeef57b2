"""A server elsewhere as an engine: what it is asked, and what its failures become."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from fimble.engine.client import EngineEvent
from fimble.engine.connections import KEPT
from fimble.engine.protocol import ChatMessage, CompletionRequest, Control, Text, Usage
from fimble.engine.remote import client as client_module
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.fall_back import FallBackEngine
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import (
    EngineUnavailable,
    FimbleError,
    GenerationFailed,
    ModelNotFound,
    RequestRejected,
)
from tests.support.openai_server import StandInServer
from tests.support.scripted_engine import Answer, ScriptedEngine
from tests.support.tiny import make_tiny_package
from tests.support.waiting import eventually

PROMPT = (
    Control("fim_prefix"),
    Text("def add(a, b):\n    return"),
    Control("fim_suffix"),
    Text("\n"),
    Control("fim_middle"),
)
TYPED = CompletionRequest(PROMPT)
ASKED = CompletionRequest("", messages=(ChatMessage("user", "why?"),), priority="chat")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "pause_before", lambda attempt, headers: 0.0)
    monkeypatch.delenv("FIMBLE_API_KEY", raising=False)
    # A proxy must never see what is meant for loopback.
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")


async def said(engine: RemoteEngine, request: CompletionRequest = TYPED) -> str:
    try:
        return "".join([chunk.text async for chunk in engine.complete(request)])
    finally:
        await engine.aclose()


def at(server: StandInServer, **more: str) -> RemoteEngine:
    return RemoteEngine(Endpoint.at(server.url, **more))  # type: ignore[arg-type]


async def test_an_answer_and_what_was_asked() -> None:
    with StandInServer() as server:
        assert await said(at(server)) == "a + b"
        assert await said(at(server), ASKED) == "a + b"
    typed, asked = server.streamed
    assert typed["prompt"] == (
        "<|fim_prefix|>def add(a, b):\n    return<|fim_suffix|>\n<|fim_middle|>"
    )
    assert typed["model"] == asked["model"] == "coder"
    assert asked["messages"] == [{"role": "user", "content": "why?"}]
    # Only what OpenAI's protocol has: other servers refuse what they do not know.
    assert set(typed) == {
        "model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "prompt",
    }  # fmt: skip


async def test_the_next_request_takes_the_connection_of_an_answer_that_came_to_its_end() -> None:
    with StandInServer() as server:
        engine = at(server)
        for request in (TYPED, ASKED, TYPED):
            assert [chunk.text async for chunk in engine.complete(request)]
        await engine.aclose()
    assert len(server.streamed) == 3 and len(set(server.ports[-3:])) == 1


@pytest.mark.parametrize(
    ("server", "form"),
    [
        (StandInServer(controls=True), "text"),
        (StandInServer(controls=False, suffix=True), "suffix"),
        (StandInServer(controls=False), "plain"),
        (StandInServer(completions=False), None),
    ],
)
async def test_what_a_server_takes_is_found_out(server: StandInServer, form: str | None) -> None:
    with server:
        engine = at(server)
        info = await engine.model_info()
        assert engine._abilities is not None
        assert engine._abilities.form == form
        assert info.fim is (form in ("text", "suffix"))
        assert (info.name, info.window, info.continuation) == ("coder", 2048, False)
        asked = len(server.asked)
        await engine.model_info()
        assert len(server.asked) == asked  # once is enough
        await engine.aclose()


async def test_token_ids_go_only_where_the_vocabulary_is_the_same(tmp_path: Path) -> None:
    tokenizer = PackageTokenizer(make_tiny_package(tmp_path / "tiny") / "tokenizer.json")
    with StandInServer(ids=True) as server:  # it counts letters: another vocabulary
        engine = RemoteEngine(Endpoint.at(server.url), find_tokenizer=lambda: tokenizer)
        assert await said(engine) == "a + b"
    assert isinstance(server.streamed[0]["prompt"], str)


@pytest.mark.parametrize(("answer", "shown"), [(" a + b", "a + b"), ("a", ""), ("", "")])
async def test_a_blank_that_was_typed_is_no_part_of_the_answer(answer: str, shown: str) -> None:
    typed = CompletionRequest((Control("fim_prefix"), Text("return "), *PROMPT[2:]))
    with StandInServer(answer=answer) as server:
        assert await said(at(server), typed) == shown
    assert server.streamed[0]["prompt"].startswith("<|fim_prefix|>return<|fim_suffix|>")


async def test_tokens_are_counted_where_an_answer_is_ended_before_the_server_tells() -> None:
    with StandInServer() as server:
        engine = at(server)
        chunks = [chunk async for chunk in engine.complete(CompletionRequest("x" * 28))]
        await engine.aclose()
    assert [chunk.usage for chunk in chunks] == [
        Usage(10, 0, 10, 1),  # guessed, without a tokenizer
        Usage(10, 0, 10, 2),
        Usage(28, 0, 28, 1),  # the server's own
    ]


async def test_only_chat() -> None:
    with StandInServer(completions=False) as server:
        with pytest.raises(RequestRejected, match="only chat"):
            await said(at(server))
        assert await said(at(server), ASKED) == "a + b"


@pytest.mark.parametrize(
    ("models", "window"),
    [
        ({"data": [{"id": "m"}]}, 4096),
        ({"data": [{"id": "m", "meta": {"n_ctx": 8192}}]}, 8192),
        ({"data": [{"id": "m", "max_model_len": "many"}]}, 4096),
        ({"data": ["?", {"id": "m", "context_length": 16}]}, 16),
    ],
)
async def test_the_window(models: object, window: int) -> None:
    with StandInServer(models=models) as server:
        engine = at(server)
        assert (await engine.model_info()).window == window
        await engine.aclose()


async def test_a_model_that_is_not_there() -> None:
    with StandInServer() as server:
        with pytest.raises(ModelNotFound, match="no model 32b") as caught:
            await said(at(server, model="32b"))
        assert "coder" in caught.value.next_step
        server.models = {"data": []}
        with pytest.raises(ModelNotFound):
            await said(at(server))
        assert await said(at(server, model="32b")) == "a + b"


async def test_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with StandInServer(key="sesame") as server:
        with pytest.raises(EngineUnavailable, match="401") as caught:
            await said(at(server))
        assert "FIMBLE_API_KEY" in caught.value.next_step
        monkeypatch.setenv("FIMBLE_API_KEY", "sesame")
        assert await said(at(server)) == "a + b"
        monkeypatch.setenv("BOX_KEY", "wrong")
        with pytest.raises(EngineUnavailable) as caught:
            await said(at(server, key_variable="BOX_KEY"))
        assert "BOX_KEY" in str(caught.value)
        assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("status", [0, 429, 503])
async def test_a_chat_is_asked_again_and_typing_is_not(status: int) -> None:
    with StandInServer(statuses=[status, status]) as server:
        assert await said(at(server), ASKED) == "a + b"
        assert len(server.streamed) == 3
        server.statuses = [status]
        with pytest.raises(EngineUnavailable):
            await said(at(server))
        assert len(server.streamed) == 4


async def test_what_is_refused_is_not_asked_again() -> None:
    with StandInServer(statuses=[400, 500]) as server:
        with pytest.raises(RequestRejected, match="not now"):
            await said(at(server), ASKED)
        with pytest.raises(EngineUnavailable, match="500"):
            await said(at(server), ASKED)
        assert len(server.streamed) == 2


async def test_an_address_that_points_elsewhere_is_not_followed() -> None:
    with StandInServer(statuses=[307]) as server, pytest.raises(EngineUnavailable, match="another"):
        await said(at(server))


@pytest.mark.parametrize(
    ("status", "raw", "why"),
    [
        (-1, "", "broke off"),
        (200, "data: {", "not OpenAI"),
        (200, "data: [1]", "not OpenAI"),
        (200, 'data: {"error": {"message": "out of\\u001b[31m memory"}}', "memory"),
        (200, "data: " + "x" * 1_100_000, "without end"),
    ],
)
async def test_an_answer_that_is_none(status: int, raw: str, why: str) -> None:
    with StandInServer(statuses=[status], raw_event=raw) as server:
        with pytest.raises(FimbleError, match=why) as caught:
            await said(at(server))
        assert isinstance(caught.value, GenerationFailed)
        assert "\x1b" not in str(caught.value)


async def test_a_server_that_speaks_something_else() -> None:
    with (
        StandInServer(models=["hello"]) as server,
        pytest.raises(EngineUnavailable, match="OpenAI"),
    ):
        await said(at(server))


async def test_giving_up_ends_the_work_there() -> None:
    with StandInServer(stall=True) as server:
        engine = at(server)
        chunks = engine.complete(TYPED)
        assert (await anext(chunks)).text == "a "
        await chunks.aclose()
        assert await asyncio.to_thread(server.gone.wait, 60)
        await engine.aclose()


async def test_one_that_fails_again_and_again_is_left_alone() -> None:
    with StandInServer() as server:
        engine = at(server)
        await engine.model_info()
        server.statuses = [503] * 3
        for _ in range(3):
            with pytest.raises(EngineUnavailable, match="503"):
                await said(engine)
        asked = len(server.asked)
        with pytest.raises(EngineUnavailable, match="asked again in"):
            await said(engine)
        assert len(server.asked) == asked


async def test_falling_back_and_returning() -> None:
    events: list[EngineEvent] = []
    local = ScriptedEngine([Answer("local"), Answer("local")])
    with StandInServer(statuses=[503]) as server:
        engine = FallBackEngine(at(server), local, events.append)

        async def ask() -> str:
            return "".join([chunk.text async for chunk in engine.complete(TYPED)])

        assert [await ask(), await ask()] == ["local", "a + b"]
        server.statuses = [400]
        # What is refused by one is no work for the other.
        with pytest.raises(RequestRejected):
            await ask()
    assert await ask() == "local"
    await engine.aclose()
    assert [event.kind for event in events] == ["notice"] * 3
    assert "meanwhile" in events[0].message
    assert "answers again" in events[1].message


@pytest.mark.parametrize(
    ("url", "told"),
    [("http://box.example", ["not encrypted"]), ("https://box.example", ["box.example"])],
)
async def test_that_text_leaves_the_machine_is_told(url: str, told: list[str]) -> None:
    import httpx

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, stream=httpx.ByteStream(b'{"data": [{"id": "coder"}]}'))
        return httpx.Response(404, stream=httpx.ByteStream(b""))

    events: list[EngineEvent] = []
    engine = RemoteEngine(
        Endpoint.at(url), on_event=events.append, transport=httpx.MockTransport(answer)
    )
    info = await engine.model_info()
    await engine.aclose()
    assert info.remote == "box.example"
    (notice,) = [event for event in events if event.kind == "notice"]
    assert all(word in notice.message for word in told)


async def test_cancelled_requests_leave_no_connection() -> None:
    with StandInServer() as server:
        engine = at(server)
        assert [chunk async for chunk in engine.complete(TYPED)]
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        for number in range(300):
            asking = asyncio.create_task(whole(engine))
            await asyncio.sleep(number % 100 / 10_000)  # seconds; before, in or after the answer
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await eventually(lambda: len(connections_with(port)) <= KEPT)
        await engine.aclose()
        await eventually(lambda: not connections_with(port))


async def whole(engine: RemoteEngine) -> list[str]:
    return [chunk.text async for chunk in engine.complete(TYPED)]


def connections_with(port: int) -> list[int]:
    connections = psutil.Process().net_connections("tcp")
    return [each.laddr.port for each in connections if each.raddr and each.raddr.port == port]
