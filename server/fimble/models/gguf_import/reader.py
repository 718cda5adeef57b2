"""Reads a GGUF file's header as if it had been made to do harm.

Every count, length and offset is checked against the file's size before it is used, so that
reading costs no more memory than the file has bytes and never goes outside it. What the
metadata means, and which tensors a model needs, is not known here.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fimble.errors import ImportFailed
from fimble.progress import Progress, ProgressEvent

__all__ = ["BLOCK_SIZES", "GgufFile", "Tensor", "open_gguf"]

BLOCK_SIZES: dict[str, tuple[int, int]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "BF16": (1, 2),
    "Q4_0": (32, 18),
    "Q4_1": (32, 20),
    "Q5_0": (32, 22),
    "Q5_1": (32, 24),
    "Q8_0": (32, 34),
    "Q2_K": (256, 84),
    "Q3_K": (256, 110),
    "Q4_K": (256, 144),
    "Q5_K": (256, 176),
    "Q6_K": (256, 210),
    "IQ4_NL": (32, 18),
    "IQ4_XS": (256, 136),
}
"""The tensor types that can be read: weights in a block, bytes of a block."""

_TYPE_NAMES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    8: "Q8_0",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    20: "IQ4_NL",
    23: "IQ4_XS",
    30: "BF16",
}

_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING = 8
_ARRAY = 9

# Far above any real model (a 32B has 771 tensors and 30 entries), far below any harm.
_MAX_ENTRIES = 1 << 16
_MAX_NAME = 1 << 10
_MAX_STRINGS = 1 << 22
_MAX_DIMENSIONS = 4
_MAX_ALIGNMENT = 1 << 20
_HASH_PIECE = 1 << 24


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's name, shape ([out, in] or [n]), type name, and place in the file in bytes."""

    name: str
    shape: tuple[int, ...]
    type: str
    start: int
    row_bytes: int

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.row_bytes * math.prod(self.shape[:-1])


class GgufFile:
    """An open, mapped file whose header has been found sound."""

    def __init__(self, path: Path, mapped: mmap.mmap) -> None:
        self.path = path
        self._mapped = mapped
        header = _Header(path, mapped)
        self.metadata: dict[str, Any] = header.metadata
        self.tensors: dict[str, Tensor] = header.tensors

    def raw_rows(self, tensor: Tensor, start: int, stop: int) -> npt.NDArray[np.uint8]:
        """Bytes of rows ``start`` to ``stop`` as [rows, row_bytes]; a copy, not the mapping."""
        first = tensor.start + start * tensor.row_bytes
        raw = self._mapped[first : first + (stop - start) * tensor.row_bytes]
        return np.frombuffer(raw, dtype=np.uint8).reshape(stop - start, tensor.row_bytes)

    def sha256(self, progress: Progress) -> str:
        """The whole file's SHA-256 in hex."""
        digest = hashlib.sha256()
        size = len(self._mapped)
        for start in range(0, size, _HASH_PIECE):
            digest.update(self._mapped[start : start + _HASH_PIECE])
            done = min(start + _HASH_PIECE, size)
            progress(ProgressEvent("check the GGUF file", done, size, "bytes"))
        return digest.hexdigest()


