"""Beginning and end: exit codes, messages at the wrong time, messages that are none."""

from __future__ import annotations

import asyncio
import json
from importlib import resources

import pytest

from fimble.engine.client import EngineEvent
from fimble.errors import EngineUnavailable
from fimble.lsp import configuration
from tests.lsp.wire import Wire, in_process
from tests.support.scripted_engine import ScriptedEngine
from tests.support.waiting import PATIENCE, eventually


async def ended(serving: asyncio.Task[int]) -> int:
    return await asyncio.wait_for(serving, timeout=PATIENCE)


async def test_exit_after_shutdown_is_0() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        await session.wire.initialize()
        await session.wire.quit()
        assert await ended(session.serving) == 0
    assert session.engines[0].closed


async def test_exit_without_shutdown_is_1() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        await session.wire.initialize()
        session.wire.notify("exit")
        assert await ended(session.serving) == 1


async def test_exit_before_initialize_is_1() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        session.wire.notify("exit")
        assert await ended(session.serving) == 1


async def test_shutdown_cancels_what_is_under_way() -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open("untitled:1", "")
        request = wire.ask_completion("untitled:1", 0, 0)
        await eventually(lambda: engine.requests)
        await wire.quit()
        assert await ended(session.serving) == 0
    assert len(wire.answers(request)) == 1
    assert engine.cancelled == engine.requests


async def error_code(wire: Wire, method: str) -> int:
    answer = await wire.answer(wire.ask(method, {}))
    return int(answer["error"]["code"])


async def test_requests_at_the_wrong_time_are_answered() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        assert await error_code(wire, "textDocument/inlineCompletion") == -32002
        assert await error_code(wire, "initialize") == -32602  # {} is not its parameters
        await wire.initialize()
        again = wire.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        assert (await wire.answer(again))["error"]["code"] == -32600
        await wire.request("shutdown")
        assert await error_code(wire, "workspace/symbol/resolve") == -32600
        wire.notify("exit")
        assert await ended(session.serving) == 0


async def test_unknown_methods() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        await wire.initialize()
        wire.notify("$/something", {"a": 1})
        wire.notify("textDocument/didSave", {"textDocument": {"uri": "untitled:1"}})
        assert await error_code(wire, "fimble/nothing") == -32601
        assert not wire.sent("window/showMessage")


@pytest.mark.parametrize(
    "params", [{}, {"textDocument": {"uri": 1}}, {"textDocument": {"uri": "a"}, "position": {}}]
)
async def test_parameters_that_cannot_be_read(params: dict[str, object]) -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        await wire.initialize()
        request = wire.ask("textDocument/inlineCompletion", params)
        assert (await wire.answer(request))["error"]["code"] == -32602
        await wire.quit()
        assert await ended(session.serving) == 0


async def test_a_change_that_cannot_be_read_ends_suggestions_for_that_text() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        await wire.initialize()
        wire.open("untitled:1", "")
        assert await wire.complete("untitled:1", 0, 0)
        document = {"uri": "untitled:1", "version": 2}
        wire.notify("textDocument/didChange", {"textDocument": document, "contentChanges": 3})
        assert await wire.complete("untitled:1", 0, 0) == []
        wire.open("untitled:1", "")
        assert await wire.complete("untitled:1", 0, 0)


async def test_what_is_no_message_is_refused_and_the_next_one_served() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        wire.write(b"Content-Length: 5\r\n\r\n{nope")
        await wire.until(lambda: len(wire.answers(None)) == 1)
        odd_values: list[object] = [[], 1, "x", None, {"method": "x"}]
        for odd in odd_values:
            wire.send(odd)
        await wire.until(lambda: len(wire.answers(None)) == 6)
        assert {answer["error"]["code"] for answer in wire.answers(None)} == {-32700, -32600}
        wire.write(b"content-type: x\r\nCONTENT-LENGTH:  46 \r\n\r\n")
        wire.write(b'{"jsonrpc": "2.0", "id": 77, "method": "hello"}'[:46])
        await wire.until(lambda: len(wire.answers(None)) == 7)
        await wire.initialize()


