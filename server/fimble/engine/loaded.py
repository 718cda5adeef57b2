"""A package that is ready to answer: its tokenizer, its opened model, its slots.

Loading probes what the runtime can do with it, measures how fast it is, and finds a window
for which there is memory. Knows nothing of requests.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from fimble.engine.base import ModelInfo
from fimble.engine.capabilities import Capabilities, probe_capabilities, require_numbers
from fimble.engine.healing import TokenIndex
from fimble.engine.load_errors import OutOfMemory
from fimble.engine.memory_advice import advice_for
from fimble.engine.memory_room import plan_room
from fimble.engine.options import EngineOptions
from fimble.engine.package import PackageConfig
from fimble.engine.provider_choice import choose_provider, inspection_of
from fimble.engine.runtime import Model, Session
from fimble.engine.slots import Slot, SlotPool
from fimble.engine.symptoms import Symptoms
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import FimbleError, GenerationFailed, LoadFailed
from fimble.models.genai_config import canonical_provider
from fimble.models.memory_plan import lower_steps

__all__ = ["LoadedModel", "Stage", "load_model"]

_log = logging.getLogger(__name__)

#: Prefill slices bound how long one call holds the interpreter. Small ones cost nothing on
#: a processor; a GPU needs larger ones to be kept busy.
_SLICE_CPU = 32
_SLICE_GPU = 256
_WARM_UP_TOKENS = 4

#: What loading is at: memory, the weights, what the provider can do, its first work (which
#: compiles a GPU's programs), the first KV cache.
Stage = Literal["plan", "open", "probe", "warm up", "reserve"]


class LoadedModel:
    """``window`` is the largest prompt plus answer, in tokens; it may become smaller where
    there is too little memory. ``index`` finds tokens by how they begin.
    """

    def __init__(
        self,
        config: PackageConfig,
        tokenizer: PackageTokenizer,
        model: Model,
        info: ModelInfo,
        index: TokenIndex,
    ) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.info = info
        self.index = index
        self.window = info.window
        self.slice_tokens = slice_tokens(info.provider, info.continuation)
        # As the runtime spells it; ``info`` has the package's spelling.
        self.provider = canonical_provider(info.provider)
        self.stop_ids = tokenizer.stop_ids | config.eos_ids
        self.symptoms = Symptoms()
        self.pool: SlotPool | None = None
        self._model: Model | None = model
        # What was to be said before anything was lowered.
        self._notice = info.notice
        # Made when the model was loaded, for the first slot.
        self._reserved: Session | None = None

    def open_slots(self, limit: int) -> None:
        """Prepares for ``limit`` slots, none of which is allocated yet."""
        self.pool = SlotPool(self._make_slot, limit)

    def close(self) -> None:
        """Frees the KV caches, then the weights."""
        for slot in self.pool.slots if self.pool else ():
            slot.drop()
        self.pool = None
        self._reserved = None
        if self._model is not None:
            self._model.close()
        self._model = None

    @property
    def holds_caches(self) -> bool:
        """Whether there is a KV cache, of a slot or for the first one."""
        slots = self.pool.slots if self.pool else ()
        return self._reserved is not None or any(slot.is_open for slot in slots)

    def free_slots(self) -> int:
        """Frees the KV caches of slots that nobody holds; how many there were."""
        self._reserved = None
        idle = [slot for slot in (self.pool.slots if self.pool else ()) if slot.holder is None]
        for slot in idle:
            slot.drop()
        if self.pool is not None:
            self.pool.slots = [slot for slot in self.pool.slots if not slot.broken]
        return len(idle)

    def note(self, notice: str) -> None:
        """Something more that the user must know of this model."""
        self._notice = " ".join(filter(None, [self._notice, notice]))
        self.info = replace(self.info, notice=" ".join(filter(None, [self.info.notice, notice])))
        _log.warning("%s", notice)

    def reserve(self) -> None:
        """Makes the first slot's KV cache, with a smaller window where there is not the memory
        for the whole one. Raises OutOfMemory where there is none for the smallest.
        """
        self._reserved = self._new_session(None)

    def _make_slot(self) -> Slot:
        slot = Slot(lambda: self._new_session(slot), self.info.continuation)
        return slot

    def _new_session(self, slot: Slot | None) -> Session:
        """The KV cache for ``slot``: at the other slots' expense, or smaller, if need be."""
        reserved, self._reserved = self._reserved, None
        if reserved is not None and reserved.max_length == self.window:
            return reserved
        if self._model is None:
            raise GenerationFailed("The model was unloaded.", next_step="Try again.")
        while True:
            try:
                return self._model.session(self.window)
            except OutOfMemory as error:
                if slot is not None and self.pool is not None and self.pool.make_room(slot):
                    _log.warning("no memory for another slot of %d tokens", self.window)
                    continue
                smaller = lower_steps(self.window)
                if not smaller:
                    advice = advice_for(self.config, self.window)
                    raise OutOfMemory(error.message, next_step=advice) from error
                _log.warning("%s", error)
                self._lower(smaller[0])

    def _lower(self, window: int) -> None:
        wanted, self.window = self.window, window
        advice = advice_for(self.config, wanted)
        notice = (
            f"There was not enough memory for a window of {wanted:,} tokens; {self.config.name} "
            f"runs with {window:,}. {advice}"
        )
        _log.warning("%s", notice)
        notice = " ".join(filter(None, [self._notice, notice]))
        self.info = replace(self.info, window=window, notice=notice)


