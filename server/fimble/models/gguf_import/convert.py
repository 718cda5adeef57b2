"""The way from a GGUF file to a package: what the file must be, and how its parts are used.

Checks the metadata and the tensors' shapes, decides whether embedding and head are one
matrix, and hands the rest to package.py.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from fimble.errors import ImportFailed
from fimble.models.gguf_import.architecture import (
    EMBEDDING,
    HEAD,
    Architecture,
    HeadKind,
    Precision,
    expected_tensors,
)
from fimble.models.gguf_import.formats import EXACT_BLOCK
from fimble.models.gguf_import.package import Provenance, write_package
from fimble.models.gguf_import.reader import GgufFile, open_gguf
from fimble.models.gguf_import.tokenizer import TokenizerSource
from fimble.models.gguf_import.weights import GgufWeights, same_matrix
from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = ["import_gguf", "read_architecture"]

_PRECISIONS = ("int4", "int8", "fp16")

# Limits of belief: several times the largest Qwen2 model, so that the graph's size and the
# rotary cache stay bounded whatever the metadata claim.
_MAX_LAYERS = 512
_MAX_WIDTH = 1 << 20
_MAX_CONTEXT = 1 << 20


def import_gguf(
    source: Path,
    destination: Path,
    *,
    precision: Precision = "int4",
    progress: Progress = ignore_progress,
) -> None:
    """Write the package of a Qwen2 GGUF file into ``destination``, created if absent.

    The folder becomes complete with its last file, ``genai_config.json``; putting it in
    place atomically is the caller's part. Called again with the same source and precision
    after an interruption, it goes on where that left off: finished work is read back and
    compared with the hashes in a journal, and done again where it differs.

    Raises ImportFailed when the file is damaged, of another architecture or of a kind that
    cannot be converted, and when the disk is full or cannot be written.
    """
    if precision not in _PRECISIONS:
        raise ImportFailed(
            f"There is no precision {precision!r}.", next_step=f"Use one of {_PRECISIONS}."
        )
    with open_gguf(source) as file:
        metadata = _Metadata(file)
        arch = _architecture(metadata)
        tokenizer = _tokenizer(metadata, arch)
        _check_tensors(file, arch)
        sha256 = file.sha256(progress)
        head, aliases = _head(file, arch, progress)
        write_package(
            destination,
            arch,
            GgufWeights(file, aliases),
            tokenizer,
            precision=precision,
            head=head,
            block=_exact_block(file, precision),
            provenance=Provenance(
                source_file=source.name,
                source_sha256=sha256,
                name=metadata.text("general.name", default=source.stem),
                license=metadata.optional_text("general.license"),
            ),
            progress=progress,
        )


def read_architecture(file: GgufFile) -> Architecture:
    """The model's numbers from an open file's metadata. Raises ImportFailed."""
    return _architecture(_Metadata(file))


class _Metadata:
    """Typed access to a file's metadata; each getter raises ImportFailed by the key's name."""

    def __init__(self, file: GgufFile) -> None:
        self._values = file.metadata
        self._path = file.path

    def fail(self, what: str) -> NoReturn:
        raise ImportFailed(f"{self._path}: {what}.", next_step="Download it again.")

    def unsuitable(self, what: str) -> NoReturn:
        raise ImportFailed(
            f"{self._path}: {what}.", next_step="Use a GGUF file of a Qwen2 or Qwen2.5 model."
        )

    def integer(self, key: str, low: int, high: int, *, default: int | None = None) -> int:
        value = self._values.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.fail(f"metadata {key!r} is {_short(value)}, not a number from {low} to {high}")
        return value

    def number(self, key: str, low: float, high: float, *, default: float | None = None) -> float:
        value = self._values.get(key, default)
        if not isinstance(value, float) or not math.isfinite(value) or not low <= value <= high:
            self.fail(f"metadata {key!r} is {_short(value)}, not a number from {low} to {high}")
        return value

    def optional_text(self, key: str) -> str | None:
        value = self._values.get(key)
        if value is not None and not isinstance(value, str):
            self.fail(f"metadata {key!r} is {_short(value)}, not a text")
        return value

    def text(self, key: str, *, default: str = "") -> str:
        return self.optional_text(key) or default

    def strings(self, key: str) -> list[str]:
        value = self._values.get(key)
        if not isinstance(value, list):
            self.fail(f"metadata {key!r} is {_short(value)}, not a list of texts")
        return value

    def integers(self, key: str) -> list[int]:
        value = self._values.get(key)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            self.fail(f"metadata {key!r} is {_short(value)}, not a list of numbers")
        return [int(each) for each in value]

    def has(self, key: str) -> bool:
        return key in self._values


def _short(value: Any) -> str:
    if value is None:
        return "missing"
    text = f"an array of {len(value)}" if isinstance(value, (list, np.ndarray)) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _architecture(metadata: _Metadata) -> Architecture:
    kind = metadata.text("general.architecture", default="missing")
    if kind != "qwen2":
        metadata.unsuitable(f"its architecture is {_short(kind)}, not 'qwen2'")
    if metadata.text("qwen2.rope.scaling.type", default="none") != "none":
        metadata.unsuitable("its rotary embedding is scaled, which is not supported")
    heads = metadata.integer("qwen2.attention.head_count", 1, _MAX_WIDTH)
    arch = Architecture(
        layers=metadata.integer("qwen2.block_count", 1, _MAX_LAYERS),
        hidden=metadata.integer("qwen2.embedding_length", 1, _MAX_WIDTH),
        ffn=metadata.integer("qwen2.feed_forward_length", 1, _MAX_WIDTH),
        heads=heads,
        kv_heads=metadata.integer("qwen2.attention.head_count_kv", 1, heads, default=heads),
        vocab=len(metadata.strings("tokenizer.ggml.tokens")),
        context_length=metadata.integer("qwen2.context_length", 1, _MAX_CONTEXT),
        rope_theta=metadata.number("qwen2.rope.freq_base", 1.0, 1e12, default=10_000.0),
        rms_eps=metadata.number("qwen2.attention.layer_norm_rms_epsilon", 0.0, 1.0),
    )
    # The runtime's rotary kernel works on 16 elements at a time.
    if arch.hidden % arch.heads or arch.heads % arch.kv_heads or arch.head_size % 16:
        metadata.fail(
            f"{arch.heads} heads and {arch.kv_heads} key heads do not fit "
            f"a hidden size of {arch.hidden}"
        )
    for name, width in (("embedding", arch.hidden), ("feed-forward", arch.ffn)):
        if width % EXACT_BLOCK:
            metadata.unsuitable(f"its {name} length {width} is no multiple of {EXACT_BLOCK}")
    return arch


def _tokenizer(metadata: _Metadata, arch: Architecture) -> TokenizerSource:
    model = metadata.text("tokenizer.ggml.model", default="missing")
    pre = metadata.text("tokenizer.ggml.pre", default="missing")
    if model != "gpt2" or pre != "qwen2":
        metadata.unsuitable(
            f"its tokenizer is {_short(model)} with pre-tokenizer {_short(pre)}, "
            "not 'gpt2' with 'qwen2'"
        )
    tokens = metadata.strings("tokenizer.ggml.tokens")
    types = metadata.integers("tokenizer.ggml.token_type")
    if not tokens or len(types) != len(tokens):
        metadata.fail(f"it has {len(tokens)} tokens and {len(types)} token types")

    def token_id(key: str, default: int | None = None) -> int:
        return metadata.integer(f"tokenizer.ggml.{key}", 0, len(tokens) - 1, default=default)

    eos = token_id("eos_token_id")
    return TokenizerSource(
        tokens=tokens,
        types=types,
        merges=metadata.strings("tokenizer.ggml.merges"),
        eos=eos,
        pad=token_id("padding_token_id", eos),
        bos=token_id("bos_token_id") if metadata.has("tokenizer.ggml.bos_token_id") else None,
        chat_template=metadata.optional_text("tokenizer.chat_template"),
        context_length=arch.context_length,
    )


def _check_tensors(file: GgufFile, arch: Architecture) -> None:
    expected = expected_tensors(arch)
    if HEAD in file.tensors:
        expected[HEAD] = expected[EMBEDDING]
    for name, shape in expected.items():
        tensor = file.tensors.get(name)
        if tensor is None:
            raise ImportFailed(
                f"{file.path}: tensor {name!r} is missing.",
                next_step="Download it again, or use a file of the whole model in one part.",
            )
        if tensor.shape != shape:
            raise ImportFailed(
                f"{file.path}: tensor {name!r} has the shape {tensor.shape}, "
                f"and the metadata ask for {shape}.",
                next_step="Download it again.",
            )


def _exact_block(file: GgufFile, precision: Precision) -> int | None:
    """The block in which most of the file's matrices keep their very numbers, if one does."""
    matrices = [tensor.type for tensor in file.tensors.values() if len(tensor.shape) == 2]
    exact = matrices.count("Q4_0") * 2 > len(matrices)
    return EXACT_BLOCK if precision == "int4" and exact else None


def _head(
    file: GgufFile, arch: Architecture, progress: Progress
) -> tuple[HeadKind, dict[str, str]]:
    """Whether one matrix serves as embedding and head, and under which name to find it.

    Makers of GGUF files keep the head in more bits than the embedding, so where both are
    there and the same, the head's copy is the one to use.
    """
    if HEAD not in file.tensors:
        return "shared", {HEAD: EMBEDDING}
    progress(ProgressEvent("compare embedding and head", 0, 1, "steps"))
    same = same_matrix(GgufWeights(file), EMBEDDING, HEAD, (arch.vocab, arch.hidden))
    progress(ProgressEvent("compare embedding and head", 1, 1, "steps"))
    return ("shared" if same else "own"), {}
