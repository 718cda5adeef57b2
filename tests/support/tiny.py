"""A tiny random Qwen2 package, for tests that need an engine but not a good model.

Made by the importer's own graph builder: 2 layers, hidden size 64, 512 tokens, under 2 MB,
in well under a second. The same seed gives the same bytes.

What it says is noise, but dependable noise: rows of control and unused tokens are zero in
the LM head, so that greedy decoding goes on until it is stopped.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fimble.models.gguf_import import (
    Architecture,
    HeadKind,
    Precision,
    Provenance,
    TokenizerSource,
    write_package,
)
from fimble.models.gguf_import.architecture import EMBEDDING, HEAD, expected_tensors
from fimble.models.gguf_import.formats import Format, PackedRows
from fimble.models.gguf_import.graph import ALL_LOGITS_FILE, MODEL_FILE
from fimble.models.gguf_import.package import CONFIG_FILE

__all__ = [
    "CONTROL_TOKENS",
    "RandomWeights",
    "make_tiny_package",
    "tiny_architecture",
    "tiny_tokenizer",
]

F32 = npt.NDArray[np.float32]

CONTROL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
)

_VOCAB = 512
_WORDS = [
    "def",
    "return",
    "self",
    "import",
    "class",
    "if",
    "else",
    "for",
    "in",
    "not",
    "and",
    "or",
    "None",
    "True",
    "False",
    "print",
    "int",
    "str",
    "list",
    "dict",
    "len",
    "range",
    "from",
    "as",
    "with",
    "while",
    "function",
    "const",
    "let",
    "var",
    "this",
    "new",
    "null",
    "void",
]

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def tiny_architecture(*, context_length: int = 2048) -> Architecture:
    """The tiny model's numbers."""
    return Architecture(
        layers=2,
        hidden=64,
        ffn=128,
        heads=4,
        kv_heads=2,
        vocab=_VOCAB,
        context_length=context_length,
        rope_theta=10_000.0,
        rms_eps=1e-6,
    )


def byte_alphabet() -> list[str]:
    """GPT-2's printable stand-in for each byte value, in the order of the bytes."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = iter(range(256))
    return [chr(b) if b in shown else chr(0x100 + next(hidden)) for b in range(256)]


def tiny_tokenizer(*, context_length: int = 2048) -> TokenizerSource:
    """256 bytes, merges for indentation and some frequent words, the control tokens, padding."""
    alphabet = byte_alphabet()
    tokens = list(alphabet)
    ranks: dict[tuple[str, str], int] = {}

    def learn(word: str) -> None:
        """Adds the merges that the word still lacks, so that it becomes one token."""
        parts = list(word)
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
            if best not in ranks:
                best = pairs[0]
                ranks[best] = len(ranks)
                tokens.append("".join(best))
            at = pairs.index(best)
            parts[at : at + 2] = ["".join(best)]

    blank = alphabet[0x20]
    for length in range(2, 9):
        learn(blank * length)
    for word in _WORDS:
        learn(word)
    for word in _WORDS[:12]:
        learn(blank + word)
    merges = [" ".join(pair) for pair in ranks]
    types = [1] * len(tokens)
    first_control = len(tokens)
    tokens += CONTROL_TOKENS
    types += [3] * len(CONTROL_TOKENS)
    assert len(tokens) < _VOCAB, len(tokens)
    while len(tokens) < _VOCAB:
        tokens.append(f"[PAD{len(tokens)}]")
        types.append(5)
    return TokenizerSource(
        tokens=tokens,
        types=types,
        merges=merges,
        eos=first_control + CONTROL_TOKENS.index("<|im_end|>"),
        pad=first_control,
        bos=first_control,
        chat_template=CHAT_TEMPLATE,
        context_length=context_length,
    )


class RandomWeights:
    """Weights drawn from a generator that each tensor seeds by its own name.

    Values are representable in half precision, so that fp16 packages lose nothing.
    """

    def __init__(self, arch: Architecture, types: list[int], *, seed: int, tied: bool) -> None:
        shapes = expected_tensors(arch)
        if not tied:
            shapes[HEAD] = shapes[EMBEDDING]
        self.tensors: dict[str, F32] = {}
        for name, shape in shapes.items():
            rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
            values = rng.standard_normal(shape, dtype=np.float32)
            if name.endswith("norm.weight"):
                values = np.float32(1) + values / np.float32(10)
            elif name != EMBEDDING:
                values *= np.float32(2 / shape[-1] ** 0.5)
            if name == HEAD:
                values[[kind != 1 for kind in types]] = 0
            self.tensors[name] = values.astype(np.float16).astype(np.float32)

    def rows(self, name: str, start: int, stop: int) -> F32:
        tensor = self.tensors[name]
        return tensor.reshape(len(tensor), -1)[start:stop]

    def exact(
        self, name: str, start: int, stop: int, format: Format, block: int
    ) -> PackedRows | None:
        return None


def make_tiny_package(
    destination: Path,
    *,
    seed: int = 0,
    precision: Precision = "int4",
    context_length: int = 2048,
    tied: bool = False,
    all_logits: bool = False,
    coder: bool = True,
) -> Path:
    """Write the tiny package into ``destination`` (created if absent) and return it.

    ``tied`` makes the embedding the LM head as well. ``all_logits`` configures the graph that
    gives logits for every token, the only one that onnxruntime-genai 0.11 can run. ``coder``
    is whether it passes for a model that fills in the middle: by its name, as they do.
    """
    arch = tiny_architecture(context_length=context_length)
    tokenizer = tiny_tokenizer(context_length=context_length)
    head: HeadKind = "shared" if tied else "own"
    kind = "Qwen2 Coder" if coder else "Qwen2"
    weights = RandomWeights(arch, list(tokenizer.types), seed=seed, tied=tied)
    if tied:
        weights.tensors[HEAD] = weights.tensors[EMBEDDING]
    write_package(
        destination,
        arch,
        weights,
        tokenizer,
        precision=precision,
        head=head,
        provenance=Provenance("tiny.gguf", f"{seed:064x}", f"Tiny random {kind} {seed}", None),
    )
    if all_logits:
        config = destination / CONFIG_FILE
        text = config.read_text(encoding="utf-8").replace(MODEL_FILE, ALL_LOGITS_FILE)
        config.write_text(text, encoding="utf-8", newline="\n")
    return destination
