"""The worker with real models whose generators misbehave on purpose, without HTTP."""

from __future__ import annotations

import queue
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fimble.engine.host import ModelHost
from fimble.engine.loaded import LoadedModel, load_model
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.engine.scheduler import QUEUE_LIMIT, Done, Event, Job, Scheduler, TooManyRequests
from fimble.errors import (
    FimbleError,
    GenerationFailed,
    LoadFailed,
    ModelMisbehaved,
    ModelNotFound,
)
from tests.support.tiny import make_tiny_package
from tests.support.waiting import PATIENCE, until

PROMPT = [10, 20, 30, 40, 50, 60, 70, 80]


class Misbehaving:
    """A generator that follows the runtime's, but for what ``rules`` says by method name."""

    def __init__(self, real: Any, rules: dict[str, Callable[..., Any]]) -> None:
        self._real = real
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._real, name)
        rule = self._rules.get(name)
        return real if rule is None else lambda *arguments: rule(real, *arguments)


class Bench:
    """A scheduler in this process, and what its jobs deliver."""

    def __init__(self, package: Path, options: EngineOptions) -> None:
        self.rules: dict[str, Callable[..., Any]] = {}
        self.loads: list[str] = []
        self.fail_load: FimbleError | None = None
        self.continuation = True
        self.metrics = Metrics()
        options = replace(options, model=str(package))
        self.host = ModelHost(options, self.metrics, self.load)
        self.scheduler = Scheduler(self.host, self.metrics)

    def load(self, config: Any, tokenizer: Any, **settings: Any) -> LoadedModel:
        self.loads.append(config.name)
        if self.fail_load is not None:
            raise self.fail_load
        loaded = load_model(config, tokenizer, **settings)
        model: Any = loaded._model
        real = model._og
        rules = self.rules

        class Runtime:
            GeneratorParams = real.GeneratorParams

            @staticmethod
            def Generator(model: Any, params: Any) -> Any:
                return Misbehaving(real.Generator(model, params), rules)

        model._og = Runtime
        loaded._reserved = None  # made before the rules counted
        if not self.continuation:
            model.continuation = False
            loaded.info = replace(loaded.info, continuation=False)
            loaded.slice_tokens = 0
        return loaded

    def submit(
        self, request: CompletionRequest | None, model: str = "", client: str = ""
    ) -> Answer:
        answer = Answer()
        answer.job = Job(model, request, answer.events.put, client=client)
        self.scheduler.submit(answer.job)
        return answer

    def ask(self, prompt: Any = PROMPT, *, client: str = "", **fields: Any) -> Answer:
        model = fields.get("model", "")
        return self.submit(CompletionRequest(prompt, **{"max_tokens": 8, **fields}), model, client)


class Answer:
    """What one job delivers."""

    job: Job

    def __init__(self) -> None:
        self.events: queue.Queue[Event] = queue.Queue()

    def wait(self) -> CompletionChunk:
        """The last chunk, with the whole text; raises the job's error."""
        text = ""
        last = None
        while True:
            event = self.events.get(timeout=PATIENCE)
            if isinstance(event, FimbleError):
                raise event
            if isinstance(event, Done):
                assert last is not None
                return replace(last, text=text)
            text += event.text
            last = event


def slowly(seconds: float) -> Callable[[Callable[[], Any]], Any]:
    """A rule for a call that takes its time."""

    def rule(real: Callable[[], Any]) -> Any:
        time.sleep(seconds)
        return real()

    return rule


@pytest.fixture
def bench(tiny: Path) -> Iterator[Bench]:
    bench = Bench(tiny, EngineOptions())
    yield bench
    bench.scheduler.close()


# --- a model that goes wrong -------------------------------------------------------------


def test_nan_ends_the_answer_and_the_slots_state(bench: Bench) -> None:
    expected = bench.ask().wait().text
    bench.ask([5, 6, 7]).wait()
    bench.rules["get_logits"] = lambda real: np.full_like(real(), np.nan)
    with pytest.raises(ModelMisbehaved, match="NaN"):
        bench.ask().wait()
    bench.rules.clear()
    again = bench.ask().wait()
    assert again.usage is not None and again.usage.reused_tokens == 0
    assert again.text == expected


def test_an_endless_repetition_ends(bench: Bench) -> None:
    bench.rules["get_logits"] = say(71)
    answer = bench.ask(max_tokens=1000).wait()
    assert set(answer.text) == {"G"}
    assert answer.finish_reason == "stop" and answer.extra["stop_reason"] == "repetition"
    assert answer.usage is not None and answer.usage.completion_tokens < 100


