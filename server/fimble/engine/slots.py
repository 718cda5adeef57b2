"""KV caches kept between requests, and which of them a request takes.

A slot holds a session and the ids in it. Knows nothing of scheduling: whoever takes a slot
says which ones are free.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from fimble.engine.runtime import Session

__all__ = ["Slot", "SlotPool", "common_prefix"]


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """The number of ids that both begin with."""
    limit = min(len(left), len(right))
    # Whole slices compare in C; the place where they differ is found by halving.
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class Slot:
    """``ids`` are exactly the tokens in the session's cache; logits follow the last."""

    def __init__(self, make_session: Callable[[], Session], continuation: bool) -> None:
        self._make_session = make_session
        self._continuation = continuation
        self._session: Session | None = None
        self.ids: list[int] = []
        self.document = ""
        self.last_used = 0
        #: The request that works with this slot now, if any.
        self.holder: object | None = None
        #: Set once the session failed; the pool drops it.
        self.broken = False

    @property
    def session(self) -> Session:
        """The session; made on first use."""
        if self._session is None:
            self._session = self._make_session()
        return self._session

    @property
    def is_open(self) -> bool:
        """Whether it holds memory."""
        return self._session is not None

    def reusable(self, ids: Sequence[int]) -> int:
        """How many leading tokens of ``ids`` need not be computed; at most all but one,
        since something must be appended for there to be logits.
        """
        if not self._continuation:
            return 0
        return min(common_prefix(self.ids, ids), len(ids) - 1)

    def seek(self, ids: Sequence[int], slice_tokens: int) -> Iterator[int]:
        """Makes the slot hold exactly ``ids``; yields the tokens computed after each slice.

        ``slice_tokens`` is the largest number a step, 0 for all at once. Stopping in
        between leaves a slot that holds what was computed.
        """
        kept = self.reusable(ids)
        try:
            self._keep(kept)
            if not self._continuation or slice_tokens <= 0:
                slice_tokens = len(ids)
            for start in range(kept, len(ids), slice_tokens):
                part = ids[start : start + slice_tokens]
                self.session.append(part)
                self.ids.extend(part)
                yield len(part)
        except GeneratorExit:
            raise
        except BaseException:
            self.broken = True
            raise

    def push(self, token: int) -> None:
        """Adds one chosen token."""
        try:
            self.session.append([token])
        except BaseException:
            self.broken = True
            raise
        self.ids.append(token)

    def drop(self) -> None:
        """Frees the cache and takes the slot from its holder."""
        self._session = None
        self.ids = []
        self.holder = None
        self.broken = True

    def _keep(self, count: int) -> None:
        if count == len(self.ids):
            return
        if self._continuation:
            self.session.rewind(count)
        else:
            # The old cache goes before the new one is made: both at once might not fit.
            self._session = None
        del self.ids[count:]


class SlotPool:
    """At most ``limit`` slots, made when they are needed."""

    def __init__(self, make_slot: Callable[[], Slot], limit: int) -> None:
        self._make_slot = make_slot
        self._limit = limit
        self._clock = itertools.count(1)
        self.slots: list[Slot] = []

    def take(
        self,
        ids: Sequence[int],
        document: str,
        holder: object,
        may_evict: Callable[[object], bool],
    ) -> Slot | None:
        """The slot for a prompt, now held by ``holder``; None if all are taken.

        ``may_evict`` says of a holder whether its slot may be taken from it.
        """
        self.slots = [slot for slot in self.slots if not slot.broken]
        slot = self._choose(ids, document)
        if slot is None:
            evictable = [s for s in self.slots if s.holder is not None and may_evict(s.holder)]
            # What is lost is computed again: the least of it.
            slot = min(evictable, key=lambda s: len(s.ids), default=None)
        if slot is not None:
            slot.holder = holder
            slot.document = document
            slot.last_used = next(self._clock)
        return slot

    def spares(self, holder: object | None) -> bool:
        """Whether there is a slot for ``holder``, its own or a free one, that another request
        need not take from it as long as there is only one other.
        """
        free = any(slot.holder is None or slot.holder is holder for slot in self.slots)
        return self._limit > 1 and (free or len(self.slots) < self._limit)

    def make_room(self, slot: Slot) -> bool:
        """Frees the memory of all slots but ``slot``, for which there was none left; False if
        there are no others. As many as there were are all that there will be from now on.

        Whoever holds one of them computes what was in it again.
        """
        others = [each for each in self.slots if each is not slot and each.is_open]
        if others:
            self._limit = min(self._limit, len(others))
        for other in others:
            other.drop()
        return bool(others)

    def release(self, slot: Slot, holder: object) -> None:
        """Ends ``holder``'s use of the slot; its state stays for the next request."""
        if slot.holder is holder:
            slot.holder = None
            slot.last_used = next(self._clock)
        self.slots = [each for each in self.slots if not each.broken]

    def _choose(self, ids: Sequence[int], document: str) -> Slot | None:
        """A free slot: the one that keeps most, without wiping another document's state
        for a few common tokens while there is room for a new one. A document may hold two:
        users jump to another place of it, and come back.
        """
        free = [slot for slot in self.slots if slot.holder is None]
        # max takes the first of equals: the least recently used.
        free.sort(key=lambda slot: slot.last_used)
        best = max(free, key=lambda slot: slot.reusable(ids), default=None)
        if best is not None and best.ids and _worth_it(best, ids):
            return best
        if len(self.slots) < self._limit:
            made = self._make_slot()
            self.slots.append(made)
            return made
        own = [slot for slot in free if document and slot.document == document]
        if own:
            return max(own, key=lambda slot: slot.reusable(ids))
        return free[0] if free else None


def _worth_it(slot: Slot, ids: Sequence[int]) -> bool:
    """Whether taking the slot saves half of the prompt, or costs less than half its state."""
    return slot.reusable(ids) * 2 >= min(len(ids), len(slot.ids))
