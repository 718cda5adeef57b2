"""fimble's own engine, asked as any server is: another machine of the user's may run it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fimble.engine.protocol import ChatMessage, CompletionRequest, Control, Text
from fimble.engine.remote.client import RemoteEngine
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import EngineUnavailable
from tests.engine.process import RunningEngine, running_engine
from tests.support.tiny import make_tiny_package

PROMPT = (
    Control("fim_prefix"),
    Text("def area"),
    Control("fim_suffix"),
    Text("return"),
    Control("fim_middle"),
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_package(tmp_path_factory.mktemp("home") / "models" / "tiny")


@pytest.fixture(scope="module")
def running(package: Path) -> Iterator[RunningEngine]:
    with running_engine(package.parent.parent, package) as running:
        yield running


async def test_prompts_and_chats(
    running: RunningEngine, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIMBLE_API_KEY", running.address.secret)
    tokenizer = PackageTokenizer(package / "tokenizer.json")
    engine = RemoteEngine(Endpoint.at(running.address.url), find_tokenizer=lambda: tokenizer)
    info = await engine.model_info()
    # Its text prompts have no control tokens, whatever they spell: only ids fill in the middle.
    assert info.fim is True
    request = CompletionRequest(PROMPT, max_tokens=6)
    chunks = [chunk async for chunk in engine.complete(request)]
    expected = running.complete(tokenizer.encode_prompt(PROMPT), max_tokens=6)
    assert "".join(chunk.text for chunk in chunks) == expected["choices"][0]["text"]
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens == len(tokenizer.encode_prompt(PROMPT))
    chat = CompletionRequest(
        "", messages=(ChatMessage("user", "def"),), priority="chat", max_tokens=4
    )
    assert [chunk async for chunk in engine.complete(chat)]
    await engine.aclose()


async def test_without_its_secret(running: RunningEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIMBLE_API_KEY", raising=False)
    engine = RemoteEngine(Endpoint.at(running.address.url))
    with pytest.raises(EngineUnavailable, match="does not let fimble in"):
        await engine.model_info()
    await engine.aclose()
