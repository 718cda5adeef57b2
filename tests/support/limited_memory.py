"""A stand-in for a device with little memory, which no machine here has.

onnxruntime-genai itself, but for one thing: all generators that are alive may hold a KV cache
of so many tokens together; making one more fails with a provider's own words.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import onnxruntime_genai as og
import pytest

__all__ = ["LimitedMemoryRuntime"]

BFC_ARENA = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Exception during initialization: "
    "onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, Stream *) Failed to allocate memory "
    "for requested buffer of size 805306368"
)


class _Params:
    """GeneratorParams that can be asked for max_length."""

    def __init__(self, model: Any) -> None:
        self.real = og.GeneratorParams(model)
        self.max_length = 0

    def set_search_options(self, **options: Any) -> None:
        self.max_length = options["max_length"]
        self.real.set_search_options(**options)


class _Generator:
    def __init__(self, real: Any, max_length: int) -> None:
        self._real = real
        self.max_length = max_length

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class LimitedMemoryRuntime:
    """In place of the module; ``tokens`` are what fits, and may be changed at any time."""

    def __init__(self, tokens: int, says: str = BFC_ARENA) -> None:
        self.tokens = tokens
        self.says = says
        #: max_length of every generator that was asked for, in order.
        self.asked: list[int] = []
        self._alive: weakref.WeakSet[_Generator] = weakref.WeakSet()

    def install(self, patch: pytest.MonkeyPatch) -> LimitedMemoryRuntime:
        """Makes it what ``import onnxruntime_genai`` gives."""
        patch.setitem(sys.modules, "onnxruntime_genai", self)
        return self

    @property
    def held(self) -> int:
        """Tokens that the living generators hold."""
        return sum(each.max_length for each in self._alive)

    GeneratorParams = _Params

    def Generator(self, model: Any, params: _Params) -> _Generator:
        self.asked.append(params.max_length)
        if self.held + params.max_length > self.tokens:
            raise RuntimeError(self.says)
        generator = _Generator(og.Generator(model, params.real), params.max_length)
        self._alive.add(generator)
        return generator

    def __getattr__(self, name: str) -> Any:
        return getattr(og, name)
