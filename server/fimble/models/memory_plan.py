"""How much memory a package needs, and how long a context fits into what there is.

Arithmetic alone: the same numbers in give the same plan out, and nothing is asked of the
machine. Lengths are in tokens, everything else in bytes.

A slot is one KV cache. With shared buffers the runtime allocates the whole of it when the
slot is made, so each slot costs ``max_length`` tokens, however short the prompts are: two
slots of a 14B model (192 KiB a token) at 8,192 tokens are 3 GiB. Without shared buffers past
and present are two tensors, which exist at once while a token is computed: at the end they
are twice as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "LEAST_TOKENS",
    "MemoryNeed",
    "MemoryPlan",
    "Reason",
    "kv_bytes",
    "lower_steps",
    "plan_memory",
    "plan_slots",
    "total_bytes",
]

LEAST_TOKENS = 1024
"""Below that a completion's prompt is too short to be of use."""

_STEP = 256
"""A length that memory decides is a multiple of this."""

WORKING_BYTES = 512 << 20
"""Set aside for activations, logits and the provider itself. An assumption, not a measurement:
logits of a slice of 256 tokens are 150 MiB with Qwen's vocabulary in float32."""

Reason = Literal["window", "setting", "memory", "unknown memory"]


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What a package asks for. ``window`` is its real window in tokens; ``share_buffer`` as
    its configuration has it.
    """

    weights: int
    kv_per_token: int
    window: int
    share_buffer: bool
    working: int = WORKING_BYTES


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """``max_length`` tokens for each of ``slots`` slots; 0 where not even the least fits.

    ``largest`` is what memory alone allows, None where free memory is not known. ``kv`` is
    for all slots, ``total`` with the weights and what is set aside. ``lower`` are the lengths
    to try one after the other if making a slot fails with out of memory.
    """

    max_length: int
    limited_by: Reason
    slots: int
    need: MemoryNeed
    free: int | None
    largest: int | None
    kv: int
    total: int
    lower: tuple[int, ...]

    @property
    def fits(self) -> bool | None:
        """Whether the plan stays within free memory; None where that is not known."""
        if self.free is None:
            return None
        return self.max_length > 0 and self.total <= self.free


def kv_bytes(need: MemoryNeed, tokens: int, slots: int = 1) -> int:
    """Bytes of KV cache of ``slots`` slots of ``tokens`` tokens each."""
    copies = 1 if need.share_buffer else 2
    return need.kv_per_token * tokens * slots * copies


def total_bytes(need: MemoryNeed, tokens: int, slots: int) -> int:
    """Weights, KV caches and what is set aside."""
    return need.weights + need.working + kv_bytes(need, tokens, slots)


def plan_memory(
    need: MemoryNeed, *, slots: int, free: int | None, setting: int | None = None
) -> MemoryPlan:
    """The longest context that the window, ``setting`` and ``free`` allow.

    Where ``free`` is None the window and the setting alone decide. Where not even
    LEAST_TOKENS fit, ``max_length`` is 0. ``slots`` is at least 1.
    """
    if slots < 1:
        raise ValueError("a model needs a slot")
    wanted = need.window if setting is None else min(need.window, setting)
    reason: Reason = "window" if setting is None or setting >= need.window else "setting"
    largest = None if free is None else _largest(need, slots, free)
    chosen = wanted
    if largest is None:
        reason = "unknown memory" if reason == "window" else reason
    elif largest < wanted:
        chosen, reason = largest, "memory"
    return MemoryPlan(
        max_length=chosen,
        limited_by=reason,
        slots=slots,
        need=need,
        free=free,
        largest=largest,
        kv=kv_bytes(need, chosen, slots),
        total=total_bytes(need, chosen, slots),
        lower=lower_steps(chosen),
    )


def plan_slots(
    need: MemoryNeed, *, slots: int, free: int | None, setting: int | None = None
) -> MemoryPlan:
    """``plan_memory`` for at most ``slots`` slots: a whole window is worth more than a slot.

    As many slots as fit with the window that is wanted, else one with a shorter window.
    """
    for count in range(slots, 0, -1):
        plan = plan_memory(need, slots=count, free=free, setting=setting)
        if plan.limited_by != "memory":
            break
    return plan


def lower_steps(length: int) -> tuple[int, ...]:
    """``length`` halved again and again, down to LEAST_TOKENS: what to try after it failed."""
    steps = []
    while (length := length // 2) >= LEAST_TOKENS:
        steps.append(length)
    return tuple(steps)


def _largest(need: MemoryNeed, slots: int, free: int) -> int:
    """The longest context within ``free``, at most the window; 0 where none is worth it."""
    room = free - need.weights - need.working
    if room < 0:
        return 0
    per_token = kv_bytes(need, 1, slots)
    fitting = need.window if per_token == 0 else min(need.window, room // per_token)
    if fitting < need.window:
        fitting -= fitting % _STEP
    # A window that is shorter than the least is all there is to have.
    return fitting if fitting >= min(LEAST_TOKENS, need.window) else 0
