"""A model that gives nonsense, or too little memory for it: told once, not at every key."""

from __future__ import annotations

import pytest

from fimble.engine.client import EngineEvent
from fimble.errors import GenerationFailed, ModelMisbehaved
from tests.lsp.wire import Wire, in_process
from tests.support.scripted_engine import Script, ScriptedEngine

URI = "file:///p/a.py"
NAN = ModelMisbehaved(
    "The model produced NaN instead of probabilities.", next_step="Try another package."
)
OTHER = GenerationFailed("It failed.", next_step="Try again.")


def told(wire: Wire) -> list[str]:
    return [shown["message"] for shown in wire.sent("window/showMessage")]


async def type_on(wire: Wire, keys: int, first_version: int = 2) -> None:
    """Each key is another line, so that nothing is remembered from the one before."""
    for key in range(keys):
        text = f"line_{first_version + key} = \n"
        wire.change(URI, first_version + key, {"text": text})
        await wire.complete(URI, 0, len(text) - 1)


@pytest.mark.parametrize(
    ("error", "times"),
    [(NAN, 1), (OTHER, 4)],
    ids=["nonsense is told once", "another failure is news after each success"],
)
async def test_now_and_then(error: GenerationFailed, times: int) -> None:
    answers: list[Script] = [error, "1"] * 4
    async with in_process(lambda model: ScriptedEngine(answers)) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"ahead": False}})
        wire.open(URI, "")
        await type_on(wire, 8)
        assert told(wire) == [f"fimble: {error}"] * times


async def test_always_and_the_status_says_it_with_the_next_step() -> None:
    async with in_process(lambda model: ScriptedEngine([NAN])) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"ahead": False}})
        wire.open(URI, "")
        await type_on(wire, 5)
        status = wire.sent("fimble/status")[-1]
        assert status["state"] == "error"
        assert status["message"] == str(NAN) and "Try another package." in status["message"]
        assert told(wire) == [f"fimble: {NAN}"]


async def test_with_another_model_it_is_news_again() -> None:
    async with in_process(lambda model: ScriptedEngine([NAN])) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"ahead": False}})
        wire.open(URI, "")
        await type_on(wire, 2)
        settings = {"fimble": {"model": "other", "completion": {"ahead": False}}}
        wire.notify("workspace/didChangeConfiguration", {"settings": settings})
        await wire.until(lambda: len(session.engines) == 2)
        await type_on(wire, 2, first_version=10)
        assert told(wire) == [f"fimble: {NAN}"] * 2


async def test_a_smaller_window_than_wanted_is_told() -> None:
    async with in_process(lambda model: ScriptedEngine(["1"])) as session:
        wire = session.wire
        await wire.initialize()
        await wire.until(lambda: bool(wire.sent("fimble/status")))
        for _ in range(3):
            session.tell(EngineEvent("notice", "There was not enough memory for 8,192 tokens."))
        await wire.until(lambda: bool(told(wire)))
        assert told(wire) == ["fimble: There was not enough memory for 8,192 tokens."]
        await wire.quit()
