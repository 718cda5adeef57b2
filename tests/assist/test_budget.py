"""Prompt and answer lengths follow from measured speeds, within floor and ceiling."""

from __future__ import annotations

import pytest

from fimble.assist.budget import ANSWER_FLOOR, PROMPT_FLOOR, budget_for
from fimble.assist.settings import CompletionSettings
from fimble.engine.base import ModelInfo

SETTINGS = CompletionSettings(latency_ms=300, max_tokens=64, max_prompt_tokens=4096)


def model(
    prefill: float = 0.0, decode: float = 0.0, *, continues: bool = True, window: int = 32768
) -> ModelInfo:
    return ModelInfo("m", window, "cpu", True, continues, prefill, decode, healing=continues)


def test_unknown_speeds_leave_the_ceiling() -> None:
    budget = budget_for(model(), SETTINGS)
    assert (budget.prompt, budget.answer) == (4096, 64)


def test_a_slow_machine_gets_the_floor_and_a_quick_one_the_ceiling() -> None:
    slow, quick = budget_for(model(20, 5), SETTINGS), budget_for(model(20_000, 500), SETTINGS)
    assert (slow.prompt, slow.answer) == (PROMPT_FLOOR, ANSWER_FLOOR)
    assert (quick.prompt, quick.answer) == (4096, 64)
    assert slow.floor == quick.floor == PROMPT_FLOOR
    assert slow.ceiling == quick.ceiling == 4096


@pytest.mark.parametrize(("decode", "in_time"), [(0, True), (5, False), (100, False), (110, True)])
def test_a_block_is_made_in_time_where_the_model_is_quick_enough(
    decode: float, in_time: bool
) -> None:
    # Half of 64 tokens in 300 ms.
    assert budget_for(model(500, decode), SETTINGS).in_time == in_time


def test_in_between_it_follows_speed_and_latency() -> None:
    once, twice = (
        budget_for(
            model(400, 80),
            CompletionSettings(latency_ms=latency, max_tokens=256, max_prompt_tokens=4096),
        )
        for latency in (300, 600)
    )
    assert PROMPT_FLOOR < once.prompt < twice.prompt < 4096
    assert ANSWER_FLOOR < once.answer < twice.answer <= 256


def test_without_continuation_every_request_pays_for_its_prompt() -> None:
    kept, plain = (
        budget_for(model(4000), SETTINGS),
        budget_for(model(4000, continues=False), SETTINGS),
    )
    assert plain.prompt == int(4000 * 0.3 * 0.6) < kept.prompt


def test_a_small_window_bounds_everything() -> None:
    budget = budget_for(model(window=200), SETTINGS)
    assert budget.room + budget.answer + 3 + 25 == 200
    assert budget.prompt == budget.room == budget.ceiling == budget.floor
