"""Which slot a prompt takes, and what is computed in it. Sessions here only count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.engine.slots import Slot, SlotPool, common_prefix
from fimble.errors import GenerationFailed


class CountingSession:
    """Holds ids like a session does, and insists on its rules."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.appends: list[int] = []
        self.rewound = False
        self.fail = False

    def append(self, ids: Sequence[int]) -> None:
        if self.fail:
            raise GenerationFailed("out of memory")
        self.ids.extend(ids)
        self.appends.append(len(ids))
        self.rewound = False

    def rewind(self, length: int) -> None:
        del self.ids[length:]
        self.rewound = True


def slot_of(ids: Sequence[int] = (), *, continuation: bool = True) -> Slot:
    session: Any = CountingSession
    slot = Slot(session, continuation)
    if ids:
        list(slot.seek(list(ids), 0))
    return slot


def session_of(slot: Slot) -> CountingSession:
    session: Any = slot.session
    assert isinstance(session, CountingSession)
    return session


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_common_prefix(left: list[int], right: list[int]) -> None:
    length = common_prefix(left, right)
    assert left[:length] == right[:length]
    assert length == min(len(left), len(right)) or left[length] != right[length]


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1),
    st.integers(0, 4),
)
def test_after_any_seeks_the_session_holds_the_ids(
    prompts: list[list[int]], slice_tokens: int
) -> None:
    slot = slot_of()
    for prompt in prompts:
        expected = slot.reusable(prompt)
        computed = sum(slot.seek(prompt, slice_tokens))
        assert computed == len(prompt) - expected >= 1
        assert slot.ids == session_of(slot).ids == prompt
        assert not session_of(slot).rewound, "a rewind must be followed by an append"


def test_slices_are_as_large_as_asked() -> None:
    slot = slot_of()
    assert list(slot.seek(list(range(70)), 32)) == [32, 32, 6]
    assert session_of(slot).appends == [32, 32, 6]


def test_the_same_prompt_again_computes_its_last_token() -> None:
    slot = slot_of([1, 2, 3])
    assert list(slot.seek([1, 2, 3], 0)) == [1]


def test_a_seek_left_half_way_is_continued() -> None:
    slot = slot_of([9, 9])
    steps = slot.seek([1, 2, 3, 4, 5, 6], 2)
    next(steps)
    del steps
    assert slot.ids == [1, 2]
    assert list(slot.seek([1, 2, 3, 4, 5, 6], 2)) == [2, 2]


def test_without_continuation_each_prompt_gets_a_new_session_in_one_piece() -> None:
    slot = slot_of(range(40), continuation=False)
    first = session_of(slot)
    assert list(slot.seek(list(range(41)), 32)) == [41]
    assert session_of(slot) is not first


def test_a_failed_append_breaks_the_slot() -> None:
    slot = slot_of([1])
    session_of(slot).fail = True
    with pytest.raises(GenerationFailed):
        list(slot.seek([1, 2], 0))
    assert slot.broken


# --- the pool ----------------------------------------------------------------------------


class Pool:
    """A pool, and requests that begin and end in it."""

    def __init__(self, limit: int) -> None:
        self.pool = SlotPool(slot_of, limit)

    def run(self, ids: Sequence[int], document: str = "") -> Slot:
        slot = self.hold(ids, document)
        self.pool.release(slot, slot.holder)
        return slot

    def hold(self, ids: Sequence[int], document: str = "", holder: object = "request") -> Slot:
        slot = self.pool.take(list(ids), document, holder, lambda _: False)
        assert slot is not None
        list(slot.seek(list(ids), 0))
        return slot


A = list(range(100, 140))
B = list(range(200, 240))
C = list(range(300, 340))


def test_a_prompt_returns_to_the_slot_with_its_beginning() -> None:
    pool = Pool(2)
    a, b = pool.run(A, "a"), pool.run(B, "b")
    assert a is not b
    assert pool.run([*A, 1], "a") is a
    assert pool.run([*B[:30], 1], "b") is b


def test_slots_are_made_when_they_are_needed() -> None:
    pool = Pool(3)
    pool.run(A, "a")
    pool.run([*A, 1], "a")
    assert len(pool.pool.slots) == 1


def test_a_few_common_tokens_do_not_wipe_another_documents_state() -> None:
    pool = Pool(2)
    a = pool.run([1, 2, 3, *A], "a")
    b = pool.run([1, 2, 3, *B], "b")
    assert b is not a
    assert pool.run([1, 2, 3, *A, 9], "a") is a


def test_a_prompt_is_reused_though_a_long_answer_follows_it_in_the_slot() -> None:
    pool = Pool(2)
    slot = pool.run([*A, *range(500)])
    assert pool.run([*A, 1]) is slot


def test_a_document_keeps_its_slot_when_its_prompt_changes_altogether() -> None:
    pool = Pool(2)
    a = pool.run(A, "a")
    pool.run(B, "b")
    assert pool.run(C, "a") is a


def test_a_document_may_come_back_to_where_it_was_while_there_is_room() -> None:
    pool = Pool(2)
    here, there = pool.run(A, "a"), pool.run(B, "a")
    assert here is not there
    assert pool.run([*A, 1], "a") is here
    # No room for a third: the older of its own goes, and nobody else's.
    assert pool.run(C, "a") is there
    assert pool.run([*A, 1, 2], "a") is here


def test_the_least_recently_used_goes_when_there_is_no_room() -> None:
    pool = Pool(2)
    a, b = pool.run(A, "a"), pool.run(B, "b")
    pool.run([*A, 1], "a")
    assert pool.run(C, "c") is b
    assert pool.run([*A, 1, 2], "a") is a


def test_of_equal_slots_the_least_recently_used_is_taken() -> None:
    pool = Pool(2)
    first = pool.hold(A, "", "one")
    second = pool.hold(A, "", "two")
    pool.pool.release(second, "two")
    pool.pool.release(first, "one")
    assert pool.run(A) is second


def test_a_held_slot_is_taken_only_from_who_may_be_evicted() -> None:
    pool = Pool(1)
    held = pool.hold(A, "a", "chat")
    assert pool.pool.take(B, "b", "completion", lambda _: False) is None
    assert pool.pool.take(B, "b", "completion", lambda holder: holder == "chat") is held
    assert held.holder == "completion"
    pool.pool.release(held, "chat")
    assert held.holder == "completion", "who lost a slot cannot release it"


def test_of_those_that_may_be_evicted_the_one_that_loses_least_is() -> None:
    pool = Pool(2)
    chat = pool.hold([1, 2, 3, 4, 5, 6], "", "chat")
    warm_up = pool.hold([7, 8], "a", "warm-up")
    assert pool.pool.take(B, "b", "completion", lambda holder: True) is warm_up
    assert chat.holder == "chat"


def test_a_slot_can_be_spared_where_another_one_is_left_for_the_others() -> None:
    assert not Pool(1).pool.spares(None)
    pool = Pool(2)
    assert pool.pool.spares(None)
    pool.hold(A, "a", "warm-up")
    assert pool.pool.spares(None)
    pool.hold(B, "", "chat")
    assert pool.pool.spares("chat") and not pool.pool.spares(None)


def test_a_broken_slot_is_replaced() -> None:
    pool = Pool(1)
    a = pool.run(A, "a")
    a.broken = True
    assert pool.run(A, "a") is not a
    assert len(pool.pool.slots) == 1
