"""A GGUF file's tensors as numbers, or as packed rows where a format fits them exactly.

Works on ranges of rows, so that memory stays bounded whatever the tensor's size. Which
tensors there are and what they are for is not known here.

Dequantisation is gguf.quants'. Exact repacking is ours: GGUF's 32-weight blocks hold
scale · (q - middle), as the package's 8- and 4-bit formats do.
"""

from __future__ import annotations

from collections.abc import Mapping

import gguf
import numpy as np
import numpy.typing as npt

from fimble.errors import ImportFailed
from fimble.models.gguf_import.formats import EXACT_BLOCK, Format, PackedRows
from fimble.models.gguf_import.quantize import pack_q4
from fimble.models.gguf_import.reader import GgufFile, Tensor

__all__ = ["GgufWeights", "same_matrix"]

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]

_IMPLAUSIBLE = 1e12
"""Above any weight, and below what overflows when the quantiser squares it."""

_COMPARED_WEIGHTS = 1 << 21


class GgufWeights:
    """The WeightSource of an open GGUF file; see package.py for the protocol."""

    def __init__(self, file: GgufFile, aliases: Mapping[str, str] | None = None) -> None:
        self._file = file
        self._aliases = aliases or {}

    def rows(self, name: str, start: int, stop: int) -> F32:
        """Rows as float32 [stop - start, columns]; a vector's elements as [n, 1].

        Raises ImportFailed when one is no number that a weight can be.
        """
        tensor = self._tensor(name)
        if len(tensor.shape) == 1:
            values = self._dequantised(tensor, 0, 1).reshape(-1, 1)[start:stop]
        else:
            values = self._dequantised(tensor, start, stop)
        self._check_plausible(values, name)
        return values

    def _tensor(self, name: str) -> Tensor:
        return self._file.tensors[self._aliases.get(name, name)]

    def _check_plausible(self, values: F32, name: str) -> None:
        if not (np.abs(values) < _IMPLAUSIBLE).all():  # false for NaN as well
            raise ImportFailed(
                f"{self._file.path}: tensor {name!r} holds what cannot be a weight "
                "(infinite, undefined or enormous).",
                next_step="Download it again.",
            )

    def _dequantised(self, tensor: Tensor, start: int, stop: int) -> F32:
        raw = self._file.raw_rows(tensor, start, stop)
        if tensor.type == "F32":
            return raw.view("<f4").astype(np.float32, copy=False)
        if tensor.type == "F16":
            return raw.view("<f2").astype(np.float32)
        kind = gguf.GGMLQuantizationType[tensor.type]
        # A damaged scale may be infinite or NaN: _check_plausible says so.
        with np.errstate(all="ignore"):
            values: F32 = gguf.quants.dequantize(raw, kind)
        return values

    def exact(
        self, name: str, start: int, stop: int, format: Format, block: int
    ) -> PackedRows | None:
        """Rows repacked without loss, or None where the tensor's type does not fit ``format``.

        In blocks of EXACT_BLOCK, q8 fits Q8_0, Q5_0 and Q4_0; q4 fits Q4_0.
        """
        tensor = self._tensor(name)
        if (
            block != EXACT_BLOCK
            or format not in ("q4", "q8")
            or tensor.type not in _UNPACK
            or len(tensor.shape) != 2
        ):
            return None
        if format == "q4" and tensor.type != "Q4_0":
            return None
        raw = self._file.raw_rows(tensor, start, stop)
        blocks = raw.reshape(stop - start, tensor.shape[1] // EXACT_BLOCK, -1)
        scales = np.ascontiguousarray(blocks[..., :2]).view("<f2")[..., 0].astype(np.float32)
        self._check_plausible(scales, name)
        values, middle = _UNPACK[tensor.type](blocks[..., 2:])
        if format == "q8":
            shifted = (values.astype(np.int16) + (128 - middle)).astype(np.uint8)
            return PackedRows((shifted, scales))
        return pack_q4(values.astype(np.uint8), scales, np.full(scales.shape, middle, np.uint8))


def _halves(packed: U8) -> U8:
    """Nibbles of [..., 16] bytes as [..., 32]: all lower halves, then all upper ones."""
    return np.concatenate([packed & 0xF, packed >> 4], axis=-1)


def _q4_0(body: U8) -> tuple[npt.NDArray[np.integer], int]:
    return _halves(body), 8


def _q5_0(body: U8) -> tuple[npt.NDArray[np.integer], int]:
    fifth = np.unpackbits(body[..., :4], axis=-1, bitorder="little")
    return _halves(body[..., 4:]) | (fifth << 4), 16


def _q8_0(body: U8) -> tuple[npt.NDArray[np.integer], int]:
    return np.ascontiguousarray(body).view(np.int8), 0


_UNPACK = {"Q4_0": _q4_0, "Q5_0": _q5_0, "Q8_0": _q8_0}
"""A block's bytes after its scale to integers [..., EXACT_BLOCK], and the integer that means 0."""


def same_matrix(weights: GgufWeights, first: str, second: str, shape: tuple[int, int]) -> bool:
    """Whether two tensors are one matrix, each rounded in its own way.

    True where each row's difference is at most a fifth of the row: two quantisations of the
    same row differ by some 3 percent in 5 bits and 15 in 3, different rows by about 140.
    """
    rows, columns = shape
    step = max(1, _COMPARED_WEIGHTS // columns)
    for start in range(0, rows, step):
        stop = min(start + step, rows)
        a, b = weights.rows(first, start, stop), weights.rows(second, start, stop)
        with np.errstate(all="ignore"):
            difference = np.square(a - b).sum(axis=1)
            size = np.maximum(np.square(a).sum(axis=1), np.square(b).sum(axis=1))
        if not np.all(difference <= 0.04 * size):
            return False
    return True