def say(token: int) -> Callable[[Callable[[], Any]], Any]:
    """A rule for logits that leave one token only."""

    def rule(real: Callable[[], Any]) -> Any:
        logits = real()
        logits[...] = -1.0
        logits[..., token] = 1.0
        return logits

    return rule


def test_one_word_over_and_over_in_every_answer_is_a_fault_of_the_model(bench: Bench) -> None:
    expected = bench.ask().wait().text
    bench.rules["get_logits"] = say(71)
    for _ in range(2):
        assert set(bench.ask(max_tokens=40).wait().text) == {"G"}
    for _ in range(2):
        with pytest.raises(ModelMisbehaved, match="over and over") as caught:
            bench.ask(max_tokens=40).wait()
        assert "fimble doctor" in caught.value.next_step
    bench.rules.clear()
    assert bench.ask().wait().text == expected


@pytest.mark.parametrize("said", ["-", " ", "\n"])
def test_rulers_and_blanks_are_no_fault(bench: Bench, said: str) -> None:
    bench.ask(max_tokens=1).wait()
    assert bench.host.loaded is not None
    (token,) = bench.host.loaded.tokenizer.encode_text(said)
    bench.rules["get_logits"] = say(token)
    assert {bench.ask(max_tokens=40).wait().text for _ in range(4)} == {said * 40}


def test_another_answer_in_between_takes_it_back(bench: Bench) -> None:
    bench.ask(max_tokens=1).wait()
    for _ in range(3):
        bench.rules["get_logits"] = say(71)
        for _ in range(2):
            bench.ask(max_tokens=40).wait()
        bench.rules.clear()
        bench.ask(max_tokens=40, temperature=1.0, seed=1).wait()


def test_a_failing_append_ends_one_answer_only(bench: Bench) -> None:
    expected = bench.ask().wait().text

    def out_of_memory(real: Any, ids: Any) -> None:
        raise RuntimeError("Failed to allocate memory")

    bench.rules["append_tokens"] = out_of_memory
    with pytest.raises(GenerationFailed, match="Failed to allocate") as caught:
        bench.ask([*PROMPT, 1]).wait()
    assert caught.value.next_step
    bench.rules.clear()
    assert bench.ask().wait().text == expected
    assert bench.metrics.requests == {"length": 2, "error": 1}


def test_a_bug_is_answered_without_its_traceback(bench: Bench) -> None:
    def bug(real: Any) -> None:
        raise KeyError("secret source text")

    bench.ask().wait()
    bench.rules["get_logits"] = bug
    with pytest.raises(GenerationFailed) as caught:
        bench.ask().wait()
    assert "secret" not in str(caught.value)


def test_a_control_token_ends_the_answer_and_is_not_shown(bench: Bench) -> None:
    bench.ask(max_tokens=1).wait()
    assert bench.host.loaded is not None
    for token in bench.host.loaded.stop_ids:

        def choose(real: Callable[[], Any], token: int = token) -> Any:
            logits = real()
            logits[..., token] = 1e4
            return logits

        bench.rules["get_logits"] = choose
        answer = bench.ask().wait()
        assert (answer.text, answer.finish_reason) == ("", "stop")
        assert answer.extra["stop_reason"] == "control_token"


def test_a_character_cut_off_by_the_limit_is_left_out(bench: Bench) -> None:
    bench.ask(max_tokens=1).wait()
    assert bench.host.loaded is not None
    lead = bench.host.loaded.tokenizer.encode_text("漢")[0]

    def choose(real: Callable[[], Any]) -> Any:
        logits = real()
        logits[..., lead] = 1e4
        return logits

    bench.rules["get_logits"] = choose
    assert bench.ask(max_tokens=1).wait().text == ""
    assert bench.ask(max_tokens=2).wait().text == "\ufffd"


# --- a model without continuation --------------------------------------------------------


def test_without_continuation_answers_are_the_same_and_nothing_is_reused(tiny: Path) -> None:
    texts = {}
    for continuation in (True, False):
        bench = Bench(tiny, EngineOptions())
        bench.continuation = continuation
        first = bench.ask(max_tokens=20).wait()
        second = bench.ask([*PROMPT, 90], max_tokens=20, n=2, temperature=1.0, seed=1).wait()
        assert second.usage is not None
        assert (second.usage.reused_tokens > 0) == continuation
        texts[continuation] = (first.text, second.text)
        bench.scheduler.close()
    assert texts[True] == texts[False]