async def test_a_stream_that_is_no_json_rpc_ends_the_server() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        session.wire.write(b"Content-Length: 99999999999\r\n\r\n")
        assert await ended(session.serving) == 1


def registered(wire: Wire) -> set[str]:
    registrations = wire.sent("client/registerCapability")
    return {r["method"] for params in registrations for r in params["registrations"]}


PROFILES = sorted(resources.files("pytest_lsp.clients").iterdir(), key=lambda file: file.name)


@pytest.mark.parametrize("profile", [file.name for file in PROFILES if file.name.endswith(".json")])
async def test_what_real_editors_say_of_themselves_is_understood(profile: str) -> None:
    """And nothing is registered or shown that they did not offer."""
    file = resources.files("pytest_lsp.clients") / profile
    capabilities = json.loads(file.read_text(encoding="utf-8"))["capabilities"]
    workspace = capabilities.get("workspace", {})
    wanted = {
        f"workspace/{feature}"
        for feature in ("didChangeConfiguration", "didChangeWatchedFiles")
        if workspace.get(feature, {}).get("dynamicRegistration", False)
    }
    async with in_process(lambda model: ScriptedEngine(["x"]), config={}) as session:
        wire = session.wire
        await wire.initialize(capabilities=capabilities, clientInfo={"name": profile})
        wire.open("untitled:1", "")
        assert len(await wire.complete("untitled:1", 0, 0)) == 1
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        await wire.until(lambda: registered(wire) == wanted)
    assert bool(wire.sent("workspace/configuration")) == workspace.get("configuration", False)
    assert not wire.sent("window/showMessage")


STARTING = EngineEvent("starting", "The engine is being started.")
LOADING = EngineEvent("loading", "The model is being loaded.")
READY = EngineEvent("ready", "The model is loaded.")
FAILED = EngineEvent("failed", "The model cannot be loaded.")
DIED = EngineEvent("died", "The engine ended unexpectedly.", "Its log says more.")


@pytest.mark.parametrize("last", [READY, FAILED])
async def test_loading_is_shown_where_the_editor_can(last: EngineEvent) -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        await wire.initialize(capabilities={"window": {"workDoneProgress": True}})
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        for event in (STARTING, LOADING, last):
            session.tell(event)
        await wire.until(lambda: len(wire.sent("$/progress")) == 3)
        shown = [params["value"] for params in wire.sent("$/progress")]
    assert [(value["kind"], value.get("message")) for value in shown] == [
        ("begin", STARTING.message),
        ("report", LOADING.message),
        ("end", None),
    ]
    assert len(wire.sent("window/workDoneProgress/create")) == 1
    states = [sent["state"] for sent in wire.sent("fimble/status")]
    assert states[-2:] == ["starting", "loading"]


async def test_loading_is_not_shown_where_the_editor_cannot() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        await wire.initialize()
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        for event in (STARTING, LOADING, READY):
            session.tell(event)
        await wire.quit()
        await ended(session.serving)
    assert not wire.sent("$/progress")
    assert not wire.sent("window/workDoneProgress/create")


async def test_the_death_of_the_engine_is_told_once_with_what_it_meant() -> None:
    gone = EngineUnavailable("The engine ended while it answered.")
    engine = ScriptedEngine([gone, "fine", gone])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        for text in ("", "another"):
            wire.open("untitled:1", text)
            session.tell(DIED)
            assert await wire.complete("untitled:1", 0, 0) == []
            assert wire.sent("fimble/status")[-1]["state"] == "error"
            await wire.complete("untitled:1", 0, 0)
    assert [shown["message"] for shown in wire.sent("window/showMessage")] == [
        "fimble: The engine ended unexpectedly. Its log says more."
    ] * 2


async def test_an_editor_that_never_answers_is_served_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configuration, "PATIENCE_SECONDS", 0.02)
    workspace = {
        "configuration": True,
        "didChangeConfiguration": {"dynamicRegistration": True},
    }
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        wire.silent = True
        await wire.initialize(
            capabilities={"workspace": workspace, "window": {"workDoneProgress": True}}
        )
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        session.tell(LOADING)
        await wire.until(lambda: bool(wire.sent("window/workDoneProgress/create")))
        await wire.quit()
        assert await ended(session.serving) == 0
