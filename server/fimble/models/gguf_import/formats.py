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

from fimble.models.gguf_import.architecture import Precision

__all__ = [
    "BLOCK",
    "FORMAT_OF",
    "Format",
    "PackedRows",
    "Slot",
    "TensorSpec",
    "matrix_slot",
    "vector_slot",
]

BLOCK = 32
"""Weights that share one scale. Also the block of GGUF's formats, so these fit exactly."""

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
    tensors: tuple[TensorSpec, ...]

    @property
    def rows(self) -> int:
        """Rows of all sources together."""
        return sum(self.source_rows)


def matrix_slot(
    name: str, sources: tuple[str, ...], source_rows: tuple[int, ...], columns: int, format: Format
) -> Slot:
    """The slot of a matrix [rows, columns]; columns must be a multiple of BLOCK if quantised."""
    rows = sum(source_rows)
    proto = onnx.TensorProto
    blocks = columns // BLOCK
    tensors: tuple[TensorSpec, ...]
    if format == "q4":
        zero_bytes = (blocks + 1) // 2
        tensors = (
            TensorSpec(f"{name}.q4", proto.UINT8, (rows, blocks, BLOCK // 2), columns // 2),
            TensorSpec(f"{name}.scales", proto.FLOAT, (rows, blocks), blocks * 4),
            TensorSpec(f"{name}.zeros", proto.UINT8, (rows, zero_bytes), zero_bytes),
        )
    elif format == "q8":
        tensors = (
            TensorSpec(f"{name}.q8", proto.UINT8, (rows, blocks, BLOCK), columns),
            TensorSpec(f"{name}.scales", proto.FLOAT, (rows, blocks), blocks * 4),
        )
    elif format == "f16":
        tensors = (TensorSpec(f"{name}.f16", proto.FLOAT16, (rows, columns), columns * 2),)
    else:
        tensors = (TensorSpec(name, proto.FLOAT, (rows, columns), columns * 4),)
    return Slot(name, sources, source_rows, columns, format, tensors)


def vector_slot(name: str, sources: tuple[str, ...], source_rows: tuple[int, ...]) -> Slot:
    """The slot of a float32 vector, such as a norm's weight or the fused q, k, v bias."""
    spec = TensorSpec(name, onnx.TensorProto.FLOAT, (sum(source_rows),), 4)
    return Slot(name, sources, source_rows, 1, "f32", (spec,))