@contextlib.contextmanager
def open_gguf(path: Path) -> Iterator[GgufFile]:
    """Open ``path`` and check its header. Raises ImportFailed, naming what is wrong."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise ImportFailed(
            f"{path} cannot be read: {error.strerror or error}.", next_step="Check the path."
        ) from error
    except ValueError as error:  # mmap's word for a file of no bytes
        raise _damaged(path, "it is empty") from error
    with mapped:
        yield GgufFile(path, mapped)


def _damaged(path: Path, what: str) -> ImportFailed:
    return ImportFailed(f"{path} is not a sound GGUF file: {what}.", next_step="Download it again.")


class _Header:
    """The header's parts, read front to back."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self._path = path
        self._data = data
        self._size = len(data)
        self._at = 0
        self.metadata: dict[str, Any] = {}
        self.tensors: dict[str, Tensor] = {}
        tensor_count, entry_count = self._preamble()
        for _ in range(entry_count):
            self._entry()
        infos = [self._tensor_info() for _ in range(tensor_count)]
        self._place(infos)

    def _fail(self, what: str) -> ImportFailed:
        return _damaged(self._path, what)

    def _take(self, count: int, what: str) -> bytes:
        """The next ``count`` bytes; ``what`` names them if the file ends before."""
        if count > self._size - self._at:
            raise self._fail(
                f"it ends within {what} ({count:,} bytes wanted at byte {self._at:,} "
                f"of {self._size:,})"
            )
        raw = self._data[self._at : self._at + count]
        self._at += count
        return raw

    def _number(self, form: str, what: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form), what))[0]

    def _string(self, what: str, limit: int | None = None) -> str:
        length = self._number("<Q", what)
        if limit is not None and length > limit:
            raise self._fail(f"{what} is {length:,} bytes long, more than {limit:,}")
        try:
            return self._take(length, what).decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._fail(f"{what} is not UTF-8") from error

    def _preamble(self) -> tuple[int, int]:
        if self._take(4, "its signature") != b"GGUF":
            raise self._fail("it does not begin with GGUF")
        version = self._number("<I", "its version")
        if version not in (2, 3):
            if version & 0xFFFF == 0:
                raise self._fail("its numbers are big-endian, which Qwen's files never are")
            raise self._fail(f"it is of GGUF version {version}, and 2 and 3 are known")
        tensor_count = self._number("<Q", "its tensor count")
        entry_count = self._number("<Q", "its metadata count")
        for count, what in ((tensor_count, "tensors"), (entry_count, "metadata entries")):
            if count > _MAX_ENTRIES:
                raise self._fail(f"it claims to have {count:,} {what}")
        return tensor_count, entry_count

    def _entry(self) -> None:
        key = self._string("a metadata key", _MAX_NAME)
        kind = self._number("<I", f"metadata {key!r}")
        value = self._array(key) if kind == _ARRAY else self._scalar(kind, key)
        if key in self.metadata:
            raise self._fail(f"metadata {key!r} is there twice")
        self.metadata[key] = value

    def _scalar(self, kind: int, key: str) -> Any:
        what = f"metadata {key!r}"
        if kind == _STRING:
            return self._string(what)
        if kind not in _SCALARS:
            raise self._fail(f"{what} is of an unknown type, {kind}")
        return self._number(_SCALARS[kind], what)

    def _array(self, key: str) -> list[str] | npt.NDArray[Any]:
        what = f"metadata {key!r}"
        kind = self._number("<I", what)
        count = self._number("<Q", what)
        if kind == _STRING:
            if count > _MAX_STRINGS or count * 8 > self._size - self._at:
                raise self._fail(f"{what} claims to have {count:,} strings")
            return [self._string(what) for _ in range(count)]
        if kind not in _SCALARS:
            raise self._fail(f"{what} is an array of an unknown type, {kind}")
        dtype = np.dtype(_SCALARS[kind])
        return np.frombuffer(self._take(count * dtype.itemsize, what), dtype=dtype)

    def _tensor_info(self) -> Tensor:
        name = self._string("a tensor's name", _MAX_NAME)
        what = f"tensor {name!r}"
        dimensions = self._number("<I", what)
        if not 1 <= dimensions <= _MAX_DIMENSIONS:
            raise self._fail(f"{what} has {dimensions} dimensions")
        # The file's order is innermost first.
        shape = tuple(self._number("<Q", what) for _ in range(dimensions))[::-1]
        kind = self._number("<I", what)
        offset = self._number("<Q", what)
        if name in self.tensors:
            raise self._fail(f"{what} is there twice")
        if kind not in _TYPE_NAMES:
            raise ImportFailed(
                f"{self._path}: {what} is of type {kind}, which cannot be read here.",
                next_step="Use a file with another quantisation, such as Q4_K_M or Q8_0.",
            )
        per_block, block_bytes = BLOCK_SIZES[_TYPE_NAMES[kind]]
        if 0 in shape or shape[-1] % per_block:
            raise self._fail(f"{what} has the shape {shape}, which its type does not allow")
        row_bytes = shape[-1] // per_block * block_bytes
        tensor = Tensor(name, shape, _TYPE_NAMES[kind], offset, row_bytes)
        self.tensors[name] = tensor  # its place is still relative; _place makes it absolute
        return tensor

    def _place(self, infos: list[Tensor]) -> None:
        """Check where the tensors lie, and make their places absolute."""
        alignment = self.metadata.get("general.alignment", 32)
        if (
            not isinstance(alignment, int)
            or not 1 <= alignment <= _MAX_ALIGNMENT
            or alignment & (alignment - 1)
        ):
            raise self._fail(f"its alignment is {alignment!r}, which is no power of two")
        base = -(-self._at // alignment) * alignment
        end = base
        for tensor in sorted(infos, key=lambda t: t.start):
            start = base + tensor.start
            if tensor.start % alignment:
                raise self._fail(f"tensor {tensor.name!r} is not aligned")
            if start + tensor.nbytes > self._size:
                raise self._fail(
                    f"tensor {tensor.name!r} ends at byte {start + tensor.nbytes:,}, "
                    f"and the file has {self._size:,}"
                )
            if start < end:
                raise self._fail(f"tensor {tensor.name!r} overlaps the one before it")
            end = start + tensor.nbytes
            self.tensors[tensor.name] = Tensor(
                tensor.name, tensor.shape, tensor.type, start, tensor.row_bytes
            )
