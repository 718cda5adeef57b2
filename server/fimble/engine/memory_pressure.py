"""Gives memory back while nobody asks and the machine runs short of it: KV caches, then models.

Short is when less than half is free of what the memory plan sets aside: more than the plan's own
need has gone then. Both are made again at the next request. Knows nothing of the runtime.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from fimble.engine.host import ModelHost
from fimble.engine.loaded import LoadedModel
from fimble.engine.scheduler import Scheduler
from fimble.models.device_memory import DeviceMemory, free_memory, works_on_gpu
from fimble.models.memory_plan import WORKING_BYTES
from fimble.models.report import gib

__all__ = ["watch_memory"]

_log = logging.getLogger(__name__)

LEAST_BYTES = WORKING_BYTES // 2
#: How often it is looked; seldom where a GPU is asked, which on Windows starts a program.
LOOK_SECONDS = 5.0
LOOK_AT_GPU_SECONDS = 60.0
#: So long nobody must have asked for anything before the caches go, and before the models do: a
#: model that went between two keys would be loaded again at the second.
CACHES_AFTER_SECONDS = 10.0
MODELS_AFTER_SECONDS = 30.0


async def watch_memory(host: ModelHost, scheduler: Scheduler) -> None:
    """Until it is cancelled."""
    while True:
        gpu = any(works_on_gpu(model.provider) for model in host.models)
        await asyncio.sleep(LOOK_AT_GPU_SECONDS if gpu else LOOK_SECONDS)
        models, idle = host.models, scheduler.idle_seconds
        if not models or idle < CACHES_AFTER_SECONDS:
            continue
        memory = await asyncio.to_thread(_least, models)
        if memory.free >= LEAST_BYTES:
            continue
        if any(model.holds_caches for model in models):
            _log.warning("%s are free %s: idle slots are freed", gib(memory.free), memory.source)
            scheduler.free_when_idle("slots")
        elif idle >= MODELS_AFTER_SECONDS:
            _log.warning("%s are free %s: models are unloaded", gib(memory.free), memory.source)
            scheduler.free_when_idle("models")


def _least(models: Sequence[LoadedModel]) -> DeviceMemory:
    """The memory, of those that the models work in, that has least free."""
    return min((free_memory(model.provider) for model in models), key=lambda memory: memory.free)
