"""A package and this machine together: can it run here, with how long a context, and if not,
what to do. What ``fimble model inspect`` shows.

Puts together inspection, providers, device memory and plan; decides nothing of its own but
the order in which reasons are given: the files, the provider, the memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fimble.models.device_memory import DeviceMemory
from fimble.models.inspection import Inspection
from fimble.models.memory_plan import (
    LEAST_TOKENS,
    MemoryNeed,
    MemoryPlan,
    kv_bytes,
    plan_memory,
    total_bytes,
)
from fimble.models.providers import Machine, provider_refusal

__all__ = [
    "ModelReport",
    "gib",
    "make_report",
    "memory_advice",
    "memory_need",
    "plan_lengths",
    "too_large",
]

_GPU = frozenset({"AMDGPU", "DML", "WebGPU", "cuda"})


@dataclass(frozen=True, slots=True)
class ModelReport:
    """``problem`` and ``next_step`` are None for a package that can run here.

    ``advice`` is what to do where memory is short, in the order in which to try it.
    """

    inspection: Inspection
    plan: MemoryPlan
    memory: DeviceMemory
    problem: str | None
    next_step: str | None
    advice: tuple[str, ...]

    @property
    def runnable(self) -> bool:
        """Whether nothing is known that keeps the package from running here."""
        return self.problem is None

    def to_json(self) -> dict[str, Any]:
        """The form of ``fimble model inspect --json``; these keys, and no others."""
        found = self.inspection
        return {
            "name": found.name,
            "model_type": found.model_type,
            "provider": found.provider.name,
            "provider_options": found.provider.options,
            "window": {"tokens": found.window.tokens, "limited_by": found.window.limited_by},
            "kv": {
                "bytes_per_token": found.kv_bytes_per_token,
                "bytes_at_window": found.kv_bytes_at_window,
            },
            "fim": found.fim,
            "files": [{"name": name, "bytes": size} for name, size in found.files],
            "runnable": self.runnable,
            "problem": self.problem,
            "next_step": self.next_step,
            "plan": self._plan_json(),
        }

    def _plan_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "max_length": plan.max_length,
            "limited_by": plan.limited_by,
            "reason": self.reason(),
            "slots": plan.slots,
            "share_buffer": plan.need.share_buffer,
            "weights_bytes": plan.need.weights,
            "working_bytes": plan.need.working,
            "kv_bytes": plan.kv,
            "total_bytes": plan.total,
            "memory": {
                "free_bytes": self.memory.free,
                "total_bytes": self.memory.total,
                "source": self.memory.source,
            },
            "fits": plan.fits,
            "lengths": [
                {
                    "tokens": tokens,
                    "kv_bytes": kv_bytes(plan.need, tokens, plan.slots),
                    "total_bytes": total_bytes(plan.need, tokens, plan.slots),
                    "fits": total_bytes(plan.need, tokens, plan.slots) <= self.memory.free,
                }
                for tokens in plan_lengths(plan)
            ],
            "lower_steps": list(plan.lower),
            "advice": list(self.advice),
        }

    def reason(self) -> str:
        """Why the plan's ``max_length`` is what it is, in a sentence."""
        plan, window = self.plan, self.inspection.window
        free = f"the {gib(self.memory.free)} that are free {self.memory.source}"
        if plan.max_length == 0:
            return f"not even {LEAST_TOKENS:,} tokens fit into {free}"
        if plan.limited_by == "memory":
            return f"that is the most that fits into {free}"
        if plan.limited_by == "setting":
            more = plan.largest is not None and plan.largest > plan.max_length
            rest = f"; {plan.largest:,} would fit into {free}" if more else ""
            return f"that is what is set (the engine's --context-tokens){rest}"
        return f"that is the whole window ({window.limited_by}), and it fits into {free}"


def make_report(
    found: Inspection,
    machine: Machine,
    memory: DeviceMemory,
    *,
    slots: int,
    setting: int | None = None,
) -> ModelReport:
    """The report for ``slots`` slots of at most ``setting`` tokens, None for no limit."""
    need = memory_need(found)
    plan = plan_memory(need, slots=slots, free=memory.free, setting=setting)
    advice = memory_advice(found, plan)
    problem, next_step = found.problem, found.next_step
    if problem is None:
        refusal = provider_refusal(found, machine)
        if refusal is not None:
            problem, next_step = refusal.problem, refusal.next_step
        elif not plan.fits:
            problem, next_step = too_large(plan, memory), advice[0]
    return ModelReport(found, plan, memory, problem, next_step, advice)


def memory_need(found: Inspection) -> MemoryNeed:
    """What the planner has to know of a package."""
    return MemoryNeed(
        weights=found.weights_bytes,
        kv_per_token=found.kv_bytes_per_token,
        window=found.window.tokens,
        share_buffer=found.config.search.share_buffer,
    )


def memory_advice(found: Inspection, plan: MemoryPlan) -> tuple[str, ...]:
    """What to do where memory is short, in order; only what this package leaves to do."""
    advice = []
    if not found.quantisation.startswith(("int4", "uint4")):
        advice.append("Use a package with INT4 weights.")
    if not plan.need.share_buffer:
        advice.append(
            "Set past_present_share_buffer to true under search in genai_config.json, if its "
            "provider can do that: without it the KV cache is there twice."
        )
    lower = plan.lower[0] if plan.lower else None
    if lower is not None:
        enough = " (4,096 to 8,192 tokens are enough for chat)" if plan.max_length > 8192 else ""
        advice.append(f"Lower the context: --context-tokens {lower}{enough}.")
    if plan.slots > 1:
        advice.append("Keep fewer prompts at once: --slots 1.")
    if found.provider.canonical in _GPU:
        advice.append("Make sure that the work is on the GPU, not on the CPU: `fimble doctor`.")
        advice.append("Close other programs that use the GPU.")
    else:
        advice.append("Close other programs, or use a smaller model.")
    return tuple(advice)


def plan_lengths(plan: MemoryPlan) -> tuple[int, ...]:
    """Lengths to show: the window halved down to the least, and the chosen one, ascending."""
    lengths = {plan.max_length, plan.need.window} - {0}
    length = 1 << max(0, plan.need.window.bit_length() - 1)
    while length >= LEAST_TOKENS:
        lengths.add(length)
        length //= 2
    return tuple(sorted(lengths))


def gib(size: int) -> str:
    """``size`` bytes for a sentence."""
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


def too_large(plan: MemoryPlan, memory: DeviceMemory) -> str:
    """What the least that is of use would need, and what there is, in a sentence."""
    least = min(LEAST_TOKENS, plan.need.window)
    needed = total_bytes(plan.need, least, plan.slots)
    slots = "slot" if plan.slots == 1 else "slots"
    return (
        f"It needs {gib(needed)} for its weights ({gib(plan.need.weights)}) and {plan.slots} "
        f"{slots} of {least:,} tokens; {gib(memory.free)} are free {memory.source}."
    )
