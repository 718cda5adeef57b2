"""Asks the planner before a model is opened: how long a window, how many slots.

What the device says it has free is not all there is to know: making a slot may still fail,
and then loaded.py takes less. Knows nothing of the runtime.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from fimble.engine.options import EngineOptions
from fimble.engine.package import PackageConfig
from fimble.engine.provider_choice import ProviderChoice
from fimble.errors import LoadFailed
from fimble.models.device_memory import DeviceMemory, free_memory
from fimble.models.inspection import Inspection
from fimble.models.memory_plan import MemoryPlan, plan_slots
from fimble.models.report import gib, memory_advice, memory_need, too_large

__all__ = ["Room", "fits_beside", "plan_room"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Room:
    """``window`` tokens in each of ``slots`` slots; ``notice`` where that is less than wanted."""

    window: int
    slots: int
    notice: str = ""


def plan_room(
    config: PackageConfig,
    found: Inspection | None,
    choice: ProviderChoice,
    options: EngineOptions,
    memory: DeviceMemory | None = None,
) -> Room:
    """The room for ``config`` in the memory that its provider's device has free.

    ``memory`` is what is free, asked of the system if it is None. Raises LoadFailed where not
    even the least fits.
    """
    wanted = Room(min(config.context_length, options.context_tokens), options.slots)
    if found is None:
        return wanted  # then opening it will say what is wrong
    memory = memory or _free(choice, options)
    if not memory.known:
        # The system's memory says little of a GPU's; making the slots will tell.
        _log.info("the GPU's free memory is not known; --device-memory sets it")
        return wanted
    plan = _plan(found, options, memory)
    if plan.max_length == 0:
        raise LoadFailed(
            f"The package {config.folder} is too large for this machine. {too_large(plan, memory)}",
            next_step=memory_advice(found, plan)[0]
            + " If more is free than that, say so: `fimble engine start --device-memory SIZE`.",
        )
    if plan.max_length == wanted.window and plan.slots == wanted.slots:
        return wanted
    notice = ""
    if plan.max_length < wanted.window:
        advice = " ".join(memory_advice(found, plan))
        notice = (
            f"{config.name} runs with a window of {plan.max_length:,} tokens in place of "
            f"{wanted.window:,}: {gib(memory.free)} are free {memory.source}. {advice}"
        )
    _log.warning("%s: %d tokens in %d slots", config.name, plan.max_length, plan.slots)
    return Room(plan.max_length, plan.slots, notice)


def fits_beside(
    found: Inspection | None,
    choice: ProviderChoice,
    options: EngineOptions,
    memory: DeviceMemory | None = None,
) -> bool:
    """Whether the package fits into what is free now, with the whole window that is wanted:
    what loads beside another model must not be worse for it. Not where nobody knows.
    """
    if found is None:
        return False
    memory = memory or _free(choice, options)
    return memory.known and _plan(found, options, memory).limited_by != "memory"


def _free(choice: ProviderChoice, options: EngineOptions) -> DeviceMemory:
    return free_memory(choice.name, setting=options.device_memory or None)


def _plan(found: Inspection, options: EngineOptions, memory: DeviceMemory) -> MemoryPlan:
    return plan_slots(
        memory_need(found),
        slots=options.slots,
        free=memory.free,
        setting=options.context_tokens,
    )