def test_without_continuation_typed_text_is_healed_the_same(tiny: Path) -> None:
    texts = {}
    for continuation in (True, False):
        bench = Bench(tiny, EngineOptions())
        bench.continuation = continuation
        prompts = ["def area():\n    " + "return self"[:count] for count in (3, 5, 9)]
        asked = [bench.ask(prompt, heal=True, n=2).wait() for prompt in prompts]
        texts[continuation] = [answer.text for answer in asked]
        for prompt, answer in zip(prompts, asked, strict=True):
            # What a random model says in place of the token taken back differs by the runtime.
            whole = bench.ask(prompt, max_tokens=1).wait().usage
            assert whole is not None and answer.usage is not None
            assert answer.usage.prompt_tokens < whole.prompt_tokens
        bench.scheduler.close()
    assert texts[True] == texts[False]


# --- one slot, several requests ----------------------------------------------------------


def test_a_chat_that_loses_its_slot_goes_on_correctly(tiny: Path) -> None:
    bench = Bench(tiny, EngineOptions(slots=1))
    alone = bench.ask(max_tokens=300, priority="chat", temperature=1.0, seed=3, top_k=50).wait()

    # Slow enough that the completion comes while the chat is at work.
    bench.rules["get_logits"] = slowly(0.002)
    chat = bench.ask(max_tokens=300, priority="chat", temperature=1.0, seed=3, top_k=50)
    first = chat.events.get(timeout=PATIENCE)
    assert isinstance(first, CompletionChunk)
    completion = bench.ask([200, 201, 202, 203]).wait()
    assert completion.finish_reason == "length"
    interrupted = chat.wait()
    assert first.text + interrupted.text == alone.text
    assert interrupted.extra["recomputed_tokens"] > 0
    assert interrupted.usage is not None and alone.usage is not None
    assert interrupted.usage.completion_tokens == alone.usage.completion_tokens == 300
    bench.scheduler.close()


def test_the_queue_has_a_limit(bench: Bench) -> None:
    bench.ask(max_tokens=1).wait()
    bench.rules["get_logits"] = slowly(0.01)
    answers = [
        bench.ask(max_tokens=500, priority="chat", client=str(number % 2))
        for number in range(QUEUE_LIMIT)
    ]
    with pytest.raises(TooManyRequests):
        bench.ask()
    for answer in answers:
        bench.scheduler.cancel(answer.job)
    assert all(answer.wait().finish_reason == "cancelled" for answer in answers)


def test_a_waiting_request_is_cancelled_without_the_worker(bench: Bench) -> None:
    """Where a prefill is one long call, who waits behind it must not wait to be told."""
    bench.ask(max_tokens=1).wait()
    release = queue.Queue[None]()
    bench.rules["append_tokens"] = lambda real, ids: (release.get(timeout=PATIENCE), real(ids))[1]
    busy = bench.ask([300, 301])
    waiting = [bench.ask([200, number], document="d") for number in range(4)]
    for replaced in waiting[:3]:
        assert replaced.wait().finish_reason == "cancelled"
    bench.rules.clear()
    release.put(None)
    assert busy.wait().finish_reason == "length"
    assert waiting[3].wait().finish_reason == "length"


def test_closing_ends_running_requests(tiny: Path) -> None:
    bench = Bench(tiny, EngineOptions())
    bench.ask(max_tokens=1).wait()
    bench.rules["get_logits"] = slowly(0.01)
    running = bench.ask(max_tokens=1000)
    running.events.get(timeout=PATIENCE)
    bench.scheduler.close()
    assert running.wait().finish_reason == "cancelled"
    assert bench.host.loaded is None


# --- which model -------------------------------------------------------------------------


def test_another_model_takes_the_place_of_the_loaded_one(bench: Bench, tmp_path: Path) -> None:
    other = make_tiny_package(tmp_path / "other", seed=9)
    first = bench.ask(max_tokens=20).wait()
    assert first.model == "tiny"
    second = bench.ask(max_tokens=20, model=str(other)).wait()
    assert second.model == "other" and second.text != first.text
    # No name means the current one.
    assert bench.ask(max_tokens=20).wait().text == second.text
    assert bench.loads == ["tiny", "other"]


