"""Settings on the wire: where they come from, when they count, what is said about wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.wire import Wire, in_process
from tests.support.scripted_engine import ScriptedEngine

URI = "file:///p/a.py"
PULL = {"workspace": {"configuration": True}}
REGISTER = {"workspace": {"didChangeConfiguration": {"dynamicRegistration": True}}}


def engine_for(model: str) -> ScriptedEngine:
    return ScriptedEngine([f"{model or 'default'} speaks"])


async def says(wire: Wire) -> str:
    items = await wire.complete(URI, 0, 0)
    return str(items[0]["insertText"]) if items else ""


def warnings(wire: Wire) -> list[str]:
    return [shown["message"] for shown in wire.sent("window/showMessage") if shown["type"] == 2]


async def test_bad_options_are_named_in_one_warning_and_the_rest_counts() -> None:
    options: dict[str, Any] = {
        "model": "chosen",
        "modle": "x",
        "completion": {"maxTokens": "many"},
    }
    async with in_process(engine_for) as session:
        await session.wire.initialize(initializationOptions=options)
        session.wire.open(URI, "")
        assert await says(session.wire) == "chosen speaks"
        assert warnings(session.wire) == [
            "fimble: settings: modle is not a setting. Did you mean model? "
            'completion.maxTokens must be a whole number from 1 to 1024; got "many". '
            "The default is used: 64."
        ]


async def test_the_editors_section_lies_over_the_options() -> None:
    async with in_process(engine_for, config={"model": "pulled"}) as session:
        options = {"model": "option", "completion": {"maxTokens": 9}}
        await session.wire.initialize(capabilities=PULL, initializationOptions=options)
        session.wire.open(URI, "")
        await session.wire.until(lambda: len(session.engines) == 3)
        assert await says(session.wire) == "pulled speaks"
        assert session.engines[-1].requests[0].max_tokens == 9


async def test_an_editor_without_such_a_section_changes_nothing() -> None:
    async with in_process(engine_for, config=None) as session:
        await session.wire.initialize(capabilities=PULL, initializationOptions={"model": "option"})
        session.wire.open(URI, "")
        await session.wire.until(lambda: bool(session.wire.sent("fimble/status")))
        assert await says(session.wire) == "option speaks"


async def test_a_change_counts_at_once_pulled_or_pushed() -> None:
    for capabilities in (PULL, {}):
        async with in_process(engine_for) as session:
            wire = session.wire
            await wire.initialize(capabilities=capabilities)
            wire.open(URI, "")
            assert await says(wire) == "default speaks"
            wire.config = {"completion": {"disabledLanguages": ["python"]}}
            wire.notify("workspace/didChangeConfiguration", {"settings": {"fimble": wire.config}})
            await wire.until(
                lambda: session.server.configuration.current.completion.disabled_languages != ()
            )
            assert await says(wire) == ""


async def test_another_model_gets_another_engine_and_the_old_one_is_let_go() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        assert await says(wire) == "default speaks"
        wire.notify("workspace/didChangeConfiguration", {"settings": {"fimble": {"model": "b"}}})
        await wire.until(lambda: len(session.engines) == 2)
        assert await says(wire) == "b speaks"
        assert session.engines[0].closed
        assert not session.engines[1].closed
    assert session.engines[1].closed


async def test_the_command_lines_model_stays() -> None:
    async with in_process(engine_for, model="/a/path") as session:
        await session.wire.initialize(initializationOptions={"model": "b"})
        session.wire.open(URI, "")
        assert await says(session.wire) == "/a/path speaks"
    assert len(session.engines) == 1


async def test_a_path_from_settings_is_refused() -> None:
    async with in_process(engine_for) as session:
        await session.wire.initialize(initializationOptions={"model": "./planted"})
        session.wire.open(URI, "")
        assert await says(session.wire) == "default speaks"
        (warning,) = warnings(session.wire)
        assert "never a path" in warning


async def test_switched_off_is_shown_and_loads_nothing() -> None:
    loads = []

    class Counting(ScriptedEngine):
        async def model_info(self) -> Any:
            loads.append(1)
            return await super().model_info()

    async with in_process(lambda model: Counting(["x"])) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"enabled": False}})
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        assert wire.sent("fimble/status")[-1]["state"] == "disabled"
        assert not loads
        on = {"fimble": {"completion": {"enabled": True}}}
        wire.notify("workspace/didChangeConfiguration", {"settings": on})
        await wire.until(lambda: wire.sent("fimble/status")[-1]["state"] == "ready")
        assert loads


async def test_a_problem_is_named_again_only_when_it_is_new() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize()
        for section in ({"a": 1}, {"a": 1}, {"a": 1, "b": 2}, {}, {"a": 1}):
            wire.notify("workspace/didChangeConfiguration", {"settings": {"fimble": section}})
        await wire.until(lambda: len(warnings(wire)) == 3)
        await wire.quit()
        await session.serving
    assert warnings(wire) == [
        "fimble: settings: a is not a setting.",
        "fimble: settings: b is not a setting.",
        "fimble: settings: a is not a setting.",
    ]


@pytest.mark.parametrize(("capabilities", "count"), [(PULL, 0), (REGISTER, 1), ({}, 0)])
async def test_nothing_is_registered_that_the_editor_did_not_offer(
    capabilities: dict[str, Any], count: int
) -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize(capabilities=capabilities)
        await wire.until(lambda: bool(wire.sent("fimble/status")))
    assert len(wire.sent("client/registerCapability")) == count
    assert not wire.sent("window/workDoneProgress/create")


async def test_settings_of_other_servers_are_none_of_ours() -> None:
    async with in_process(engine_for) as session:
        wire = session.wire
        await wire.initialize()
        others: list[Any] = [None, [], {"pylsp": {"x": 1}}]
        for settings in others:
            wire.notify("workspace/didChangeConfiguration", {"settings": settings})
        await wire.quit()
        await session.serving
    assert not warnings(wire)
