"""A small GGUF file as real ones are: each tensor in another quantisation.

The K-quants are random bytes with sensible scales, since gguf's Python code can read these
formats but not write them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt

from fimble.models.gguf_import import Architecture, TokenizerSource
from fimble.models.gguf_import.architecture import EMBEDDING, HEAD, expected_tensors
from tests.support.tiny import tiny_tokenizer
from tests.support.tiny_gguf import add_metadata

__all__ = ["GgufReference", "make_mixed_gguf", "mixed_architecture"]

F32 = npt.NDArray[np.float32]
Kind = gguf.GGMLQuantizationType

_CYCLE = (Kind.Q4_K, Kind.Q5_0, Kind.Q6_K, Kind.Q8_0, Kind.F16, Kind.Q4_0, Kind.BF16)


def mixed_architecture() -> Architecture:
    """Wide enough for K-quants, whose blocks have 256 weights."""
    return Architecture(
        layers=2,
        hidden=256,
        ffn=256,
        heads=4,
        kv_heads=2,
        vocab=512,
        context_length=512,
        rope_theta=1_000_000.0,
        rms_eps=1e-6,
    )


def make_mixed_gguf(
    path: Path,
    *,
    arch: Architecture | None = None,
    tokenizer: TokenizerSource | None = None,
    head: Kind | None = Kind.Q8_0,
    same_head: bool = False,
    kinds: Mapping[str, Kind] | None = None,
    omit: str = "",
    edit: Callable[[gguf.GGUFWriter], None] | None = None,
    architecture_name: str = "qwen2",
    tokenizer_model: str = "gpt2",
    pre_tokenizer: str = "qwen2",
) -> Path:
    """Write the file to ``path`` and return it.

    ``head`` is the LM head's type, None for a model without one; ``same_head`` makes it the
    embedding's matrix. ``kinds`` overrides types by tensor name, ``omit`` leaves a tensor
    out, ``edit`` may add metadata.
    """
    arch = arch or mixed_architecture()
    tokenizer = tokenizer or tiny_tokenizer(context_length=arch.context_length)
    writer = gguf.GGUFWriter(path, architecture_name)
    writer.add_name("Mixed Tiny")
    add_metadata(writer, arch, tokenizer, model=tokenizer_model, pre_tokenizer=pre_tokenizer)
    if tokenizer.bos is not None:
        writer.add_bos_token_id(tokenizer.bos)
    if tokenizer.chat_template:
        writer.add_chat_template(tokenizer.chat_template)
    if edit:
        edit(writer)
    shapes = expected_tensors(arch)
    chosen = {EMBEDDING: Kind.Q5_0, **(kinds or {})}
    if head is not None:
        shapes[HEAD] = shapes[EMBEDDING]
        chosen.setdefault(HEAD, head)
    cycle = 0
    for name, shape in shapes.items():
        if name == omit:
            continue
        if len(shape) == 1:
            writer.add_tensor(name, _random(name, shape))
            continue
        kind = chosen.get(name)
        if kind is None:
            kind = _CYCLE[cycle % len(_CYCLE)]
            cycle += 1
        source = EMBEDDING if name == HEAD and same_head else name
        writer.add_tensor(name, _encoded(source, shape, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _random(name: str, shape: tuple[int, ...]) -> F32:
    values = _rng(name).standard_normal(shape, dtype=np.float32)
    if name.endswith("norm.weight"):
        values = np.float32(1) + values / np.float32(10)
    elif name != EMBEDDING:
        values *= np.float32(2 / shape[-1] ** 0.5)
    return values


def _encoded(name: str, shape: tuple[int, ...], kind: Kind) -> npt.NDArray[Any]:
    """Bytes [rows, row_bytes], or the numbers themselves where the type is plain."""
    if kind == Kind.Q4_K:
        return _q4_k(_rng(name), shape)
    if kind == Kind.Q6_K:
        return _q6_k(_rng(name), shape)
    encoded: npt.NDArray[Any] = gguf.quants.quantize(_random(name, shape), kind)
    return encoded


def _q4_k(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    rows, blocks = shape[0], shape[1] // 256
    raw = rng.integers(0, 256, (rows, blocks, 144), dtype=np.uint8)
    raw[..., 0:2] = _half(rng, (rows, blocks), 4e-4)
    raw[..., 2:4] = _half(rng, (rows, blocks), 3e-3)
    return raw.reshape(rows, -1)


def _q6_k(rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    rows, blocks = shape[0], shape[1] // 256
    raw = rng.integers(0, 256, (rows, blocks, 210), dtype=np.uint8)
    raw[..., 208:210] = _half(rng, (rows, blocks), 1e-4)
    return raw.reshape(rows, -1)


def _half(rng: np.random.Generator, shape: tuple[int, ...], size: float) -> npt.NDArray[np.uint8]:
    values = (size * rng.uniform(0.5, 1.5, shape)).astype("<f2")
    return values[..., None].view(np.uint8)


class GgufReference:
    """The weights of a GGUF file by gguf's own reader: independent of the importer's."""

    def __init__(self, path: Path) -> None:
        self.tensors: dict[str, F32] = {
            tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            for tensor in gguf.GGUFReader(path).tensors
        }
        self.tensors.setdefault(HEAD, self.tensors[EMBEDDING])

    def __call__(self, name: str) -> F32:
        return self.tensors[name]
