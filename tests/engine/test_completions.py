"""/v1/completions of a real engine with the tiny model: reuse, stops, streaming, sampling."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CONTROL_TOKENS
from tests.engine.process import RunningEngine, running_engine

CODE = (
    "def area(width, height):\n    return width * height\n\nclass Box:\n    def __init__(self):\n"
)


@pytest.fixture(scope="module")
def fresh(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """A second engine that is asked each prompt only once, in one slot that is wiped first."""
    home = tmp_path_factory.mktemp("fresh")
    with running_engine(home, tiny, EngineOptions(slots=1)) as engine:
        yield engine


def fresh_text(fresh: RunningEngine, prompt: Any, **body: Any) -> str:
    """The text without any reuse, which the usage proves."""
    fresh.complete([300], max_tokens=0)
    answer = fresh.complete(prompt, **body)
    assert answer["usage"]["reused_tokens"] == 0
    text: str = answer["choices"][0]["text"]
    return text


def ids_of(engine: RunningEngine, text: str) -> list[int]:
    answer = engine.http.post("/tokenize", json={"texts": [text], "ids": True}).json()
    ids: list[int] = answer["ids"][0]
    return ids


# --- reuse -------------------------------------------------------------------------------


def test_usage_counts_reused_and_computed_exactly(engine: RunningEngine) -> None:
    base = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    first = engine.complete(base, document="counts")["usage"]
    assert (first["prompt_tokens"], first["reused_tokens"]) == (10, 0)
    assert first["completion_tokens"] == 8

    longer = engine.complete([*base, 110, 120], document="counts")["usage"]
    # The slot also holds what was generated, of which the prompt's next tokens differ.
    assert longer["reused_tokens"] in (10, 11)
    assert longer["computed_tokens"] == 12 - longer["reused_tokens"]

    changed = engine.complete([*base[:6], 7, 8], document="counts")["usage"]
    assert (changed["reused_tokens"], changed["computed_tokens"]) == (6, 2)

    same = engine.complete([*base[:6], 7, 8], document="counts")["usage"]
    assert (same["reused_tokens"], same["computed_tokens"]) == (7, 1)
    assert same["total_tokens"] == 16
    assert same["prompt_tokens_details"] == {"cached_tokens": 7}


def test_what_was_generated_is_reused_when_it_is_accepted(engine: RunningEngine) -> None:
    prompt = [10, 20, 30, 40, 50, 60, 70]
    text = engine.text(prompt, max_tokens=6, document="accept")
    accepted = [*prompt, *ids_of(engine, text)]
    usage = engine.complete(accepted, document="accept")["usage"]
    # Random tokens need not be the tokens of their own text; up to there they are reused.
    assert usage["reused_tokens"] >= len(prompt)


def test_reused_output_equals_fresh_output(engine: RunningEngine, fresh: RunningEngine) -> None:
    """Edits as they come while someone types: at the end, in the middle, undone."""
    words = random.Random(4)
    text = CODE
    for _ in range(25):
        cut = words.randrange(len(text) // 2, len(text) + 1)
        text = text[:cut] + words.choice(["x", " = ", "\n", "self", "漢", "(1)"]) + text[cut:]
        body: dict[str, Any] = {"max_tokens": 12}
        reused = engine.complete(text, document="edits", **body)
        assert reused["choices"][0]["text"] == fresh_text(fresh, text, **body)
    assert engine.complete(text, document="edits")["usage"]["computed_tokens"] == 1


def test_a_rewind_is_followed_by_an_append(engine: RunningEngine, fresh: RunningEngine) -> None:
    """A prompt that is the beginning of what the slot holds: nothing is left to append."""
    long = ids_of(engine, CODE)
    engine.complete(long, document="rewind")
    short = engine.complete(long[:20], document="rewind", max_tokens=10)
    assert short["usage"]["computed_tokens"] == 1
    assert short["choices"][0]["text"] == fresh_text(fresh, long[:20], max_tokens=10)


def test_no_generated_token_is_left_out_of_the_cache(
    engine: RunningEngine, fresh: RunningEngine
) -> None:
    prompt = CODE + "hole = "
    first = engine.text(prompt, max_tokens=7, document="hole")
    longer = prompt + first + "for x in range"
    reused = engine.complete(longer, max_tokens=10, document="hole")
    assert reused["usage"]["reused_tokens"] > len(ids_of(engine, prompt)) - 2
    assert reused["choices"][0]["text"] == fresh_text(fresh, longer, max_tokens=10)


# --- prompts -----------------------------------------------------------------------------


def test_a_string_its_ids_and_a_segment_are_one_prompt(engine: RunningEngine) -> None:
    as_text = engine.text(CODE)
    assert engine.text(ids_of(engine, CODE)) == as_text
    assert engine.text([{"text": CODE}]) == as_text


@pytest.mark.parametrize("spelling", ["<|fim_middle|>", "<|im_end|>", "<|endoftext|>"])
def test_control_tokens_in_text_are_text(engine: RunningEngine, spelling: str) -> None:
    name = next(name for name, each in CONTROL_TOKENS.items() if each == spelling)
    spelled = engine.complete([{"text": "a"}, {"text": spelling}])
    control = engine.complete([{"text": "a"}, {"control": name}])
    assert control["usage"]["prompt_tokens"] == 2
    assert spelled["usage"]["prompt_tokens"] > 4
    assert engine.complete("a" + spelling)["usage"]["prompt_tokens"] > 4


def test_a_nul_does_not_cut_the_prompt(engine: RunningEngine) -> None:
    assert engine.complete("ab\0cd")["usage"]["prompt_tokens"] == 5


def test_an_empty_prompt_is_a_new_document(engine: RunningEngine) -> None:
    assert engine.complete("")["usage"]["prompt_tokens"] == 1


def test_a_prompt_beyond_the_window_is_refused_with_both_numbers(engine: RunningEngine) -> None:
    response = engine.http.post("/v1/completions", json={"prompt": [7] * 2048})
    assert response.status_code == 400
    error = response.json()["error"]
    assert "2048 tokens" in error["message"] and "window of 2048" in error["message"]
    assert "--context-tokens" in error["next_step"]
    # And one that just fits is answered up to the window.
    answer = engine.complete([7] * 2046, max_tokens=50)
    assert answer["usage"]["completion_tokens"] == 2
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["extra"]["stop_reason"] == "window"


# --- ends --------------------------------------------------------------------------------


def test_max_tokens_ends_with_length(engine: RunningEngine) -> None:
    answer = engine.complete(CODE, max_tokens=5)
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["extra"]["stop_reason"] == "max_tokens"
    assert answer["extra"]["mean_logprob"] < 0


def test_zero_tokens_only_warm_the_slot(engine: RunningEngine) -> None:
    answer = engine.complete(CODE + "warm", max_tokens=0, priority="warmup", document="w")
    assert answer["usage"]["completion_tokens"] == 0
    assert answer["choices"][0]["text"] == ""
    assert engine.complete(CODE + "warm", document="w")["usage"]["computed_tokens"] == 1


def test_a_stop_string_ends_the_text_wherever_tokens_were_cut(engine: RunningEngine) -> None:
    whole = engine.text(CODE, max_tokens=40)
    for start in range(2, 20, 3):
        stop = whole[start : start + 3]
        answer = engine.complete(CODE, max_tokens=40, stop=[stop, "never there"])
        choice = answer["choices"][0]
        assert choice["text"] == whole[: whole.index(stop)]
        assert choice["finish_reason"] == "stop"
        assert answer["extra"]["stop_reason"] == "stop_string"


# --- streaming, candidates, sampling -----------------------------------------------------


@pytest.mark.parametrize("body", [{}, {"stop": ["e"]}, {"n": 3, "temperature": 1.5, "seed": 5}])
def test_streamed_pieces_join_to_the_whole(engine: RunningEngine, body: dict[str, Any]) -> None:
    body = {"prompt": CODE, "max_tokens": 30, **body}
    whole = engine.http.post("/v1/completions", json=body).json()
    events = engine.events("/v1/completions", body)
    joined: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for event in events:
        for choice in event["choices"]:
            joined[choice["index"]] = joined.get(choice["index"], "") + choice["text"]
            if choice["finish_reason"]:
                reasons[choice["index"]] = choice["finish_reason"]
    assert joined == {choice["index"]: choice["text"] for choice in whole["choices"]}
    assert reasons == {choice["index"]: choice["finish_reason"] for choice in whole["choices"]}
    last = events[-1]["usage"]
    assert last["completion_tokens"] == whole["usage"]["completion_tokens"]
    assert {event["model"] for event in events} == {"tiny"}


def test_every_piece_says_what_has_been_used_so_far(engine: RunningEngine) -> None:
    """So that whoever ends a stream early knows it, too."""
    body = {"prompt": CODE + "so far", "max_tokens": 12, "document": "so far"}
    events = engine.events("/v1/completions", body)
    assert len(events) > 5
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts) and counts[0] >= 1 and counts[-1] == 12
    first, last = events[0], events[-1]
    assert first["usage"]["prompt_tokens"] == last["usage"]["prompt_tokens"]
    assert first["usage"]["computed_tokens"] == last["usage"]["computed_tokens"] > 0
    for event in events:
        assert (event["model"], event["provider"]) == ("tiny", "CPU")
        assert event["extra"]["mean_logprob"] < 0
        assert event["timings"]["prefill_ms"] > 0
    assert [event["timings"]["decode_ms"] for event in events] == sorted(
        event["timings"]["decode_ms"] for event in events
    )


def test_candidates_share_the_prompt(engine: RunningEngine) -> None:
    body: dict[str, Any] = {"max_tokens": 10, "temperature": 1.5, "seed": 11, "top_k": 20}
    answer = engine.complete(CODE + "many", n=4, **body)
    texts = [choice["text"] for choice in answer["choices"]]
    assert len(set(texts)) == 4
    assert answer["usage"]["completion_tokens"] == 40
    assert answer["usage"]["prompt_tokens"] == len(ids_of(engine, CODE + "many"))
    # The first does not depend on how many are asked for.
    assert engine.text(CODE + "many", **body) == texts[0]


def test_a_seed_repeats_and_another_differs(engine: RunningEngine) -> None:
    def answers(seed: int | None) -> list[str]:
        return [engine.text(CODE, temperature=1.0, seed=seed, max_tokens=20) for _ in range(2)]

    first, second = answers(1)
    assert first == second
    assert answers(2)[0] != first
    assert len(set(answers(None))) == 2
    assert engine.text(CODE, temperature=1.0, seed=1, top_k=1) == engine.text(CODE)


def test_counts_are_in_the_metrics(engine: RunningEngine) -> None:
    names = ["prompt_tokens_reused", "prompt_tokens_computed", "generated_tokens"]
    before = [engine.metric(f"fimble_{name}_total") for name in names]
    usage = engine.complete(CODE + "metrics", max_tokens=9)["usage"]
    after = [engine.metric(f"fimble_{name}_total") for name in names]
    assert [late - early for late, early in zip(after, before, strict=True)] == [
        usage["reused_tokens"],
        usage["computed_tokens"],
        9,
    ]


# --- log-probabilities -------------------------------------------------------------------


@pytest.mark.parametrize("stop", [[], ["e"]])
def test_logprobs_are_of_the_tokens_shown(engine: RunningEngine, stop: list[str]) -> None:
    body: dict[str, Any] = {"max_tokens": 20, "logprobs": 3, "stop": stop}
    answer = engine.complete(CODE, **body)
    (choice,) = answer["choices"]
    found = choice["logprobs"]
    assert set(found) == {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
    assert len({len(each) for each in found.values()}) == 1
    for token, value, top, offset in zip(*found.values(), strict=True):
        # Greedy: each token is the likeliest.
        assert top[token] == value == max(top.values())
        assert 1 <= len(top) <= 3
        assert 0 <= offset < len(choice["text"])
        if not token.startswith("bytes:"):
            # A character that never became whole shows up in front of the next token.
            shown = choice["text"][offset:].lstrip("\ufffd")
            assert shown.startswith(token[: len(shown)])
    if not stop:
        mean = sum(found["token_logprobs"]) / len(found["token_logprobs"])
        assert len(found["tokens"]) == 20
        assert mean == pytest.approx(answer["extra"]["mean_logprob"], abs=1e-3)
    streamed: dict[str, list[Any]] = {name: [] for name in found}
    for event in engine.events("/v1/completions", {"prompt": CODE, **body}):
        for name, values in (event["choices"][0]["logprobs"] or {}).items():
            streamed[name] += values
    assert (streamed["tokens"], streamed["text_offset"]) == (found["tokens"], found["text_offset"])
    # Another prefill rounds a little differently.
    assert streamed["token_logprobs"] == pytest.approx(found["token_logprobs"], abs=1e-3)
    assert [len(top) for top in streamed["top_logprobs"]] == [3] * len(found["tokens"])


def test_logprobs_zero_names_no_alternatives_and_none_says_nothing(engine: RunningEngine) -> None:
    answer = engine.complete(CODE, logprobs=0)["choices"][0]["logprobs"]
    assert len(answer["token_logprobs"]) == 8
    assert answer["top_logprobs"] == [{}] * 8
    assert engine.complete(CODE)["choices"][0]["logprobs"] is None


def test_healed_tokens_have_the_probability_among_those_allowed(engine: RunningEngine) -> None:
    answer = engine.complete("x = retur", heal=True, max_tokens=4, logprobs=5)
    found = answer["choices"][0]["logprobs"]
    assert len(found["tokens"]) == 4
    assert found["text_offset"][0] == 0
    assert all(value <= 0 for value in found["token_logprobs"])


# --- the other endpoints -----------------------------------------------------------------


def test_tokenize_counts_texts_as_text(engine: RunningEngine) -> None:
    texts = ["", "def", "<|fim_middle|>", "a\0b", "漢"]
    answer = engine.http.post("/tokenize", json={"texts": texts, "ids": True}).json()
    assert answer["counts"] == [len(ids) for ids in answer["ids"]]
    assert answer["counts"][:2] == [0, 1] and answer["counts"][2] > 3
    assert "ids" not in engine.http.post("/tokenize", json={"texts": texts}).json()


def test_models_and_health_say_what_is_loaded(engine: RunningEngine) -> None:
    (model,) = engine.http.get("/v1/models").json()["data"]
    assert model["id"] == "tiny" and model["window"] == 2048
    assert model["fim"] and model["continuation"] and model["provider"] == "CPU"
    assert model["prefill_tokens_per_s"] > 0 and model["decode_tokens_per_s"] > 0
    health = engine.health()
    assert health["state"] == "ready" and health["pid"] == engine.address.pid
    assert health["models"] == [{**model, "state": "ready"}]
    assert all(slot["model"] == "tiny" and not slot["busy"] for slot in health["slots"])
    assert 1 <= len(health["slots"]) <= 2
