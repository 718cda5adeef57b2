"""What to do where a model finds too little memory: the advice, in the order of its worth.

From the package at hand: what it has already is not advised. Reads the package's files, and
knows nothing of runtimes.
"""

from __future__ import annotations

from fimble.engine.package import PackageConfig
from fimble.errors import FimbleError
from fimble.models.inspection import inspect_package
from fimble.models.store import Package

__all__ = ["advice_for", "memory_advice"]

#: Tokens that are enough to chat and to edit.
_ENOUGH = 4096


def memory_advice(*, quantisation: str, share_buffer: bool, window: int, provider: str) -> str:
    """The advice as one sentence in the imperative.

    ``quantisation`` is how the weights are stored ("int4", …; "" where that is unknown),
    ``window`` the tokens for which a KV cache was or would be reserved.
    """
    steps = []
    if quantisation and not any(each in quantisation.lower() for each in ("int4", "4-bit")):
        steps.append("use the INT4 package of this model")
    if not share_buffer:
        steps.append("set past_present_share_buffer to true in its genai_config.json")
    if window > _ENOUGH:
        fewer = f"{_ENOUGH:,} to 8,192 are" if window > 2 * _ENOUGH else f"{_ENOUGH:,} are"
        steps.append(f"start the engine with fewer --context-tokens ({fewer} enough for chat)")
    if provider.upper().startswith("CPU"):
        steps.append("use a package for the graphics card, which has memory of its own")
    steps.append("close other programs that use the device's memory")
    steps.append("use a smaller model")
    first, *others = steps
    listed = ", or ".join([", ".join([first, *others[:-1]]), others[-1]]) if others else first
    return f"{listed[0].upper()}{listed[1:]}."


def advice_for(config: PackageConfig, window: int) -> str:
    """``memory_advice`` for a package of which ``window`` tokens did not fit."""
    try:
        quantisation = inspect_package(Package(config.name, config.folder)).quantisation
    except (FimbleError, OSError):
        quantisation = ""
    return memory_advice(
        quantisation=quantisation,
        share_buffer=config.share_buffer,
        window=window,
        provider=config.provider,
    )
