"""Low confidence: what ends an answer while it is made, what withholds it, what is kept of it.

The scripted engine's tokens are four characters each, and a chunk is a token: so the decode
steps of an answer are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from math import log

import pytest

from fimble.assist.answer import TOKENS_TO_JUDGE, ModelCall
from fimble.assist.completion import CompletionService
from fimble.assist.settings import CompletionSettings
from fimble.engine.client import LocalEngine
from tests.assist.places import at_mark
from tests.assist.typing import Typist
from tests.engine.process import RunningEngine, running_engine
from tests.support.scripted_engine import Answer, ScriptedEngine
from tests.support.slow import make_slow_package
from tests.support.waiting import eventually

SURE, UNSURE = log(0.9), log(0.1)
LONG = "abcdefgh" * 5  # ten tokens
BODY = "    abcd = 1\n    efgh = 2\n    ijkl = 3\n"  # ten tokens, the first line has four


class Asked(Typist):
    """Notes the decode steps of every call that has ended."""

    def __init__(self, answer: Answer, source: str, least: float) -> None:
        engine = ScriptedEngine([answer], piece=4)
        super().__init__(engine, source, min_confidence=least, candidates=1)
        self.steps: list[int] = []
        self.service = CompletionService(engine, on_call=self._note)

    def _note(self, call: ModelCall) -> None:
        self.steps.append(call.usage.completion_tokens)


@pytest.mark.parametrize(("least", "shown", "steps"), [(0.5, "", TOKENS_TO_JUDGE), (0.0, LONG, 10)])
async def test_an_answer_ends_at_the_first_token_that_tells(
    least: float, shown: str, steps: int
) -> None:
    typist = Asked(Answer(LONG, mean_logprob=UNSURE), "x = │\n", least)
    assert await typist.ask() == shown
    assert typist.steps == [steps]
    # The engine is told to stop, and not asked to go on.
    assert len(typist.engine.cancelled) == (1 if least else 0)


async def test_confidence_that_falls_later_ends_it_there() -> None:
    falling = Answer(LONG, mean_logprob=lambda tokens: SURE if tokens < 7 else UNSURE)
    typist = Asked(falling, "x = │\n", 0.5)
    assert await typist.ask() == ""
    assert typist.steps == [7]


@pytest.mark.parametrize(("mean", "shown"), [(UNSURE, ""), (SURE, "abcdefgh")])
async def test_one_too_short_to_end_is_withheld(mean: float, shown: str) -> None:
    typist = Asked(Answer("abcdefgh", mean_logprob=mean), "x = │\n", 0.5)
    assert await typist.ask() == shown
    assert typist.steps == [2]
    assert typist.engine.cancelled == []


async def test_whole_lines_that_were_sure_stay_when_the_next_one_is_not() -> None:
    falling = Answer(BODY, mean_logprob=lambda tokens: SURE if tokens < 6 else UNSURE)
    typist = Asked(falling, "def f():\n│\n", 0.5)
    assert (await typist.ask()).strip() == "abcd = 1"
    while typist.service.is_at_work("a"):
        await asyncio.sleep(0)
    # Nothing that is seen vanishes, and what was doubtful does not come with it.
    assert (await typist.ask()).strip() == "abcd = 1"
    assert typist.steps == [6]


async def test_what_was_doubtful_is_not_asked_for_again_at_the_same_place() -> None:
    typist = Asked(Answer(LONG, mean_logprob=UNSURE), "x = │\n", 0.5)
    assert [await typist.ask(), await typist.ask()] == ["", ""]
    assert len(typist.engine.requests) == 1
    # A beginning of what nobody has seen is no suggestion to type through.
    typist.type("ab")
    assert await typist.ask() == ""
    assert len(typist.engine.requests) == 2


async def test_who_asks_for_it_gets_all_of_it() -> None:
    typist = Asked(Answer(LONG, mean_logprob=UNSURE), "x = │\n", 0.5)
    assert await typist.ask() == ""
    assert await typist.ask(invoked=True) == LONG
    assert typist.steps == [TOKENS_TO_JUDGE, 10]
    assert await typist.ask(invoked=True) == LONG
    assert len(typist.engine.requests) == 2


async def test_servers_that_tell_no_confidence_are_taken_at_their_word() -> None:
    typist = Asked(Answer(LONG, mean_logprob=float("nan")), "x = │\n", 0.5)
    assert await typist.ask() == LONG


# --- with an engine ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    home = tmp_path_factory.mktemp("home")
    # One that takes its time: the tiny one is done before anybody could stop it.
    package = make_slow_package(home / "models" / "slow")
    with running_engine(home, package) as engine:
        yield engine


@pytest.mark.parametrize("least", [0.9, 0.0])
async def test_the_engine_stops_decoding_what_is_not_sure(
    engine: RunningEngine, monkeypatch: pytest.MonkeyPatch, least: float
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(engine.home))
    # In a comment, where no noise is trimmed for what it does to the syntax.
    document, offset = at_mark("def area(width, height):\n    # the │\n")
    local = LocalEngine(model="slow")
    calls: list[ModelCall] = []
    service = CompletionService(local, on_call=calls.append)
    # More than is made while the stop is on its way, however slow this process may be.
    much = 1000 if least else 60
    settings = CompletionSettings(max_tokens=much, latency_ms=60_000, min_confidence=least)
    cancelled = _cancelled(engine)
    try:
        suggestion = await service.complete(document, offset, settings, name="a")
        # Its first line is answered with as soon as it is whole: the rest goes on being made,
        # and a call is told of when the engine's stream has ended.
        await eventually(lambda: calls)
    finally:
        await local.aclose()
    inside = 8  # tokens of typed text that healing may generate again
    (call,) = calls
    if least:
        assert suggestion.text == ""
        assert call.usage.completion_tokens <= TOKENS_TO_JUDGE + inside
        await eventually(lambda: _cancelled(engine) == cancelled + 1)
    else:
        assert call.usage.completion_tokens > TOKENS_TO_JUDGE + inside


def _cancelled(engine: RunningEngine) -> float:
    return engine.metric('fimble_requests_total{end="cancelled"}')
