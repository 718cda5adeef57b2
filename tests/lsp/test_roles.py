"""One model for completion, one for chat and edits, or one for both; and on what they run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fimble.engine.client import EngineEvent
from fimble.engine.remote.choice import EngineChoice, write_choice
from fimble.engine.remote.endpoint import Endpoint
from fimble.errors import ModelNotFound
from fimble.lsp.roles import ModelChoice, Roles, roles_from
from fimble.lsp.settings import EngineSettings, Settings, parse_settings
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
    assert roles_from(settings, given, EngineChoice()) == roles


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


# --- a server elsewhere ------------------------------------------------------------------

BOX = Endpoint.at("https://box.example/v1")


def test_what_was_chosen_counts_unless_the_command_line_or_a_ban_says_otherwise() -> None:
    chosen = EngineChoice(chat=BOX, fall_back=True)
    here = ModelChoice("a")
    settings = Settings(model="a")
    there = replace(here, elsewhere=BOX, fall_back=True)
    assert roles_from(settings, Roles(), chosen) == Roles(here, there)
    given = Roles(chat=ModelChoice("b"))
    assert roles_from(settings, given, chosen) == Roles(here, ModelChoice("b"))
    forbidden = replace(settings, engine=EngineSettings(forbid_remote=True))
    assert roles_from(forbidden, Roles(), chosen) == Roles(here, here)


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user has chosen a server for chat."""
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    write_choice(EngineChoice(chat=BOX))


@pytest.mark.usefixtures("box")
async def test_the_status_says_where_text_goes() -> None:
    async with in_process(engine_for) as session:
        await session.wire.initialize()
        await session.wire.until(lambda: bool(session.wire.sent("fimble/status")))
        assert session.wire.sent("fimble/status")[-1]["remote"] == "box.example"
        assert (await session.wire.request("fimble/chat", QUESTION))["text"]
        assert session.choices[-1].elsewhere == BOX
        assert session.choices[0].elsewhere is None


@pytest.mark.usefixtures("box")
async def test_a_setting_forbids_it() -> None:
    async with in_process(engine_for) as session:
        await session.wire.initialize(initializationOptions={"engine": {"forbidRemote": True}})
        assert (await session.wire.request("fimble/chat", QUESTION))["text"]
        assert not any(status["remote"] for status in session.wire.sent("fimble/status"))
        assert session.choices[-1].elsewhere is None


async def test_no_setting_can_choose_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    async with in_process(engine_for) as session:
        await session.wire.initialize(
            initializationOptions={"engine": {"url": BOX.url, "completion": BOX.url}}
        )
        session.wire.open(URI, "")
        await session.wire.complete(URI, 0, 0)
        assert all(choice.elsewhere is None for choice in session.choices)
        assert any("engine.url" in message for message in told(session.wire))


async def test_a_choice_that_cannot_be_read_is_told_and_nothing_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    (tmp_path / "engine.json").write_text("{", encoding="utf-8")
    async with in_process(engine_for) as session:
        await session.wire.initialize()
        await session.wire.until(lambda: any("engine.json" in m for m in told(session.wire)))
        assert all(choice.elsewhere is None for choice in session.choices)
