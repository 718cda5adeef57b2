"""Real servers elsewhere: llama.cpp's and vLLM's, with the default model's own weights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from fimble.assist.completion import CompletionService
from fimble.assist.settings import CompletionSettings
from fimble.engine.protocol import ChatMessage, CompletionRequest, Control, Text
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import EngineError, EngineUnavailable
from tests.assist.places import at_mark
from tests.support.real_model import real_gguf, real_model_package
from tests.support.real_servers import (
    KEY,
    WINDOW,
    RunningServer,
    running_llama,
    running_vllm,
    why_not,
)

pytestmark = pytest.mark.model

AREA = (
    Control("fim_prefix"),
    Text("def area(width, height):\n    return width * "),
    Control("fim_suffix"),
    Text("\n\n\nprint(area(2, 3))\n"),
    Control("fim_middle"),
)


SERVERS = {"llama.cpp": running_llama, "vllm": running_vllm}


@pytest.fixture(scope="module", params=SERVERS)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    if why_not(request.param):
        pytest.skip(why_not(request.param))
    with SERVERS[request.param](real_gguf()) as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_API_KEY", KEY)


def tokenizer() -> PackageTokenizer:
    return PackageTokenizer(real_model_package().path / "tokenizer.json")


async def said(engine: RemoteEngine, request: CompletionRequest) -> str:
    return "".join([chunk.text async for chunk in engine.complete(request)])


@pytest.mark.parametrize("form", ["ids", "text"])
async def test_the_middle_is_filled_in(server: RunningServer, form: str) -> None:
    engine = RemoteEngine(
        Endpoint.at(server.url), find_tokenizer=tokenizer if form == "ids" else lambda: None
    )
    info = await engine.model_info()
    assert (info.fim, info.window, info.remote) == (True, WINDOW, "")
    assert engine._abilities is not None
    assert engine._abilities.form == form
    answer = await said(engine, CompletionRequest(AREA, max_tokens=8, stop=("\n",)))
    assert answer.strip() == "height"
    await engine.aclose()


async def test_a_chat(server: RunningServer) -> None:
    engine = RemoteEngine(Endpoint.at(server.url))
    question = ChatMessage("user", "Write a Python program that prints hello.")
    request = CompletionRequest("", messages=(question,), priority="chat", max_tokens=24)
    assert "print" in await said(engine, request)
    await engine.aclose()


async def test_control_tokens_in_a_file_stay_text(server: RunningServer) -> None:
    # Read as the token, the one in the string would end the prompt's suffix.
    text = (
        'TOKENS = ["<|fim_middle|>", "<|endoftext|>"]\n'
        "def area(width, height):\n    return width * "
    )
    prompt = (Control("fim_prefix"), Text(text), *AREA[2:])
    for find in (tokenizer, lambda: None):
        engine = RemoteEngine(Endpoint.at(server.url), find_tokenizer=find)
        answer = await said(engine, CompletionRequest(prompt, max_tokens=8, stop=("\n",)))
        assert answer.strip() == "height"
        await engine.aclose()


async def test_suggestions_come_from_it(server: RunningServer) -> None:
    engine = RemoteEngine(Endpoint.at(server.url), find_tokenizer=tokenizer)
    service = CompletionService(engine)
    document, offset = at_mark(
        "def area(width, height):\n    return width *│\n\n\nprint(area(2, 3))\n"
    )
    suggestion = await service.complete(document, offset, CompletionSettings(), name="a")
    assert suggestion.text.strip() == "height"
    assert suggestion.provider.startswith("remote: 127.0.0.1")
    await engine.aclose()


async def test_the_wrong_key(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_API_KEY", "guess")
    engine = RemoteEngine(Endpoint.at(server.url))
    with pytest.raises(EngineUnavailable, match="does not let fimble in"):
        await engine.model_info()
    await engine.aclose()


async def test_a_prompt_that_is_too_long(server: RunningServer) -> None:
    engine = RemoteEngine(Endpoint.at(server.url))
    with pytest.raises(EngineError) as caught:
        await said(engine, CompletionRequest((Text("x = 1\n" * 4000),)))
    assert caught.value.next_step
    await engine.aclose()


async def test_giving_up_frees_it_for_the_next(server: RunningServer) -> None:
    engine = RemoteEngine(Endpoint.at(server.url))
    # More than there are slots: they would wait for each other if one went on.
    for _ in range(4):
        chunks = engine.complete(CompletionRequest("def f(", max_tokens=1500))
        await anext(chunks)
        await chunks.aclose()
    answer = said(engine, CompletionRequest(AREA, max_tokens=4))
    assert await asyncio.wait_for(answer, timeout=120)
    await engine.aclose()


@pytest.mark.skipif(bool(why_not("llama.cpp")), reason=why_not("llama.cpp"))
async def test_it_is_killed_in_the_middle_of_an_answer() -> None:
    with running_llama(real_gguf()) as mortal:
        engine = RemoteEngine(Endpoint.at(mortal.url))
        chunks = engine.complete(CompletionRequest("def f(", max_tokens=1500))
        await anext(chunks)
        mortal.process.kill()
        with pytest.raises(EngineError) as caught:
            async for _ in chunks:
                pass
    assert "Traceback" not in str(caught.value)
    with pytest.raises(EngineUnavailable, match="cannot be reached"):
        await said(engine, CompletionRequest("x"))
    await engine.aclose()
