"""Qwen2's tokenizer as the files that a package carries.

From a vocabulary, its merges and its token types to tokenizer.json, tokenizer_config.json
and chat_template.jinja. Where these come from (GGUF metadata, a test) does not matter here.

The pre-tokenizer's pattern, NFC and byte-level BPE are Qwen2's published tokenizer.json.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import ByteLevel as ByteLevelProcessor

__all__ = ["TokenizerSource", "tokenizer_files"]

QWEN2_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# GGUF's token types (tokenizer.ggml.token_type).
_CONTROL = 3
_USER_DEFINED = 4
_UNUSED = 5


@dataclass(frozen=True, slots=True)
class TokenizerSource:
    """What a tokenizer is made of.

    ``tokens`` in the order of their ids, in byte-level spelling (a blank is ``Ġ``); ``types``
    as in GGUF: 1 normal, 3 control, 4 user-defined, 5 unused; ``merges`` as ``left right``,
    the first one first. Ids are None where the model has no such token.
    """

    tokens: Sequence[str]
    types: Sequence[int]
    merges: Sequence[str]
    eos: int
    pad: int
    bos: int | None
    chat_template: str | None
    context_length: int


def tokenizer_files(source: TokenizerSource) -> dict[str, str]:
    """The text of each tokenizer file, by name. Raises ValueError where it makes no sense."""
    files = {
        "tokenizer.json": _tokenizer(source).to_str() + "\n",
        "tokenizer_config.json": json.dumps(_config(source), ensure_ascii=False, indent=2) + "\n",
    }
    if source.chat_template:
        files["chat_template.jinja"] = source.chat_template
    return files


def _tokenizer(source: TokenizerSource) -> Tokenizer:
    vocab: dict[str, int] = {}
    added: list[AddedToken] = []
    # Rows at the end that only pad the matrix are no tokens. One between real tokens stays,
    # unreachable without a merge: onnxruntime-genai 0.13 dies of a hole in the ids.
    end = len(source.tokens)
    while end and source.types[end - 1] == _UNUSED:
        end -= 1
    pairs = zip(source.tokens, source.types, strict=True)
    for index, (token, kind) in enumerate(islice(pairs, end)):
        if kind in (_CONTROL, _USER_DEFINED):
            added.append(AddedToken(token, special=kind == _CONTROL, normalized=False))
        if token in vocab:
            raise ValueError(f"token {token!r} has two ids, {vocab[token]} and {index}")
        vocab[token] = index
    merges = [_merge(line, vocab) for line in source.merges]
    tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN2_PATTERN), behavior="isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = ByteLevelProcessor(trim_offsets=False, use_regex=False)
    tokenizer.add_tokens(added)
    return tokenizer


def _merge(line: str, vocab: dict[str, int]) -> tuple[str, str]:
    left, blank, right = line.partition(" ")
    if not blank or " " in right:
        raise ValueError(f"merge {line!r} is not two tokens with a blank between")
    for part in (left, right, left + right):
        if part not in vocab:
            raise ValueError(f"merge {line!r} needs {part!r}, which is no token")
    return left, right


def _config(source: TokenizerSource) -> dict[str, Any]:
    tokens = source.tokens
    special = [t for t, kind in zip(tokens, source.types, strict=True) if kind == _CONTROL]
    config: dict[str, Any] = {
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(index): {
                "content": token,
                "lstrip": False,
                "normalized": False,
                "rstrip": False,
                "single_word": False,
                "special": kind == _CONTROL,
            }
            for index, (token, kind) in enumerate(zip(tokens, source.types, strict=True))
            if kind in (_CONTROL, _USER_DEFINED)
        },
        "additional_special_tokens": special,
        "bos_token": None if source.bos is None else tokens[source.bos],
        "clean_up_tokenization_spaces": False,
        "eos_token": tokens[source.eos],
        "errors": "replace",
        "model_max_length": source.context_length,
        "pad_token": tokens[source.pad],
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
        "add_bos_token": False,
    }
    if source.chat_template:
        config["chat_template"] = source.chat_template
    return config
