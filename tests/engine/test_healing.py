"""Typed text is taken back and generated again: what is allowed, shown, counted and reused."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble.engine.candidate import Candidate
from fimble.engine.healing import Healing, TokenIndex, taken_back, typed_text
from fimble.engine.loaded import LoadedModel, load_model
from fimble.engine.package import read_package_config
from fimble.engine.protocol import CompletionRequest, Control, Text
from fimble.engine.tokens import PackageTokenizer
from tests.engine.process import RunningEngine
from tests.support.tiny import CONTROL_TOKENS

BYTES = [bytes([byte]) for byte in range(256)]
WORDS = [b"return", b"retur", b"re", b" foo", b"(self", b"\n    \n", "漢".encode(), b"()"]
TABLE = [*BYTES, *WORDS, b"", b"<|end|>"]
END = len(TABLE) - 1


def id_of(word: bytes) -> int:
    return TABLE.index(word)


def words(index: TokenIndex, remaining: bytes) -> set[bytes]:
    return {TABLE[token] for token in index.allowed(remaining)}


@functools.cache
def loaded(package: Path) -> LoadedModel:
    """For hypothesis, which allows no fixture narrower than the session."""
    tokenizer = PackageTokenizer(package / "tokenizer.json")
    config = read_package_config(package)
    return load_model(config, tokenizer, context_tokens=256, threads=1, slots=1)


# --- what is allowed ---------------------------------------------------------------------


INDEX = TokenIndex(TABLE, [END])


@pytest.mark.parametrize(
    "remaining, expected",
    [
        (b"retu", {b"retur", b"return", b"re", b"r"}),
        (b"return", {b"return", b"retur", b"re", b"r"}),
        (b"returns", {b"return", b"retur", b"re", b"r"}),
        (b"(", {b"(", b"(self", b"()"}),
        (b" ", {b" ", b" foo"}),
        ("漢".encode()[:2], {"漢".encode(), "漢".encode()[:1]}),
        ("漢".encode()[1:], {"漢".encode()[1:2]}),
        (b"\xff\xff", {b"\xff"}),
        (b"<|e", {b"<"}),
    ],
)
def test_allowed_is_what_begins_with_the_rest_and_what_the_rest_begins_with(
    remaining: bytes, expected: set[bytes]
) -> None:
    assert words(INDEX, remaining) == expected


@given(st.lists(st.binary(max_size=4), max_size=40), st.binary(min_size=1, max_size=5))
def test_allowed_equals_its_definition(table: list[bytes], remaining: bytes) -> None:
    index = TokenIndex(table, [3])
    expected = [
        token
        for token, data in enumerate(table)
        if data
        and token != 3
        and (data.startswith(remaining) or (remaining.startswith(data) and data != remaining))
    ]
    assert list(index.allowed(remaining)) == expected
    # From the cache, too.
    assert list(index.allowed(remaining)) == expected


@given(st.lists(st.binary(max_size=4), max_size=40), st.binary(max_size=6))
def test_an_open_end_is_the_longest_that_some_token_spells_on(
    table: list[bytes], data: bytes
) -> None:
    ends = [data[start:] for start in range(len(data))]
    open_ends = [
        len(end) for end in ends if any(token.startswith(end) and token != end for token in table)
    ]
    assert TokenIndex(table).open_end(data) == max(open_ends, default=0)


def test_a_vocabulary_without_every_byte_cannot_heal() -> None:
    assert INDEX.complete
    assert not TokenIndex(TABLE, [10]).complete
    assert not TokenIndex([b"a", b"b"]).complete


# --- how much is taken back --------------------------------------------------------------


@pytest.mark.parametrize(
    "typed, expected",
    [
        ([b"x", b" "], 1),
        ([b"x", b"retur"], 1),
        ([b"x", b"re", b"t", b"u"], 3),
        ([b"f", b"("], 1),
        ([b"f", b"\n", b" ", b" "], 3),
        # Nothing reaches from inside these to beyond them.
        ([b"x", b"return"], 0),
        ([b"a", b"7"], 0),
        ([], 0),
    ],
)
def test_as_much_is_taken_back_as_a_token_could_cover(
    typed: Sequence[bytes], expected: int
) -> None:
    assert taken_back(INDEX, TABLE, [id_of(word) for word in typed]) == expected


def test_no_more_than_eight_tokens_are_taken_back() -> None:
    long = TokenIndex([*BYTES, b" " * 40])
    assert taken_back(long, BYTES, [ord(" ")] * 20) == 8


def test_only_text_at_the_end_of_a_prompt_was_typed() -> None:
    assert typed_text("ab") == "ab"
    assert typed_text((Control("fim_middle"), Text("a"), Text("b"))) == "b"
    assert typed_text((Text("a"), Control("fim_middle"))) == ""
    assert typed_text((Text("a"), Text(""))) == ""
    assert typed_text([1, 2]) == ""
    assert typed_text([]) == ""


# --- what is generated -------------------------------------------------------------------


def test_the_rest_goes_on_until_it_is_used_up() -> None:
    healing = Healing(INDEX, b"retu")
    assert healing.push(b"re") == b""
    assert healing.push(b"t") == b""
    assert set(healing.allowed() or ()) == {ord("u")}
    assert healing.push(b"u") == b""
    assert not healing.active and healing.allowed() is None
    assert healing.push(b"rn") == b"rn"
    healing = Healing(INDEX, b"retu")
    assert healing.push(b"return") == b"rn"
    assert not healing.active


CODE = st.text(alphabet="defrtun =:()\n\t.self_printé漢😀'\"0", max_size=24) | st.text(max_size=12)


@given(CODE, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 40.0]))
@settings(max_examples=150, deadline=None)
def test_whatever_the_logits_the_bytes_taken_back_come_first(
    tiny: Path, text: str, seed: int, temperature: float
) -> None:
    """With random logits, and control tokens the likeliest of all."""
    model = loaded(tiny)
    tokenizer = model.tokenizer
    typed = tokenizer.encode_text(text)
    count = taken_back(model.index, tokenizer.token_bytes, typed)
    back = b"".join(tokenizer.token_bytes[token] for token in typed[len(typed) - count :])
    request = CompletionRequest(text, max_tokens=3, temperature=temperature, seed=seed)
    candidate = Candidate(request, 0, model, back, room=64)
    random = np.random.default_rng(seed)
    shown = ""
    while candidate.end is None:
        logits = random.standard_normal(512).astype(np.float32) * 9
        logits[sorted(model.stop_ids)] = 50 if len(candidate.tokens) < len(back) else -50
        shown += candidate.push(logits)
    made = b"".join(tokenizer.token_bytes[token] for token in candidate.tokens)
    assert made.startswith(back)
    kept = b"".join(tokenizer.token_bytes[token] for token in typed[: len(typed) - count])
    beyond = made[len(back) :].decode("utf-8", "replace").rstrip("\ufffd")
    assert shown.rstrip("\ufffd") == beyond
    assert kept + back == unicodedata.normalize("NFC", text).encode("utf-8", "replace")
    assert not model.stop_ids & set(candidate.tokens)


# --- an engine's answers -----------------------------------------------------------------


def segments(typed: str, suffix: str = "\n\nprint(area(2, 3))\n") -> list[dict[str, str]]:
    """An anchored prompt."""
    return [
        {"control": "fim_prefix"},
        {"text": "def area(width, height):\n    return width * height\n\n"},
        {"control": "fim_suffix"},
        {"text": suffix},
        {"control": "fim_middle"},
        {"text": typed},
    ]


def test_the_model_says_that_it_heals(engine: RunningEngine) -> None:
    (model,) = engine.http.get("/v1/models").json()["data"]
    assert model["healing"] is True


@pytest.mark.parametrize("typed", ["x = retur", "x = ", "    ", "if", "\n  "])
def test_the_answer_begins_behind_the_typed_text(engine: RunningEngine, typed: str) -> None:
    plain = engine.complete(segments(typed), document="behind")["usage"]
    answer = engine.complete(segments(typed), heal=True, max_tokens=6, document="behind")
    usage, healed = answer["usage"], answer["extra"].get("healing_tokens", 0)
    assert usage["prompt_tokens"] < plain["prompt_tokens"]
    # Tokens inside the typed text are counted, but they are not the answer's.
    assert usage["completion_tokens"] == 6 + healed
    assert answer["choices"][0]["finish_reason"] == "length"
    streamed = engine.events(
        "/v1/completions", {"prompt": segments(typed), "heal": True, "max_tokens": 6}
    )
    text = "".join(event["choices"][0]["text"] for event in streamed)
    assert text == answer["choices"][0]["text"]


def test_nothing_typed_is_a_plain_prompt(engine: RunningEngine) -> None:
    for prompt in (segments("")[:-1], segments(""), [5, 6, 7]):
        plain = engine.complete(prompt)
        healed = engine.complete(prompt, heal=True)
        assert healed["choices"][0]["text"] == plain["choices"][0]["text"]
        assert healed["usage"]["prompt_tokens"] == plain["usage"]["prompt_tokens"]
        assert "healing_tokens" not in healed["extra"]


def test_a_prompt_of_typed_text_alone_may_be_taken_back_whole(engine: RunningEngine) -> None:
    usage = engine.complete("retur", heal=True)["usage"]
    assert usage["prompt_tokens"] == 1


def test_stop_strings_do_not_see_the_typed_text(engine: RunningEngine) -> None:
    body: dict[str, Any] = {"heal": True, "max_tokens": 12}
    whole = engine.text(segments("x = retur"), **body)
    assert engine.text(segments("x = retur"), stop=["retur"], **body) == whole
    stop = whole[3:5]
    stopped = engine.text(segments("x = retur"), stop=[stop], **body)
    assert stopped == whole[: whole.index(stop)]


def test_candidates_heal_one_by_one(engine: RunningEngine) -> None:
    body: dict[str, Any] = {"heal": True, "temperature": 1.5, "seed": 3, "max_tokens": 5}
    answer = engine.complete(segments("x = self.retu"), n=3, **body)
    texts = [choice["text"] for choice in answer["choices"]]
    assert len(set(texts)) == 3
    assert engine.text(segments("x = self.retu"), **body) == texts[0]


def test_a_warm_up_warms_what_a_healed_request_needs(engine: RunningEngine) -> None:
    prompt = segments("warm = sel", suffix="\nwarm\n")
    engine.complete(prompt, heal=True, max_tokens=0, priority="warmup", document="warm")
    assert engine.complete(prompt, heal=True, document="warm")["usage"]["computed_tokens"] == 1


def test_a_keystroke_computes_what_was_typed(engine: RunningEngine) -> None:
    """Thirty keystrokes, a new line and a deletion behind one anchor."""
    text = "total = area(width=2, height=len(x))"[:30] + "\n    return self"
    states = [text[:count] for count in range(1, len(text) + 1)]
    states += [text[:-4], text[:-12], text[:-12] + "if"]
    computed = []
    for typed in states:
        usage = engine.complete(segments(typed), heal=True, document="typing")["usage"]
        assert usage["computed_tokens"] + usage["reused_tokens"] == usage["prompt_tokens"]
        computed.append(usage["computed_tokens"])
    steady = sorted(computed[1:])
    assert steady[len(steady) // 2] <= 2
    assert steady[-1] <= 4
    assert computed[0] > steady[-1], "the anchor itself is computed once"


def test_spelled_control_tokens_stay_text(engine: RunningEngine) -> None:
    for spelling in CONTROL_TOKENS[:3]:
        answer = engine.complete(segments(f"'{spelling[:-1]}"), heal=True)
        assert answer["extra"]["stop_reason"] == "max_tokens"
