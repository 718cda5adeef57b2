"""How an engine is to be run, as the launcher passes it on and the process reads it.

Knows nothing of models or HTTP; both sides import it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["EngineOptions", "options_from_arguments"]


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """``model`` is the package (name or absolute path) for requests that name none.

    ``context_tokens`` bounds each slot's prompt plus answer; the runtime allocates a slot's
    whole KV cache at once, so this, not the model's own window, decides the memory.
    ``slots`` is the number of KV caches a model, ``threads`` the processor threads (0: the
    runtime's choice). After ``idle_unload_minutes`` without a request the model is
    unloaded, after ``idle_exit_minutes`` the process ends; 0 means never.

    ``provider`` is what computes in place of the package's own provider, with
    ``provider_options`` (names and values) on top of the package's. ``provider_library`` is
    the absolute path of a plug-in that the user named himself. ``device_memory`` is how many
    bytes the device has free, 0 for what the system says. ``started_in`` is the folder that
    the command was given in, from where no library is loaded.
    """

    model: str = ""
    context_tokens: int = 8192
    slots: int = 2
    threads: int = 0
    idle_unload_minutes: float = 30.0
    idle_exit_minutes: float = 60.0
    provider: str = ""
    provider_options: tuple[tuple[str, str], ...] = ()
    provider_library: str = ""
    device_memory: int = 0
    started_in: str = ""

    def to_arguments(self) -> list[str]:
        """Command-line arguments that ``options_from_arguments`` turns back into this."""
        arguments = []
        for option in fields(self):
            value = getattr(self, option.name)
            if option.name == "provider_options":
                arguments += [f"--provider-option={name}={text}" for name, text in value]
            else:
                arguments.append(f"--{option.name.replace('_', '-')}={value}")
        return arguments


def options_from_arguments(arguments: Sequence[str]) -> EngineOptions:
    """Reads the options of ``python -m fimble.engine``; exits with 2 when they are wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m fimble.engine",
        description="Runs one model for all editor windows of this user, on loopback.",
    )
    defaults = EngineOptions()
    parser.add_argument("--model", default=defaults.model, help="package name or path")
    parser.add_argument("--context-tokens", type=_at_least(64), default=defaults.context_tokens)
    parser.add_argument("--slots", type=_at_least(1), default=defaults.slots)
    parser.add_argument("--threads", type=_at_least(0), default=defaults.threads)
    parser.add_argument("--idle-unload-minutes", type=float, default=defaults.idle_unload_minutes)
    parser.add_argument("--idle-exit-minutes", type=float, default=defaults.idle_exit_minutes)
    parser.add_argument("--provider", default=defaults.provider)
    parser.add_argument("--provider-option", type=_pair, action="append", default=[])
    parser.add_argument("--provider-library", default=defaults.provider_library)
    parser.add_argument("--device-memory", type=_at_least(0), default=defaults.device_memory)
    parser.add_argument("--started-in", default=defaults.started_in)
    values: dict[str, Any] = vars(parser.parse_args(arguments))
    values["provider_options"] = tuple(values.pop("provider_option"))
    return EngineOptions(**values)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError("must be NAME=VALUE")
    return name, value


class _at_least:
    """An argparse type: whole numbers from ``lowest`` up."""

    def __init__(self, lowest: int) -> None:
        self.lowest = lowest

    def __call__(self, text: str) -> int:
        value = int(text)
        if value < self.lowest:
            raise argparse.ArgumentTypeError(f"must be at least {self.lowest}")
        return value

    def __repr__(self) -> str:
        return "whole number"