@pytest.mark.parametrize("fits", [True, False])
def test_a_chat_survives_a_completion_with_another_model(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    monkeypatch.setattr("fimble.engine.host.fits_beside", lambda *_: fits)
    other = make_tiny_package(tmp_path / "other", seed=9)
    alone = bench.ask(max_tokens=200, priority="chat").wait().text
    bench.rules["get_logits"] = slowly(0.002)
    chat = bench.ask(max_tokens=200, priority="chat")
    first = chat.events.get(timeout=PATIENCE)
    assert isinstance(first, CompletionChunk)
    assert bench.ask(model=str(other)).wait().model == "other"
    assert first.text + chat.wait().text == alone
    assert bench.loads == (["tiny", "other"] if fits else ["tiny", "other", "tiny"])


def test_each_exchange_is_told_in_the_answer_also_the_way_back(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fimble.engine.host.fits_beside", lambda *_: False)
    other = make_tiny_package(tmp_path / "other", seed=9)
    tiny = str(bench.host.config("").folder)
    assert "notice" not in bench.ask(model=tiny).wait().extra
    assert "tiny was unloaded" in bench.ask(model=str(other)).wait().extra["notice"]
    assert "other was unloaded" in bench.ask(model=tiny).wait().extra["notice"]
    assert bench.loads == ["tiny", "other", "tiny"]


def test_a_model_that_fails_leaves_the_former_one_in_its_place(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fimble.engine.host.fits_beside", lambda *_: False)
    other = make_tiny_package(tmp_path / "other", seed=9)
    text = bench.ask().wait().text
    (other / "model.onnx.data").unlink()
    with pytest.raises(LoadFailed, match="other"):
        bench.ask(model=str(other)).wait()
    assert bench.host.state == "ready"
    assert bench.ask().wait().text == text
    assert bench.loads == ["tiny", "other", "tiny"]


def test_a_provider_that_is_refused_beforehand_costs_no_load(bench: Bench) -> None:
    bench.ask().wait()
    former = bench.host.loaded
    with pytest.raises(LoadFailed, match="There is no provider nonsense"):
        bench.host.ensure("", "nonsense")
    assert bench.host.loaded is former


def test_a_model_that_cannot_be_loaded_is_not_tried_at_every_key(bench: Bench) -> None:
    bench.fail_load = LoadFailed("The package is damaged.")
    for _ in range(3):
        with pytest.raises(LoadFailed, match="damaged"):
            bench.ask().wait()
    assert bench.loads == ["tiny"]
    assert bench.host.state == "failed"
    # Someone who asks for the load itself means it.
    bench.fail_load = None
    job = bench.submit(None)
    assert isinstance(job.events.get(timeout=PATIENCE), Done)
    assert bench.loads == ["tiny", "tiny"]
    assert bench.ask().wait().finish_reason == "length"


def test_an_unknown_model_is_named(bench: Bench) -> None:
    with pytest.raises(ModelNotFound, match="no-such-model"):
        bench.ask(model="no-such-model").wait()


def test_a_package_that_was_replaced_is_loaded_anew(tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "package", seed=1)
    bench = Bench(package, EngineOptions())
    first = bench.ask(max_tokens=20).wait().text
    shutil.rmtree(package)
    make_tiny_package(package, seed=2)
    second = bench.ask(max_tokens=20, model=str(package)).wait().text
    assert second != first
    assert bench.loads == ["package", "package"]
    bench.scheduler.close()


def test_a_failed_package_that_was_repaired_is_tried_at_once(bench: Bench, tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "package")
    (package / "model.onnx").write_bytes(b"")
    with pytest.raises(LoadFailed):
        bench.ask(model=str(package)).wait()
    shutil.rmtree(package)
    make_tiny_package(package)
    assert bench.ask(model=str(package)).wait().finish_reason == "length"


def test_when_the_current_package_is_removed_the_default_counts(
    bench: Bench, tmp_path: Path
) -> None:
    other = make_tiny_package(tmp_path / "other", seed=9)
    assert bench.ask(model=str(other)).wait().model == "other"
    shutil.rmtree(other)
    bench.scheduler.unload_when_idle()
    until(lambda: bench.host.loaded is None)
    assert bench.ask().wait().model == "tiny"


def test_unloading_frees_the_model_and_the_next_request_loads_it(bench: Bench) -> None:
    text = bench.ask().wait().text
    bench.scheduler.unload_when_idle()
    until(lambda: bench.host.loaded is None)
    assert bench.host.state == "idle"
    assert bench.ask().wait().text == text
