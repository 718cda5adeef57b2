"""How a matrix lies in the package's data file: the formats that the graph can compute with.

Bytes and shapes only. How numbers get into a format is told in quantize.py, and what the
graph does with them in graph.py.

All formats are row-sliceable: a range of output rows occupies one contiguous byte range of
each of the format's tensors, so that a matrix can be written piece by piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import onnx

from fimble.models.gguf_import.architecture import Architecture, Precision

__all__ = [
    "EXACT_BLOCK",
    "FORMAT_OF",
    "Format",
    "PackedRows",
    "Slot",
    "TensorSpec",
    "matrix_slot",
    "usual_block",
    "vector_slot",
]

EXACT_BLOCK = 32
"""Weights that share one scale in GGUF's simple formats: in such blocks these fit exactly."""

_WIDE_BLOCK = 64

Format = Literal["q4", "q8", "f16", "f32"]
"""q4: 4 bits with a zero point per block; q8: 8 bits around 128; f16 and f32: plain."""

FORMAT_OF: dict[Precision, Format] = {"int4": "q4", "int8": "q8", "fp16": "f16"}
"""The format of most matrices; graph.py says which are kept in a better one."""

_ALIGN_SMALL = 64
_ALIGN_LARGE = 4096
_LARGE = 1 << 16


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Some rows of a matrix in a format, each array [rows, …] in the order of the tensors."""

    arrays: tuple[npt.NDArray[np.generic], ...]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor in the data file; ``rows`` slices of equal size lie one after another."""

    name: str
    dtype: int
    """An ``onnx.TensorProto`` data type."""
    shape: tuple[int, ...]
    row_bytes: int

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.row_bytes * self.shape[0]

    @property
    def alignment(self) -> int:
        """Bytes. Pages for what is mapped into memory, cache lines for the small ones."""
        return _ALIGN_LARGE if self.nbytes >= _LARGE else _ALIGN_SMALL


@dataclass(frozen=True, slots=True)
class Slot:
    """One matrix or vector of the package and where its rows come from.

    ``sources`` are GGUF tensor names (or ``rope.cos``/``rope.sin``), whose rows follow each
    other; ``source_rows`` says how many each has. A vector is a matrix of one column.
    """

    name: str
    sources: tuple[str, ...]
    source_rows: tuple[int, ...]
    columns: int
    format: Format
    block: int
    """Weights that share one scale, in the quantised formats."""
    tensors: tuple[TensorSpec, ...]

    @property
    def rows(self) -> int:
        """Rows of all sources together."""
        return sum(self.source_rows)


def usual_block(arch: Architecture, precision: Precision) -> int:
    """Weights to a scale, where no exact repacking asks for EXACT_BLOCK.

    In int4 packages 64: a scale of 4 bytes for each 16 bytes of weights would take a fifth of
    what a token has to read, and the kernels work once per block. Of the 0.5B that makes
    decoding and prefill about 7 percent faster; what it costs in agreement, the attention's
    matrices in 8 bits give back (graph.py).
    """
    fits = arch.hidden % _WIDE_BLOCK == 0 and arch.ffn % _WIDE_BLOCK == 0
    return _WIDE_BLOCK if precision == "int4" and fits else EXACT_BLOCK


def matrix_slot(
    name: str,
    sources: tuple[str, ...],
    source_rows: tuple[int, ...],
    columns: int,
    format: Format,
    block: int = EXACT_BLOCK,
) -> Slot:
    """The slot of a matrix [rows, columns]; columns must be a multiple of block if quantised."""
    rows = sum(source_rows)
    proto = onnx.TensorProto
    blocks = columns // block
    tensors: tuple[TensorSpec, ...]
    if format == "q4":
        zero_bytes = (blocks + 1) // 2
        tensors = (
            TensorSpec(f"{name}.q4", proto.UINT8, (rows, blocks, block // 2), columns // 2),
            TensorSpec(f"{name}.scales", proto.FLOAT, (rows, blocks), blocks * 4),
            TensorSpec(f"{name}.zeros", proto.UINT8, (rows, zero_bytes), zero_bytes),
        )
    elif format == "q8":
        tensors = (
            TensorSpec(f"{name}.q8", proto.UINT8, (rows, blocks, block), columns),
            TensorSpec(f"{name}.scales", proto.FLOAT, (rows, blocks), blocks * 4),
        )
    elif format == "f16":
        tensors = (TensorSpec(f"{name}.f16", proto.FLOAT16, (rows, columns), columns * 2),)
    else:
        tensors = (TensorSpec(name, proto.FLOAT, (rows, columns), columns * 4),)
    return Slot(name, sources, source_rows, columns, format, block, tensors)


def vector_slot(name: str, sources: tuple[str, ...], source_rows: tuple[int, ...]) -> Slot:
    """The slot of a float32 vector, such as a norm's weight or the fused q, k, v bias."""
    spec = TensorSpec(name, onnx.TensorProto.FLOAT, (sum(source_rows),), 4)
    return Slot(name, sources, source_rows, 1, "f32", 1, (spec,))
