"""Text is text and control tokens come by name; ids become text through bytes."""

from __future__ import annotations

import functools
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble.engine.protocol import CONTROL_TOKENS, Control, Text
from fimble.engine.tokens import PackageTokenizer, byte_of_char
from fimble.errors import LoadFailed, RequestRejected


@pytest.fixture(scope="module")
def tokenizer(tiny: Path) -> PackageTokenizer:
    return PackageTokenizer(tiny / "tokenizer.json")


@functools.cache
def shared_tokenizer(package: Path) -> PackageTokenizer:
    """For hypothesis, which allows no fixture narrower than the session."""
    return PackageTokenizer(package / "tokenizer.json")


@pytest.mark.parametrize("spelling", CONTROL_TOKENS.values())
def test_a_control_token_spelled_in_text_stays_text(
    tokenizer: PackageTokenizer, spelling: str
) -> None:
    ids = tokenizer.encode_text(f"a = '{spelling}'")
    assert not tokenizer.stop_ids & set(ids)
    assert tokenizer.decode(ids) == f"a = '{spelling}'"


@pytest.mark.parametrize("special", [True, False])
def test_added_tokens_stay_text_whatever_their_file_says_of_them(
    tiny: Path, tmp_path: Path, special: bool
) -> None:
    # Qwen's own file calls the fill-in-the-middle tokens "special": false.
    data = json.loads((tiny / "tokenizer.json").read_bytes())
    for token in data["added_tokens"]:
        token["special"] = special
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    tokenizer = PackageTokenizer(path)
    assert tokenizer.control("fim_middle") not in tokenizer.encode_text("<|fim_middle|>")
    assert tokenizer.control("fim_middle") in tokenizer.stop_ids


def test_segments_join_text_and_control_tokens(tokenizer: PackageTokenizer) -> None:
    ids = tokenizer.encode_prompt((Control("fim_prefix"), Text("def"), Control("fim_middle")))
    assert ids == [
        tokenizer.control("fim_prefix"),
        *tokenizer.encode_text("def"),
        tokenizer.control("fim_middle"),
    ]


def test_nul_is_kept(tokenizer: PackageTokenizer) -> None:
    ids = tokenizer.encode_text("a\0b")
    assert tokenizer.decode(ids) == "a\0b"
    assert len(ids) == 3


def test_a_lone_surrogate_becomes_the_replacement_character(tokenizer: PackageTokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode_text("a\ud83db")) == "a\ufffdb"
    assert tokenizer.decode(tokenizer.encode_text("\ud83d\ude00")) == "😀"


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_text_survives_a_round_trip_up_to_normalisation(tiny: Path, text: str) -> None:
    tokenizer = shared_tokenizer(tiny)
    expected = unicodedata.normalize("NFC", text)
    assert tokenizer.decode(tokenizer.encode_text(text)) == expected


def test_an_empty_prompt_starts_a_new_document(tokenizer: PackageTokenizer) -> None:
    assert tokenizer.encode_prompt("") == [tokenizer.control("endoftext")]
    assert tokenizer.encode_prompt([Text("")]) == [tokenizer.control("endoftext")]


@pytest.mark.parametrize("bad", [-1, 512, 2**40])
def test_ids_out_of_range_are_refused(tokenizer: PackageTokenizer, bad: int) -> None:
    with pytest.raises(RequestRejected, match=f"token id {bad}"):
        tokenizer.encode_prompt([5, bad])


def test_a_control_token_that_the_model_lacks_is_refused(tiny: Path, tmp_path: Path) -> None:
    data = json.loads((tiny / "tokenizer.json").read_bytes())
    data["added_tokens"] = [t for t in data["added_tokens"] if "fim" not in t["content"]]
    for spelling in [key for key in data["model"]["vocab"] if "fim" in key]:
        del data["model"]["vocab"][spelling]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    tokenizer = PackageTokenizer(path)
    assert not tokenizer.has_fim
    with pytest.raises(RequestRejected, match="fim_prefix"):
        tokenizer.encode_prompt([Control("fim_prefix")])


@pytest.mark.parametrize(
    "content, cause",
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer"),
        (b'{"model": ', "not valid JSON"),
        (b"\xef\xbb\xbf{}", "not a tokenizer"),
        (b"{}", "not a tokenizer"),
        (b'{"model": {"type": "BPE", "vocab": {"a": 0}}}', "not a tokenizer"),
        (b"[]", "does not hold a JSON object"),
    ],
)
def test_a_bad_tokenizer_file_says_what_is_wrong(
    tmp_path: Path, content: bytes, cause: str
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(LoadFailed, match=cause) as caught:
        PackageTokenizer(path)
    assert caught.value.next_step


def test_the_cache_returns_the_same_and_stays_within_its_bytes(tiny: Path) -> None:
    tokenizer = PackageTokenizer(tiny / "tokenizer.json", cache_bytes=4000)
    first = tokenizer.encode_text("def f")
    assert tokenizer.encode_text("def f") is first
    for number in range(200):
        tokenizer.encode_text(f"value_{number}")
        assert tokenizer.cache_bytes <= 4000
    assert tokenizer.encode_text("def f") == first
    huge = "x" * 5000
    assert tokenizer.encode_text(huge) is not tokenizer.encode_text(huge)


# --- bytes to text -----------------------------------------------------------------------


def test_the_alphabet_names_every_byte_once() -> None:
    assert sorted(byte_of_char().values()) == list(range(256))
    assert byte_of_char()["Ġ"] == ord(" ")


@pytest.mark.parametrize("text", ["漢字", "a😀b", "µ漢😀", "é"])
def test_a_character_split_over_tokens_comes_out_whole(
    tokenizer: PackageTokenizer, text: str
) -> None:
    ids = tokenizer.encode_text(text)
    assert len(ids) > len(text), "the fixture's vocabulary has no token for these"
    decoder = tokenizer.decoder()
    pieces = [decoder.push(token) for token in ids]
    assert "\ufffd" not in "".join(pieces)
    assert "".join(pieces) + decoder.finish() == text


def test_a_broken_sequence_does_not_swallow_the_next_character(
    tokenizer: PackageTokenizer,
) -> None:
    byte = {value: tokenizer.encode_text(chr(value))[0] for value in b"ax"}
    lead = tokenizer.encode_text("漢")[0]
    decoder = tokenizer.decoder()
    assert decoder.push(lead) == ""
    assert decoder.push(byte[ord("a")]) == "\ufffda"
    assert decoder.push(byte[ord("x")]) == "x"
    assert decoder.finish() == ""


def test_an_incomplete_character_at_the_end_is_replaced(tokenizer: PackageTokenizer) -> None:
    decoder = tokenizer.decoder()
    assert decoder.push(tokenizer.encode_text("漢")[0]) == ""
    assert decoder.finish() == "\ufffd"


@given(st.lists(st.integers(0, 299)))
@settings(deadline=None)
def test_pieces_join_to_the_whole_for_any_ids(tiny: Path, ids: list[int]) -> None:
    tokenizer = shared_tokenizer(tiny)
    decoder = tokenizer.decoder()
    pieces = "".join(decoder.push(token) for token in ids) + decoder.finish()
    assert pieces == tokenizer.decode(ids)


def test_control_tokens_have_no_text(tokenizer: PackageTokenizer) -> None:
    assert tokenizer.decode(sorted(tokenizer.stop_ids)) == ""
