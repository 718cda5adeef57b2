"""One model for completion, one for chat and edits, or one for both; and on what they run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fimble.engine.client import EngineEvent
from fimble.errors import ModelNotFound
from fimble.lsp.roles import ModelChoice, Roles, roles_from
from fimble.lsp.settings import Settings, parse_settings
from tests.lsp.wire import Wire, in_process
from tests.support.scripted_engine import ScriptedEngine

URI = "file:///a.py"
QUESTION = {"message": "What is it?"}
TWO = {"model": "coder", "provider": "webgpu", "chatModel": "talker", "chatProvider": "dml"}


def engine_for(model: str) -> ScriptedEngine:
    engine = ScriptedEngine([f"{model} speaks"])
    engine.info = replace(engine.info, name=model)
    return engine


def told(wire: Wire) -> list[str]:
    return [shown["message"] for shown in wire.sent("window/showMessage")]


@pytest.mark.parametrize(
    ("settings", "given", "roles"),
    [
        (Settings(), Roles(), Roles()),
        (
            Settings(model="a", provider="cpu", chat_provider="dml"),
            Roles(),
            Roles(ModelChoice("a", "cpu"), ModelChoice("a", "cpu")),
        ),
        (
            Settings(model="a", provider="cpu", chat_model="b"),
            Roles(),
            Roles(ModelChoice("a", "cpu"), ModelChoice("b", "")),
        ),
        (
            Settings(model="a", chat_model="b", chat_provider="dml"),
            Roles(ModelChoice("/x", "webgpu"), ModelChoice("/y", "cpu")),
            Roles(ModelChoice("/x", "webgpu"), ModelChoice("/y", "cpu")),
        ),
    ],
)
def test_the_command_line_comes_first_and_one_model_does_all_by_default(
    settings: Settings, given: Roles, roles: Roles
) -> None:
    assert roles_from(settings, given) == roles


@pytest.mark.parametrize("key", ["provider", "chatProvider"])
def test_a_provider_that_nobody_knows_is_named(key: str) -> None:
    settings, (problem,) = parse_settings({key: "gpu"})
    assert settings == Settings() and problem.startswith(f"{key} must be one of cpu, webgpu,")


async def test_one_model_does_it_all() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"model": "one", "provider": "webgpu"})
        wire.open(URI, "")
        assert [item["insertText"] for item in await wire.complete(URI, 0, 0)] == ["one speaks"]
        assert (await wire.request("fimble/chat", QUESTION))["text"] == "one speaks"
    assert session.choices[-1] == ModelChoice("one", "webgpu")
    assert len(session.choices) == 2  # before the settings were there, and after


async def test_another_model_chats_and_is_asked_for_when_somebody_does() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize(initializationOptions=TWO)
        wire.open(URI, "")
        assert [item["insertText"] for item in await wire.complete(URI, 0, 0)] == ["coder speaks"]
        assert session.choices[-1] == ModelChoice("coder", "webgpu")
        assert (await wire.request("fimble/chat", QUESTION))["text"] == "talker speaks"
        assert session.choices[-1] == ModelChoice("talker", "dml")
        edit = {"command": "fimble.edit", "arguments": [URI, whole_of_it(), "rename it"]}
        asked = wire.ask("workspace/executeCommand", edit)
        await wire.answer(asked)  # refused: what it says is no edit of an empty file
        assert wire.sent("fimble/status")[-1]["model"] == "coder"
    assert len(session.choices) == 3 and all(engine.closed for engine in session.engines[1:])


def whole_of_it() -> dict[str, Any]:
    start = {"line": 0, "character": 0}
    return {"start": start, "end": start}


async def test_a_model_for_chat_that_fails_leaves_completion_alone() -> None:
    def make(model: str) -> ScriptedEngine:
        engine = engine_for(model)
        if model == "talker":
            engine.answers = [ModelNotFound("There is no talker.")]
        return engine

    async with in_process(make) as session:
        wire = session.wire
        await wire.initialize(initializationOptions=TWO)
        wire.open(URI, "")
        await wire.complete(URI, 0, 0)
        answer = await wire.answer(wire.ask("fimble/chat", QUESTION))
        assert "no talker" in answer["error"]["message"]
        assert await wire.complete(URI, 0, 0)
        assert "error" not in [status["state"] for status in wire.sent("fimble/status")]


async def test_who_had_to_go_for_whom_is_told() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize(initializationOptions=TWO)
        wire.open(URI, "")
        await wire.complete(URI, 0, 0)
        await wire.request("fimble/chat", QUESTION)
        before = wire.sent("fimble/status")[-1]
        session.tell(EngineEvent("loading", "The model is being loaded."))
        session.tell(EngineEvent("notice", "coder was unloaded: there is not memory enough."))
        await wire.until(lambda: any("coder was unloaded" in message for message in told(wire)))
        assert wire.sent("fimble/status")[-1] == before


async def test_only_the_model_for_chat_changes() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize(initializationOptions=TWO)
        wire.open(URI, "")
        await wire.complete(URI, 0, 0)
        await wire.request("fimble/chat", QUESTION)
        former = session.engines[-1]
        settings = {"fimble": {**TWO, "chatModel": "other"}}
        wire.notify("workspace/didChangeConfiguration", {"settings": settings})
        await wire.until(lambda: former.closed)
        assert (await wire.request("fimble/chat", QUESTION))["text"] == "other speaks"
        assert session.choices.count(ModelChoice("coder", "webgpu")) == 1


async def test_a_chat_model_completes_and_the_status_says_how() -> None:
    def make(model: str) -> ScriptedEngine:
        engine = engine_for("talker")
        engine.info = replace(engine.info, fim=False)
        return engine

    async with in_process(make) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "x = 1\n")
        await wire.until(lambda: is_ready(wire))
        await wire.complete(URI, 1, 0)
        await wire.until(lambda: is_ready(wire))
        assert "a chat model" in wire.sent("fimble/status")[-1]["message"]
        place = [URI, {"line": 1, "character": 0}]
        command = {"command": "fimble.showPrompt", "arguments": place}
        assert (await wire.request("workspace/executeCommand", command))["layout"] == "chat"


def is_ready(wire: Wire) -> bool:
    return [sent["state"] for sent in wire.sent("fimble/status")][-1:] == ["ready"]
