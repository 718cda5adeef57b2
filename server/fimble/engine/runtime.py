"""onnxruntime-genai behind a few calls: the only module that imports it, and only on use.

Every trap of its generators is closed here: no answer is read after a rewind that nothing
was appended to, no token is left out of the KV cache, no prompt exceeds the window. Uses
only what exists in 0.11.2, 0.13.1 and 0.18.0. Knows nothing of text, slots or requests.

The process must already be in a private current directory when a model is opened: the
runtime looks for provider libraries there.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fimble.engine.load_errors import (
    explain_generation_error,
    explain_load_error,
    is_out_of_memory,
)
from fimble.engine.memory_advice import advice_for
from fimble.engine.package import PackageConfig
from fimble.engine.plugins import is_registered, pass_library
from fimble.engine.provider_choice import ProviderChoice, better_next_step, choose_provider
from fimble.errors import GenerationFailed, LoadFailed, RuntimeMissing
from fimble.models.runtimes import DISTRIBUTIONS, NO_TELEMETRY, Runtime, find_runtime

__all__ = ["DISTRIBUTIONS", "Logits", "Model", "Runtime", "Session", "find_runtime"]

Logits = npt.NDArray[np.float32]

_NO_DEVICE = (
    "The plug-in of {0} found no device: install the graphics driver, on Linux with Vulkan "
    "(libvulkan1), or leave out --provider. `fimble doctor` shows the devices."
)


class Model:
    """An opened package. ``continuation`` is set by whoever probed it.

    Opening holds the interpreter for as long as it takes: seconds for a large model.
    """

    def __init__(
        self, config: PackageConfig, *, threads: int = 0, choice: ProviderChoice | None = None
    ) -> None:
        """``choice`` is the provider; the package's own if it is None. Raises RuntimeMissing
        or LoadFailed.
        """
        find_runtime()
        os.environ.update(NO_TELEMETRY)
        try:
            self._og: Any = importlib.import_module("onnxruntime_genai")
        except (ImportError, OSError) as error:
            raise RuntimeMissing(
                f"The installed onnxruntime-genai cannot be imported: {error}.",
                next_step="Install it again; on Windows it needs the Visual C++ runtime.",
            ) from error
        self.config = config
        self.choice = choose_provider(config) if choice is None else choice
        self.continuation = False
        self._threads = threads
        # The variable is newer than this call.
        disable_telemetry = getattr(self._og, "disable_telemetry_events", None)
        if disable_telemetry is not None:
            disable_telemetry()
        pass_library(self._og, self.choice.name, self.choice.library)
        self._model: Any = self._open({})
        if not self._accepts_several_tokens():
            self._model = None
            filename = config.all_logits_weights.name
            self._model = self._open({"model": {"decoder": {"filename": filename}}})

    def session(self, max_length: int) -> Session:
        """A new KV cache for at most ``max_length`` tokens, allocated at once where buffers
        are shared. Raises OutOfMemory when there is no memory for it, else GenerationFailed.
        """
        try:
            params = self._og.GeneratorParams(self._model)
            # All that a package's own search settings could change about our choices.
            params.set_search_options(
                max_length=max_length,
                min_length=0,
                batch_size=1,
                num_beams=1,
                num_return_sequences=1,
                do_sample=False,
                repetition_penalty=1.0,
                no_repeat_ngram_size=0,
            )
            generator = self._og.Generator(self._model, params)
        except (RuntimeError, MemoryError) as error:
            raise _failure(
                f"The runtime cannot make a KV cache of {max_length} tokens", error
            ) from error
        return Session(generator, max_length, self.continuation)

    def close(self) -> None:
        """Frees the weights. Sessions must have been dropped before."""
        self._model = None

    def _open(self, overlay: dict[str, Any]) -> Any:
        if self._threads:
            options = {"intra_op_num_threads": self._threads}
            overlay.setdefault("model", {}).setdefault("decoder", {})["session_options"] = options
        try:
            config = self._og.Config(str(self.config.folder))
            if overlay:
                config.overlay(json.dumps(overlay))
            self._choose_provider(config)
            return self._og.Model(config)
        except (RuntimeError, MemoryError, ValueError) as error:
            said = str(error) or type(error).__name__
            lacking = isinstance(error, MemoryError) or is_out_of_memory(said)
            advice = advice_for(self.config) if lacking else ""
            failure = explain_load_error(self.config.folder, said, memory_advice=advice)
            raise LoadFailed(failure.message, next_step=self._next_step(failure, said)) from error

    def _choose_provider(self, config: Any) -> None:
        choice = self.choice
        if not choice.own:
            config.clear_providers()
            if choice.is_cpu:
                return
            config.append_provider(choice.name)
        for name, value in choice.options:
            config.set_provider_option(choice.name, name, value)

    def _next_step(self, failure: LoadFailed, said: str) -> str:
        if is_out_of_memory(said):
            return failure.next_step
        if "not supported in this build" in said and is_registered(self.choice.name):
            # Its plug-in is there: what is missing is something that it could compute with.
            return _NO_DEVICE.format(self.choice.name)
        return better_next_step(failure, self.config, self.choice)

    def _accepts_several_tokens(self) -> bool:
        """False where this runtime cannot use the graph but can use its other variant."""
        try:
            session = self.session(8)
            session._generator.append_tokens(np.asarray([1, 2], dtype=np.int32))
            session._generator.get_logits()
        except (RuntimeError, GenerationFailed) as error:
            fixable = "invalid dimensions for output: logits" in str(error)
            if fixable and self.config.all_logits_weights.is_file():
                return False
            raise explain_load_error(self.config.folder, str(error)) from error
        return True


class Session:
    """One KV cache. ``length`` tokens are in it; logits are those after the last of them.

    Not for several threads. After an exception the session is in an unknown state and must
    be dropped.
    """

    def __init__(self, generator: Any, max_length: int, continuation: bool) -> None:
        self._generator = generator
        self._continuation = continuation
        self._stale = True
        self.max_length = max_length
        self.length = 0

    def append(self, ids: Sequence[int]) -> None:
        """Computes ``ids`` after what is there. Raises GenerationFailed.

        Without continuation only the first append to an empty session is possible, apart
        from single tokens after ``logits``.
        """
        if not ids:
            raise ValueError("nothing to append")
        if self.length + len(ids) > self.max_length:
            raise GenerationFailed(
                f"{self.length + len(ids)} tokens do not fit the window of {self.max_length}.",
                next_step="Shorten the prompt, or start the engine with more --context-tokens.",
            )
        try:
            if self._continuation or self.length == 0:
                # Never after generate_next_token, which leaves its token out of the cache
                # until the next step; so an append never makes a hole.
                self._generator.append_tokens(np.asarray(ids, dtype=np.int32))
            elif len(ids) == 1 and not self._stale:
                self._choose(ids[0])
            else:
                raise ValueError("this model cannot continue a prompt")
        except (RuntimeError, MemoryError) as error:
            raise _failure("The model failed while it worked", error) from error
        self.length += len(ids)
        self._stale = False

    def logits(self) -> Logits:
        """float32[vocabulary] after the last token; valid until the next append."""
        if self._stale:
            # The runtime would answer for the discarded token.
            raise ValueError("nothing was appended since the session was made or rewound")
        try:
            values = self._generator.get_logits()
        except (RuntimeError, MemoryError) as error:
            raise _failure("The model failed while it worked", error) from error
        array: Logits = np.asarray(values, dtype=np.float32)
        last: Logits = array.reshape(-1, array.shape[-1])[-1]
        return last

    def rewind(self, length: int) -> None:
        """Forgets all but the first ``length`` tokens. An append must follow."""
        if not 0 <= length <= self.length:
            raise ValueError(f"cannot rewind {self.length} tokens to {length}")
        try:
            self._generator.rewind_to(length)
        except (RuntimeError, MemoryError) as error:
            raise _failure("The model cannot be rewound", error) from error
        self.length = length
        self._stale = True

    def _choose(self, token: int) -> None:
        """Adds one token where appending is impossible: by leaving it the only choice."""
        logits = np.asarray(self._generator.get_logits(), dtype=np.float32)
        forced = np.full_like(logits, -1e30)
        forced.reshape(-1, logits.shape[-1])[:, token] = 1.0
        self._generator.set_logits(forced)
        self._generator.generate_next_token()


def _failure(what: str, error: Exception) -> GenerationFailed:
    """The runtime's failure in the user's terms. A MemoryError need not have a text."""
    lacking = isinstance(error, MemoryError)
    return explain_generation_error(what, str(error) or type(error).__name__, out_of_memory=lacking)
