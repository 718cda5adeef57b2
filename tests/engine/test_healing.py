"""Typed text is taken back and generated again: what is allowed, shown, counted and reused."""

from __future__ import annotations

import functools
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fimble.engine.candidate import Candidate
from fimble.engine.healing import Healing, TokenIndex, take_back, typed_text
from fimble.engine.loaded import LoadedModel, load_model
from fimble.engine.options import EngineOptions
from fimble.engine.package import read_package_config
from fimble.engine.protocol import CompletionRequest, Control, Text
from fimble.engine.tokens import PackageTokenizer, byte_of_char
from tests.engine.process import RunningEngine
from tests.support.tiny import CONTROL_TOKENS


@functools.cache
def loaded(package: Path) -> LoadedModel:
    """For hypothesis, which allows no fixture narrower than the session."""
    tokenizer = PackageTokenizer(package / "tokenizer.json")
    config = read_package_config(package)
    return load_model(
        config, tokenizer, options=EngineOptions(context_tokens=256, threads=1, slots=1)
    )


def words_tokenizer(folder: Path, words: Sequence[str]) -> PackageTokenizer:
    """The tiny package's tokenizer with merges that make tokens of ``words``."""
    data = json.loads((folder / "tokenizer.json").read_bytes())
    model = data["model"]
    alphabet = {byte: char for char, byte in byte_of_char().items()}
    for word in words:
        parts = [alphabet[byte] for byte in word.encode()]
        while len(parts) > 1:
            pair, parts = parts[:2], ["".join(parts[:2]), *parts[2:]]
            if parts[0] not in model["vocab"]:
                model["vocab"][parts[0]] = 1000 + len(model["vocab"])
                model["merges"].append(
                    pair if isinstance(model["merges"][0], list) else " ".join(pair)
                )
    path = folder / f"words-{len(words)}.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return PackageTokenizer(path)


# --- what is allowed ---------------------------------------------------------------------


@given(st.lists(st.binary(max_size=4), max_size=40), st.binary(min_size=1, max_size=5))
def test_longer_tokens_are_found_by_their_beginning(table: list[bytes], beginning: bytes) -> None:
    expected = {
        token
        for token, data in enumerate(table)
        if data.startswith(beginning) and data != beginning and token != 3
    }
    assert set(TokenIndex(table, [3]).longer(beginning)) == expected


@given(st.lists(st.binary(max_size=4), max_size=40), st.binary(max_size=6))
def test_open_ends_are_those_that_some_token_spells_on(table: list[bytes], data: bytes) -> None:
    expected = {
        start
        for start in range(len(data))
        if any(token.startswith(data[start:]) and token != data[start:] for token in table)
    }
    found = dict(TokenIndex(table).open_ends(data))
    assert set(found) == expected and list(found) == sorted(found)
    for start, words in found.items():
        assert words and all(word.startswith(data[start:]) and word in table for word in words)


def test_a_vocabulary_without_every_byte_cannot_heal() -> None:
    table = [bytes([byte]) for byte in range(256)]
    assert TokenIndex(table).complete
    assert not TokenIndex(table, [10]).complete
    assert not TokenIndex([b"a", b"b"]).complete


# --- how much is taken back --------------------------------------------------------------


@pytest.mark.parametrize(
    "typed, expected",
    [
        ("x ", " "),
        ("x = retur", " retur"),
        ("if", "if"),
        ("f(", "("),
        ("\n  ", "  "),
        ("漢", "漢"),
        # Nothing reaches from inside these to beyond them.
        ("x = 7", ""),
        ("y)", ""),
        ("", ""),
    ],
)
def test_what_could_be_cut_otherwise_is_taken_back(
    tiny: Path, tmp_path: Path, typed: str, expected: str
) -> None:
    (tmp_path / "tokenizer.json").write_bytes((tiny / "tokenizer.json").read_bytes())
    tokenizer = words_tokenizer(tmp_path, ["return", "(self", "漢字", "iffy"])
    index = TokenIndex(tokenizer.token_bytes, tokenizer.added_ids)
    taken = take_back(index, tokenizer, tokenizer.encode_text(typed))
    assert taken.data.decode() == expected


def test_no_more_than_eight_tokens_are_taken_back(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes((tiny / "tokenizer.json").read_bytes())
    tokenizer = words_tokenizer(tmp_path, ["abcdefghijklmnopqrstuvwxyz"])
    index = TokenIndex(tokenizer.token_bytes, tokenizer.added_ids)
    for length in range(1, 26):
        typed = tokenizer.encode_text("zyxwvutsrq" + "abcdefghijklmnopqrstuvwxyz"[:length])
        assert take_back(index, tokenizer, typed).count <= 8


def test_only_text_at_the_end_of_a_prompt_was_typed() -> None:
    assert typed_text("ab") == "ab"
    assert typed_text((Control("fim_middle"), Text("a"), Text("b"))) == "b"
    assert typed_text((Text("a"), Control("fim_middle"))) == ""
    assert typed_text((Text("a"), Text(""))) == ""
    assert typed_text([1, 2]) == ""
    assert typed_text([]) == ""


CODE = st.text(alphabet="defrtun =:()\n\t.self_printé漢😀'\"0", max_size=24) | st.text(max_size=12)


@given(CODE, CODE)
@settings(max_examples=300, deadline=None)
def test_however_the_text_goes_on_its_own_cut_is_allowed(tiny: Path, typed: str, rest: str) -> None:
    """What the tokenizer makes of the longer text is what the model has learned."""
    model = loaded(tiny)
    tokenizer = model.tokenizer
    ids = tokenizer.encode_text(typed)
    whole = tokenizer.encode_text(typed + rest)
    # Composed characters change what was typed.
    assume(
        b"".join(tokenizer.token_bytes[t] for t in whole).startswith(
            b"".join(tokenizer.token_bytes[t] for t in ids)
        )
    )
    taken = take_back(model.index, tokenizer, ids)
    kept = len(ids) - taken.count
    assume(taken.count < 8)
    assert whole[:kept] == ids[:kept]
    healing = Healing(model.index, taken)
    for token in whole[kept:]:
        allowed = healing.allowed()
        if allowed is None:
            break
        assert token in allowed
        healing.push(token, tokenizer.token_bytes[token])


# --- what is generated -------------------------------------------------------------------


@given(CODE, st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 40.0]))
@settings(max_examples=150, deadline=None)
def test_whatever_the_logits_the_bytes_taken_back_come_first(
    tiny: Path, text: str, seed: int, temperature: float
) -> None:
    """With random logits, and control tokens the likeliest of all."""
    model = loaded(tiny)
    tokenizer = model.tokenizer
    typed = tokenizer.encode_text(text)
    taken = take_back(model.index, tokenizer, typed)
    count, back = taken.count, taken.data
    request = CompletionRequest(text, max_tokens=3, temperature=temperature, seed=seed)
    candidate = Candidate(request, 0, model, taken, room=64)
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


@pytest.mark.parametrize("typed", ["x = retur", "x = ", "    ", "sel", "\n  "])
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
    # A random model may say the typed word by itself as well: one is taken that it does not say.
    answers = {
        word: engine.text(segments(f"x = {word}"), **body) for word in ("retur", "impor", "whil")
    }
    typed = next(word for word, answer in answers.items() if word not in answer)
    whole = answers[typed]
    assert engine.text(segments(f"x = {typed}"), stop=[typed], **body) == whole
    stop = whole[3:5]
    stopped = engine.text(segments(f"x = {typed}"), stop=[stop], **body)
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
