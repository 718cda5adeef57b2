"""The tokenizer from GGUF metadata is Qwen2's.

data/qwen2_tokens.json holds texts (code in 11 languages, and what Unicode has to offer) with
the ids that another implementation gives them: tiktoken, with Qwen's own rank file
(dashscope 2.0.2, resources/qwen.tiktoken) and the pattern and NFC of Qwen2's published
tokenizer.json. Written once; no test needs either package.
"""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import onnxruntime_genai as og
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Split

from fimble.models.gguf_import.tokenizer import QWEN2_PATTERN, TokenizerSource, tokenizer_files
from tests.support.tiny import CONTROL_TOKENS, byte_alphabet, make_tiny_package, tiny_tokenizer

CORPUS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "qwen2_tokens.json").read_text(encoding="utf-8")
)
TEXTS = {sample["name"]: sample["text"] for sample in CORPUS}


def build(source: TokenizerSource) -> Tokenizer:
    return Tokenizer.from_str(tokenizer_files(source)["tokenizer.json"])


@pytest.fixture(scope="module")
def tiny() -> Tokenizer:
    return build(tiny_tokenizer())


class SlowTokenizer:
    """Qwen2's tokenizer as it is described: NFC, split, bytes, merges by rank. No cleverness."""

    def __init__(self, vocab: Mapping[str, int], merges: Sequence[str]) -> None:
        self._vocab = vocab
        self._rank = {tuple(line.split(" ")): rank for rank, line in enumerate(merges)}
        self._alphabet = byte_alphabet()
        self._split = Split(Regex(QWEN2_PATTERN), behavior="isolated")

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        for word, _ in self._split.pre_tokenize_str(unicodedata.normalize("NFC", text)):
            parts = [self._alphabet[byte] for byte in word.encode("utf-8")]
            while len(parts) > 1:
                ranks = [self._rank.get(pair, len(self._rank)) for pair in pairwise(parts)]
                best = min(ranks)
                if best == len(self._rank):
                    break
                at = ranks.index(best)
                parts[at : at + 2] = [parts[at] + parts[at + 1]]
            ids += [self._vocab[part] for part in parts]
        return ids


@pytest.fixture(scope="module")
def slow() -> SlowTokenizer:
    source = tiny_tokenizer()
    return SlowTokenizer({t: i for i, t in enumerate(source.tokens)}, source.merges)


@pytest.mark.parametrize("name", TEXTS)
def test_tiny_equals_the_description(tiny: Tokenizer, slow: SlowTokenizer, name: str) -> None:
    tiny.encode_special_tokens = True
    assert tiny.encode(TEXTS[name]).ids == slow.encode(TEXTS[name])


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=80))
def test_any_text_equals_the_description_and_comes_back(
    tiny: Tokenizer, slow: SlowTokenizer, text: str
) -> None:
    tiny.encode_special_tokens = True
    ids = tiny.encode(text).ids
    assert ids == slow.encode(text)
    assert tiny.decode(ids, skip_special_tokens=False) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("control", CONTROL_TOKENS)
def test_control_tokens_are_one_id_unless_told_otherwise(tiny: Tokenizer, control: str) -> None:
    expected = list(tiny_tokenizer().tokens).index(control)
    tiny.encode_special_tokens = False
    assert tiny.encode(f"a{control}b").ids[1:-1] == [expected]
    assert tiny.decode([expected]) == ""
    assert tiny.decode([expected], skip_special_tokens=False) == control
    tiny.encode_special_tokens = True
    assert expected not in tiny.encode(f"a{control}b").ids


def test_user_defined_tokens_are_seen_and_shown(tiny: Tokenizer) -> None:
    source = tiny_tokenizer()
    types = list(source.types)
    place = list(source.tokens).index("<|file_sep|>")
    types[place] = 4
    tokenizer = build(dataclasses.replace(source, types=types))
    ids = tokenizer.encode("a<|file_sep|>b").ids
    assert ids[1:-1] == [place]
    assert tokenizer.decode(ids) == "a<|file_sep|>b"


def test_padding_is_no_token(tiny: Tokenizer) -> None:
    source = tiny_tokenizer()
    padding = [token for token, kind in zip(source.tokens, source.types, strict=True) if kind == 5]
    assert padding
    assert all(tiny.token_to_id(token) is None for token in padding)
    assert all(len(tiny.encode(token).ids) > 1 for token in padding)


def test_a_hole_between_tokens_is_filled(tmp_path: Path) -> None:
    """onnxruntime-genai 0.13 dies where ids have holes."""
    source = tiny_tokenizer()
    types = list(source.types)
    hole = list(source.tokens).index("return")
    types[hole] = 5
    merges = [line for line in source.merges if "return" not in line.replace(" ", "")]
    tokenizer = build(dataclasses.replace(source, types=types, merges=merges))
    assert sorted(tokenizer.get_vocab().values()) == list(range(tokenizer.get_vocab_size()))
    assert hole not in tokenizer.encode("return").ids


def test_the_runtime_reads_it_alike(tmp_path: Path, tiny: Tokenizer) -> None:
    model = og.Model(str(make_tiny_package(tmp_path / "tiny")))
    theirs = og.Tokenizer(model)
    text = "def f(self):\n    return 'naïve'  # ok\n"
    tiny.encode_special_tokens = True
    assert list(theirs.encode(text)) == tiny.encode(text).ids


def test_config_names_the_special_tokens_and_the_template() -> None:
    files = tokenizer_files(tiny_tokenizer(context_length=777))
    config = json.loads(files["tokenizer_config.json"])
    assert config["eos_token"] == "<|im_end|>"
    assert config["pad_token"] == config["bos_token"] == "<|endoftext|>"
    assert config["model_max_length"] == 777
    assert config["chat_template"] == files["chat_template.jinja"]
    assert set(config["additional_special_tokens"]) == set(CONTROL_TOKENS)


def test_no_template_no_file() -> None:
    source = dataclasses.replace(tiny_tokenizer(), chat_template=None, bos=None)
    files = tokenizer_files(source)
    assert "chat_template.jinja" not in files
    config = json.loads(files["tokenizer_config.json"])
    assert "chat_template" not in config
    assert config["bos_token"] is None


@pytest.mark.model
def test_real_tokenizer_gives_qwens_ids(real_package: Path) -> None:
    tokenizer = Tokenizer.from_file(str(real_package / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == 151_665
    assert tokenizer.token_to_id("<|fim_prefix|>") == 151_659
    tokenizer.encode_special_tokens = True
    for sample in CORPUS:
        assert tokenizer.encode(sample["text"]).ids == sample["ids"], sample["name"]