def slice_tokens(provider: str, continuation: bool) -> int:
    """Prompt tokens a step; 0 for all at once."""
    if not continuation:
        return 0
    return _SLICE_CPU if provider.upper().startswith("CPU") else _SLICE_GPU


def load_model(
    config: PackageConfig,
    tokenizer: PackageTokenizer,
    *,
    options: EngineOptions,
    stage: Callable[[Stage], None] = lambda stage: None,
) -> LoadedModel:
    """Plans its memory, opens the package, probes it and measures it.

    ``stage`` is told what is done now. Raises LoadFailed or RuntimeMissing.
    """
    stage("plan")
    found = inspection_of(config)
    choice = choose_provider(
        config,
        found,
        setting=options.provider,
        options=options.provider_options,
        library=options.provider_library,
    )
    room = plan_room(config, found, choice, options)
    stage("open")
    model = Model(config, threads=options.threads, choice=choice)
    vocabulary = min(tokenizer.size, config.vocab_size)
    try:
        stage("probe")
        capabilities = probe_capabilities(model, vocabulary)
        _require_a_way_on(capabilities)
        model.continuation = capabilities.continuation
        stage("warm up")
        prefill, decode = _measure(model, vocabulary, room.window)
    except LoadFailed:
        raise
    except FimbleError as error:
        raise LoadFailed(
            f"The package {config.folder} loads but does not work: {error.message}",
            next_step=error.next_step,
        ) from error
    # Built while the user waits anyway, not within the first answer.
    index = TokenIndex(
        tokenizer.token_bytes[:vocabulary],
        tokenizer.added_ids | tokenizer.stop_ids | config.eos_ids,
    )
    info = ModelInfo(
        name=config.name,
        window=room.window,
        provider=config.provider if choice.own else choice.name,
        fim=tokenizer.has_fim if found is None else found.fim,
        continuation=model.continuation,
        prefill_tokens_per_s=prefill,
        decode_tokens_per_s=decode,
        healing=index.complete,
        notice=" ".join(filter(None, [choice.notice, room.notice])),
        capabilities=capabilities.to_json(),
    )
    loaded = LoadedModel(config, tokenizer, model, info, index)
    loaded.open_slots(room.slots if capabilities.generators else 1)
    stage("reserve")
    try:
        loaded.reserve()
    except FimbleError as error:
        loaded.close()
        raise LoadFailed(
            f"The package {config.folder} loads, but there is no memory to work with it: "
            f"{error.message}",
            next_step=error.next_step,
        ) from error
    return loaded


def _require_a_way_on(capabilities: Capabilities) -> None:
    if not (capabilities.continuation or capabilities.choose):
        raise GenerationFailed(
            "its provider takes neither more tokens nor a choice among them, so that no answer "
            "can be made.",
            next_step="Update the provider and its driver, or use a package for another one.",
        )


def _measure(model: Model, vocabulary: int, window: int) -> tuple[float, float]:
    """(prefill, decode) in tokens per second, from two slices and a few tokens.

    The best of them counts: the first ones still touch weights that are on disk only, and
    compile what a GPU needs for these shapes, which are those of the work to come.
    """
    provider = model.choice.name
    count = min(slice_tokens(provider, model.continuation) or 64, max(8, window // 2))
    ids: Sequence[int] = [(each * 37 + 11) % min(vocabulary, 200) for each in range(count)]
    prefill, decode = [], []
    for steps in (0, _WARM_UP_TOKENS):
        first, others = _try_out(model, ids, min(window, count + _WARM_UP_TOKENS + 1), steps)
        prefill.append(first)
        decode += others
    return count / max(min(prefill), 1e-9), 1 / max(min(decode, default=1e-9), 1e-9)


def _try_out(
    model: Model, ids: Sequence[int], max_length: int, steps: int
) -> tuple[float, list[float]]:
    """Seconds for a prompt, and for each of ``steps`` tokens after it, in a cache of its own."""
    session = model.session(max_length)
    begun = time.perf_counter()
    session.append(ids)
    logits = session.logits()
    prefill, decode = time.perf_counter() - begun, []
    for _ in range(min(steps, max_length - len(ids))):
        begun = time.perf_counter()
        # Any ordinary token will do; the end of text would end a one-shot session.
        session.append([int(np.argmax(logits[: min(len(logits), 200)]))])
        logits = session.logits()
        decode.append(time.perf_counter() - begun)
        # Some NPU packages give numbers for a prompt, and NaN from the third answer token on.
        require_numbers(logits)
    return prefill, decode
