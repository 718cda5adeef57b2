"""How long is waited before a model is asked: by pace and latency, on a clock of the test's."""

from __future__ import annotations

import pytest

from fimble.lsp.debounce import Debounce
from tests.lsp.wire import completion_params, in_process
from tests.support.scripted_engine import ScriptedEngine


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def typed(interval: float, keys: int, latency: float) -> tuple[Debounce, Clock]:
    clock = Clock()
    debounce = Debounce(clock)
    for _ in range(keys):
        clock.now += interval
        debounce.typed()
    for _ in range(30):
        debounce.answered(latency)
    return debounce, clock


def test_nobody_waits_where_answers_come_before_the_next_key() -> None:
    assert typed(0.2, 10, latency=0.1)[0].delay() == 0


def test_a_quick_typist_with_a_slow_model_is_waited_for() -> None:
    debounce, clock = typed(0.1, 10, latency=1.0)
    assert 0.05 < debounce.delay() <= 0.15
    clock.now += 0.06
    assert debounce.delay() < 0.06
    clock.now += 1
    assert debounce.delay() == 0


def test_a_single_key_after_a_pause_is_answered_at_once() -> None:
    assert typed(2.0, 10, latency=5.0)[0].delay() == 0


def test_the_longest_wait() -> None:
    assert typed(1.0, 10, latency=60.0)[0].delay() == 0.15


async def test_nobody_waits_for_what_is_at_hand_or_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted: how often it was looked up how long to wait."""
    waits: list[float] = []

    def counted(debounce: Debounce) -> float:
        waits.append(0.0)
        return 0.0

    monkeypatch.setattr(Debounce, "delay", counted)
    uri = "file:///p/a.py"
    async with in_process(lambda model: ScriptedEngine(["compute(value)"])) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"candidates": 1}})
        wire.open(uri, "x = \ny = \n")
        assert await wire.complete(uri, 0, 4)
        assert len(waits) == 1
        place = {"line": 0, "character": 4}
        wire.change(uri, 2, {"range": {"start": place, "end": place}, "text": "comp"})
        (item,) = await wire.complete(uri, 0, 8)
        assert item["insertText"] == "ute(value)"
        params = completion_params(uri, 1, 4)
        params["context"] = {"triggerKind": 1}
        assert (await wire.request("textDocument/inlineCompletion", params))["items"]
    assert len(waits) == 1
