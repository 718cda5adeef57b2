"""What to do where a model found too little memory: the planner's advice for the package."""

from __future__ import annotations

from fimble.engine.package import PackageConfig
from fimble.errors import FimbleError
from fimble.models.inspection import inspect_package
from fimble.models.memory_plan import plan_memory
from fimble.models.report import memory_advice, memory_need
from fimble.models.store import Package

__all__ = ["advice_for"]


def advice_for(config: PackageConfig, window: int | None = None, slots: int = 1) -> str:
    """The advice in the order in which to try it, where ``slots`` KV caches of ``window``
    tokens (None: the package's own window) were too much.
    """
    try:
        found = inspect_package(Package(config.name, config.folder))
    except (FimbleError, OSError):
        return "Close other programs, or use a smaller model."
    plan = plan_memory(memory_need(found), slots=slots, free=None, setting=window)
    return " ".join(memory_advice(found, plan))
