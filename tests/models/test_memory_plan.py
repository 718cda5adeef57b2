"""The memory plan: exact sums, never more than there is, and longer where there is more."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.models.inspection import inspect_package
from fimble.models.memory_plan import (
    LEAST_TOKENS,
    MemoryNeed,
    kv_bytes,
    lower_steps,
    plan_memory,
    total_bytes,
)
from fimble.models.report import memory_advice, memory_need, plan_lengths
from fimble.models.store import Store
from tests.support.amd_packages import AMD_PACKAGES, KIB, MIB, make_amd_package

GIB = 1 << 30

NEEDS = st.builds(
    MemoryNeed,
    weights=st.integers(0, 64 * GIB),
    kv_per_token=st.integers(0, 4 * MIB),
    window=st.integers(1, 131_072),
    share_buffer=st.booleans(),
)
SLOTS = st.integers(1, 8)
FREE = st.integers(0, 256 * GIB)
SETTING = st.none() | st.integers(64, 200_000)

B = MemoryNeed(weights=9_000 * MIB, kv_per_token=192 * KIB, window=32768, share_buffer=True)


def test_a_slot_reserves_its_whole_length() -> None:
    assert kv_bytes(B, 8192, slots=2) == 3 * GIB
    assert kv_bytes(B, 32768) == 6 * GIB
    # Were there as many heads for keys and values as for queries.
    assert kv_bytes(MemoryNeed(0, 5 * 192 * KIB, 32768, True), 32768) == 30 * GIB


def test_buffers_that_are_not_shared_are_there_twice() -> None:
    apart = MemoryNeed(B.weights, B.kv_per_token, B.window, share_buffer=False)
    assert kv_bytes(apart, 8192, 2) == 2 * kv_bytes(B, 8192, 2)


@pytest.mark.parametrize("letter", AMD_PACKAGES)
def test_the_kv_cache_of_each_of_amds_packages(tmp_path: Path, letter: str) -> None:
    row = AMD_PACKAGES[letter]
    found = inspect_package(Store(tmp_path).find(str(make_amd_package(tmp_path, letter))))
    need = memory_need(found)
    copies = 1 if row.share_buffer else 2
    assert (need.kv_per_token, need.window) == (row.kv[0] * KIB, row.window[0])
    assert kv_bytes(need, need.window) == row.kv[1] * MIB * copies


# Free memory for B in GiB, slots, setting → length, and why. At 12 GiB 2,776 MiB are left
# after the weights and what is set aside: 7,402 tokens of two slots, of which 7,168 are taken.
CASES = [
    (64, 1, None, 32768, "window"),
    (64, 2, 8192, 8192, "setting"),
    (64, 1, 100_000, 32768, "window"),
    (16, 1, None, 32768, "window"),
    (15, 1, None, 30976, "memory"),
    (12, 2, 8192, 7168, "memory"),
    (11, 2, None, 4608, "memory"),
    (10, 1, 8192, 3840, "memory"),
    (9, 1, 8192, 0, "memory"),
    (None, 1, None, 32768, "unknown memory"),
    (None, 2, 4096, 4096, "setting"),
]


@pytest.mark.parametrize(("free", "slots", "setting", "length", "why"), CASES)
def test_the_chosen_length_and_why(
    free: int | None, slots: int, setting: int | None, length: int, why: str
) -> None:
    plan = plan_memory(B, slots=slots, free=None if free is None else free * GIB, setting=setting)
    assert (plan.max_length, plan.limited_by) == (length, why)
    assert plan.fits == (None if free is None else length > 0)


def test_a_window_shorter_than_the_least_is_all_there_is() -> None:
    small = MemoryNeed(0, 1, window=300, share_buffer=True)
    assert plan_memory(small, slots=1, free=GIB).max_length == 300
    assert plan_memory(small, slots=1, free=0).max_length == 0


@given(NEEDS, SLOTS, FREE, SETTING)
def test_a_plan_never_exceeds_memory_window_or_setting(
    need: MemoryNeed, slots: int, free: int, setting: int | None
) -> None:
    plan = plan_memory(need, slots=slots, free=free, setting=setting)
    assert 0 <= plan.max_length <= need.window
    assert plan.max_length <= (setting or need.window)
    if plan.max_length:
        assert plan.total <= free and plan.fits
    else:
        assert plan.fits is False


@given(NEEDS, SLOTS, FREE, SETTING)
def test_sums_are_exact(need: MemoryNeed, slots: int, free: int, setting: int | None) -> None:
    plan = plan_memory(need, slots=slots, free=free, setting=setting)
    copies = 1 if need.share_buffer else 2
    assert plan.kv == slots * plan.max_length * need.kv_per_token * copies
    assert plan.total == need.weights + need.working + plan.kv
    assert kv_bytes(need, plan.max_length, slots) == sum(
        kv_bytes(need, plan.max_length) for _ in range(slots)
    )


@given(NEEDS, SLOTS, FREE, FREE)
def test_more_memory_never_gives_less(need: MemoryNeed, slots: int, one: int, two: int) -> None:
    less, more = sorted((one, two))
    assert (
        plan_memory(need, slots=slots, free=less).max_length
        <= plan_memory(need, slots=slots, free=more).max_length
    )


@given(NEEDS, st.integers(1, 7), FREE)
def test_more_slots_never_give_longer_ones(need: MemoryNeed, slots: int, free: int) -> None:
    assert (
        plan_memory(need, slots=slots + 1, free=free).max_length
        <= plan_memory(need, slots=slots, free=free).max_length
    )


@given(NEEDS, SLOTS, FREE)
def test_nothing_longer_would_have_fitted(need: MemoryNeed, slots: int, free: int) -> None:
    plan = plan_memory(need, slots=slots, free=free)
    if 0 < plan.max_length < need.window:
        assert plan.limited_by == "memory"
        # Lengths that memory decides are multiples of 256.
        assert plan.max_length % 256 == 0
        longer = min(need.window, plan.max_length + 256)
        assert total_bytes(need, longer, slots) > free


@given(st.integers(0, 1 << 20))
def test_each_lower_step_halves_what_a_slot_reserves(length: int) -> None:
    steps = [length, *lower_steps(length)]
    assert all(after == before // 2 for before, after in pairwise(steps))
    assert all(step >= LEAST_TOKENS for step in steps[1:])
    assert steps[-1] // 2 < LEAST_TOKENS


@given(NEEDS, SLOTS, FREE, SETTING)
def test_the_lengths_to_show_hold_the_chosen_one_and_the_window(
    need: MemoryNeed, slots: int, free: int, setting: int | None
) -> None:
    plan = plan_memory(need, slots=slots, free=free, setting=setting)
    lengths = plan_lengths(plan)
    assert list(lengths) == sorted(set(lengths))
    assert need.window in lengths and lengths[-1] == need.window
    assert plan.max_length in (0, *lengths)


def test_a_plan_wants_a_slot() -> None:
    with pytest.raises(ValueError, match="a slot"):
        plan_memory(B, slots=0, free=GIB)


@pytest.mark.parametrize(
    ("letter", "expected"),
    [
        ("B", ["--context-tokens 3584", "--slots 1", "on the GPU", "that use the GPU"]),
        ("D", ["past_present_share_buffer", "--context-tokens 2048", "--slots 1", "smaller model"]),
    ],
)
def test_the_advice_is_what_the_package_leaves_to_do_in_order(
    tmp_path: Path, letter: str, expected: list[str]
) -> None:
    found = inspect_package(Store(tmp_path).find(str(make_amd_package(tmp_path, letter))))
    need = memory_need(found)
    free = 12 * GIB - (9_000 * MIB - need.weights)
    advice = memory_advice(found, plan_memory(need, slots=2, free=free, setting=8192))
    assert len(advice) == len(expected)
    assert all(words in text for words, text in zip(expected, advice, strict=True)), advice
