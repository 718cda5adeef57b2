"""A Qwen2 decoder in plain float32 numpy: what a package's logits are measured against.

Written from the model's definition, not from the graph, so that a mistake in one shows in
the other. One sequence, no cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fimble.models.gguf_import.architecture import (
    EMBEDDING,
    FINAL_NORM,
    HEAD,
    Architecture,
    HeadKind,
    Precision,
    layer,
)
from fimble.models.gguf_import.data_file import lay_out
from fimble.models.gguf_import.formats import FORMAT_OF, PackedRows
from fimble.models.gguf_import.graph import DATA_FILE, build_graph
from fimble.models.gguf_import.quantize import unpack_rows
from fimble.models.provenance import PROVENANCE_FILE

__all__ = ["PackageWeights", "Reference", "log_softmax"]

F32 = npt.NDArray[np.float32]
Weights = Callable[[str], F32]

_NUMPY_TYPES = {1: np.float32, 2: np.uint8, 10: np.float16}


class Reference:
    """Forward passes with the weights that ``weights(name)`` gives, by GGUF name."""

    def __init__(self, arch: Architecture, weights: Weights) -> None:
        self._arch = arch
        self._weights = weights

    def logits(self, ids: npt.NDArray[np.integer]) -> F32:
        """Logits [tokens, vocab] after each token of one sequence."""
        x = self._weights(EMBEDDING)[ids]
        for index in range(self._arch.layers):
            x = x + self._attention(index, self._norm(x, layer(index, "attn_norm.weight")))
            x = x + self._feed_forward(index, self._norm(x, layer(index, "ffn_norm.weight")))
        logits: F32 = self._norm(x, FINAL_NORM) @ self._weights(HEAD).T
        return logits

    def _norm(self, x: F32, name: str) -> F32:
        variance = np.mean(np.square(x), axis=-1, keepdims=True)
        normed: F32 = x / np.sqrt(variance + np.float32(self._arch.rms_eps))
        return normed * self._weights(name)

    def _attention(self, index: int, x: F32) -> F32:
        arch = self._arch
        count, size = len(x), arch.head_size

        def project(part: str, heads: int) -> F32:
            weight = self._weights(layer(index, f"{part}.weight"))
            bias = self._weights(layer(index, f"{part}.bias"))
            flat = x @ weight.T + bias
            by_head: F32 = flat.reshape(count, heads, size).transpose(1, 0, 2)
            return by_head

        q = self._rotate(project("attn_q", arch.heads))
        group = arch.heads // arch.kv_heads
        k = np.repeat(self._rotate(project("attn_k", arch.kv_heads)), group, axis=0)
        v = np.repeat(project("attn_v", arch.kv_heads), group, axis=0)
        scores = q @ k.transpose(0, 2, 1) / np.float32(size**0.5)
        scores += np.triu(np.full((count, count), -np.inf, dtype=np.float32), k=1)
        attended = np.exp(log_softmax(scores)) @ v
        joined = attended.transpose(1, 0, 2).reshape(count, arch.hidden)
        output: F32 = joined @ self._weights(layer(index, "attn_output.weight")).T
        return output

    def _rotate(self, x: F32) -> F32:
        """Rotary embedding of [heads, tokens, head_size], first half against second half."""
        half = self._arch.head_size // 2
        frequency = self._arch.rope_theta ** -(np.arange(half) / half)
        angle = np.outer(np.arange(x.shape[1]), frequency)
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)

    def _feed_forward(self, index: int, x: F32) -> F32:
        gate = x @ self._weights(layer(index, "ffn_gate.weight")).T
        up = x @ self._weights(layer(index, "ffn_up.weight")).T
        with np.errstate(over="ignore"):
            gated = gate / (1 + np.exp(-gate)) * up
        down: F32 = gated @ self._weights(layer(index, "ffn_down.weight")).T
        return down


class PackageWeights:
    """The weights that a package really has, read back from its data file."""

    def __init__(
        self, package: Path, arch: Architecture, precision: Precision, head: HeadKind
    ) -> None:
        block = json.loads((package / PROVENANCE_FILE).read_text("utf-8"))["block_size"]
        layout = lay_out(build_graph(arch, FORMAT_OF[precision], head, block).slots)
        raw = (package / DATA_FILE).read_bytes()
        self.tensors: dict[str, F32] = {}
        for slot in layout.slots:
            arrays = tuple(
                np.frombuffer(
                    raw,
                    dtype=_NUMPY_TYPES[spec.dtype],
                    count=int(np.prod(spec.shape)),
                    offset=layout.offsets[spec.name],
                ).reshape(spec.shape)
                for spec in slot.tensors
            )
            values = unpack_rows(PackedRows(arrays), slot.format)
            first = 0
            for name, count in zip(slot.sources, slot.source_rows, strict=True):
                self.tensors[name] = values[first : first + count]
                first += count
        if head == "shared":
            self.tensors[EMBEDDING] = self.tensors[HEAD]

    def __call__(self, name: str) -> F32:
        return self.tensors[name]


def log_softmax(x: F32) -> F32:
    """Along the last axis."""
    shifted = x - x.max(axis=-1, keepdims=True)
    result: F32 = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result
