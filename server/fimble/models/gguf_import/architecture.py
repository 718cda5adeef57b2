"""The shape of a Qwen2 model: its numbers, and the tensors that they imply.

Knows nothing of files: neither GGUF (which fills in the numbers) nor ONNX (which is built
from them). Tensor names are those of GGUF, used throughout the importer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "EMBEDDING",
    "FINAL_NORM",
    "HEAD",
    "Architecture",
    "HeadKind",
    "Precision",
    "expected_tensors",
    "layer",
]

Precision = Literal["int4", "int8", "fp16"]

HeadKind = Literal["own", "shared"]
"""Whether the LM head has a matrix of its own or is the embedding's."""

EMBEDDING = "token_embd.weight"
HEAD = "output.weight"
FINAL_NORM = "output_norm.weight"


@dataclass(frozen=True, slots=True)
class Architecture:
    """The numbers of one Qwen2 model, in elements, heads, layers and tokens."""

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    vocab: int
    context_length: int
    rope_theta: float
    rms_eps: float

    @property
    def head_size(self) -> int:
        """Elements of one attention head; Qwen2 always divides the hidden size by heads."""
        return self.hidden // self.heads

    @property
    def kv_width(self) -> int:
        """Elements of all key heads of a token (and of all value heads)."""
        return self.kv_heads * self.head_size


def layer(index: int, name: str) -> str:
    """The GGUF name of a tensor of layer ``index``: ``layer(3, "attn_q.bias")``."""
    return f"blk.{index}.{name}"


def expected_tensors(arch: Architecture) -> dict[str, tuple[int, ...]]:
    """Every tensor that the model must have, with its shape as [out, in] or [n].

    ``output.weight`` is not among them: a model without it uses the embedding as its head.
    """
    hidden, ffn, kv = arch.hidden, arch.ffn, arch.kv_width
    shapes: dict[str, tuple[int, ...]] = {
        EMBEDDING: (arch.vocab, hidden),
        FINAL_NORM: (hidden,),
    }
    for index in range(arch.layers):
        shapes |= {
            layer(index, "attn_norm.weight"): (hidden,),
            layer(index, "attn_q.weight"): (hidden, hidden),
            layer(index, "attn_q.bias"): (hidden,),
            layer(index, "attn_k.weight"): (kv, hidden),
            layer(index, "attn_k.bias"): (kv,),
            layer(index, "attn_v.weight"): (kv, hidden),
            layer(index, "attn_v.bias"): (kv,),
            layer(index, "attn_output.weight"): (hidden, hidden),
            layer(index, "ffn_norm.weight"): (hidden,),
            layer(index, "ffn_gate.weight"): (ffn, hidden),
            layer(index, "ffn_up.weight"): (ffn, hidden),
            layer(index, "ffn_down.weight"): (hidden, ffn),
        }
    return shapes
