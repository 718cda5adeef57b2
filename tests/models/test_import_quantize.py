"""Packing floats into 4 and 8 bits: bounded errors, exact where they can be, no odd cases."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fimble.models.gguf_import.formats import EXACT_BLOCK, Format, PackedRows
from fimble.models.gguf_import.quantize import F32, pack_q4, pack_rows, unpack_rows

Kind = gguf.GGMLQuantizationType

BLOCK = EXACT_BLOCK

MATRICES = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.integers(1, 5).map(lambda n: n * BLOCK)),
    elements=st.floats(-1e4, 1e4, width=32),
)


def round_trip(rows: F32, format: Format, block: int = BLOCK) -> F32:
    return unpack_rows(pack_rows(rows, format, block), format)


def by_block(rows: F32) -> F32:
    return rows.reshape(len(rows), -1, BLOCK)


@settings(max_examples=150, deadline=None)
@given(rows=MATRICES)
def test_8_bits_are_off_by_half_a_step(rows: F32) -> None:
    got = by_block(round_trip(rows, "q8"))
    step = np.abs(by_block(rows)).max(axis=-1, keepdims=True) / 127
    too_small = 127 * 1.01e-30  # where the step would be nearly zero, the block becomes zeros
    assert (np.abs(got - by_block(rows)) <= step * 0.501 + too_small).all()


@settings(max_examples=150, deadline=None)
@given(rows=MATRICES)
def test_4_bits_lose_less_than_the_plain_grid(rows: F32) -> None:
    """In the measure that the search minimises: weighted squared error, block by block."""
    blocks = by_block(rows).astype(np.float64)
    weight = np.abs(blocks) + np.sqrt(np.mean(blocks**2, axis=-1, keepdims=True))
    low = np.minimum(blocks.min(axis=-1, keepdims=True), 0)
    step = (np.maximum(blocks.max(axis=-1, keepdims=True), 0) - low) / 15
    with np.errstate(all="ignore"):
        zero = np.clip(np.rint(np.nan_to_num(-low / step)), 0, 15)
        plain = (np.clip(np.rint(np.nan_to_num(blocks / step)) + zero, 0, 15) - zero) * step

    def error(values: np.ndarray) -> np.ndarray:
        total: np.ndarray = (weight * (values - blocks) ** 2).sum(axis=-1)
        return total

    ours = error(by_block(round_trip(rows, "q4")).astype(np.float64))
    size = (weight * blocks**2).sum(axis=-1)
    assert (ours <= error(plain) + 1e-4 * size + 1e-30).all()


@settings(max_examples=50, deadline=None)
@given(rows=MATRICES, cut=st.integers(0, 4))
def test_rows_do_not_depend_on_their_neighbours(rows: F32, cut: int) -> None:
    """Up to float rounding: numpy may sum a single block in another order than many."""
    formats: tuple[Format, ...] = ("q4", "q8", "f16")
    for format in formats:
        whole = round_trip(rows, format)
        parts = [round_trip(part, format) for part in (rows[:cut], rows[cut:]) if len(part)]
        step = np.abs(by_block(rows)).max(axis=-1).max(initial=0) / 7
        assert np.abs(whole - np.concatenate(parts)).max() <= step


@pytest.mark.parametrize("format", ["q4", "q8"])
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 1e-30, -1e-40], ids=lambda value: f"{value:g}")
def test_constant_blocks(format: Format, value: float) -> None:
    rows = np.full((2, BLOCK), value, dtype=np.float32)
    got = round_trip(rows, format)
    assert np.isfinite(got).all()
    # What is too small to have a scale may come out as 0.
    if abs(value) > 1e-15 or value == 0:
        assert np.allclose(got, rows, rtol=0.01)


@pytest.mark.parametrize("sign", [1, -1])
def test_one_sided_blocks(sign: int) -> None:
    rows = sign * np.linspace(1, 2, BLOCK, dtype=np.float32)[None]
    assert np.abs(round_trip(rows, "q4") - rows).max() < 0.08


def test_normal_weights_keep_their_shape() -> None:
    rows = np.random.default_rng(0).standard_normal((64, 1024), dtype=np.float32)
    error = np.linalg.norm(round_trip(rows, "q4") - rows) / np.linalg.norm(rows)
    assert error < 0.08
    assert np.linalg.norm(round_trip(rows, "q8") - rows) / np.linalg.norm(rows) < 0.006


def test_a_grid_of_16_levels_is_found_exactly() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 16, (8, 4, BLOCK))
    values[..., 0], values[..., 1] = 0, 15
    zeros = rng.integers(1, 15, (8, 4, 1))
    scales = rng.uniform(0.01, 0.1, (8, 4, 1))
    rows = ((values - zeros) * scales).astype(np.float32).reshape(8, -1)
    assert np.allclose(round_trip(rows, "q4"), rows, rtol=1e-5)


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q5_0, Kind.Q8_0])
def test_8_bits_hold_ggufs_blocks(kind: gguf.GGMLQuantizationType) -> None:
    """Not only by repacking: the search finds them too, up to float rounding."""
    rows = np.random.default_rng(2).standard_normal((8, 256), dtype=np.float32)
    stored = gguf.quants.dequantize(gguf.quants.quantize(rows, kind), kind)
    error = np.linalg.norm(round_trip(stored, "q8") - stored) / np.linalg.norm(stored)
    assert error < 0.006


def test_half_precision_does_not_overflow() -> None:
    rows = np.array([[1e9, -1e9, 1.5, 0]], dtype=np.float32)
    assert round_trip(rows, "f16").tolist() == [[65504.0, -65504.0, 1.5, 0.0]]


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_zero_points_are_packed_in_pairs(blocks: int) -> None:
    values = np.arange(blocks * BLOCK, dtype=np.uint8).reshape(1, blocks, BLOCK) % 16
    zeros = np.arange(3, 3 + blocks, dtype=np.uint8)[None]
    packed = pack_q4(values, np.ones((1, blocks), dtype=np.float32), zeros)
    assert packed.arrays[2].shape == (1, (blocks + 1) // 2)
    expected = values.astype(np.float32) - zeros[..., None]
    assert np.array_equal(unpack_rows(packed, "q4"), expected.reshape(1, -1))


def test_plain_formats_pass_through() -> None:
    rows = np.random.default_rng(3).standard_normal((3, 5), dtype=np.float32)
    assert np.array_equal(unpack_rows(PackedRows((rows,)), "f32"), rows)
    assert np.array_equal(round_trip(rows, "f32"), rows)


@pytest.mark.parametrize("format", ["q4", "q8"])
@pytest.mark.parametrize("block", [32, 64, 128])
def test_blocks_of_any_width(format: Format, block: int) -> None:
    """Each block has its own scale: one that is a thousand times larger spoils no other."""
    rows = np.random.default_rng(4).standard_normal((8, 256), dtype=np.float32)
    rows[:, :block] *= 1000
    packed = pack_rows(rows, format, block)
    assert packed.arrays[1].shape == (8, 256 // block)
    got = unpack_rows(packed, format)
    error = np.abs(got - rows)[:, block:].max(initial=0)
    assert error < (0.5 if format == "q4" else 0.05)
    assert np.linalg.norm(got - rows) / np.linalg.norm(rows) < (0.11 if format == "q4" else 0.01)
