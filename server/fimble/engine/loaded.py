"""A package that is ready to answer: its tokenizer, its opened model, its slots.

Loading probes what the runtime can do with it, measures how fast it is, and finds a window
for which there is memory. Knows nothing of requests.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fimble.engine.base import ModelInfo
from fimble.engine.healing import TokenIndex
from fimble.engine.load_errors import OutOfMemory
from fimble.engine.memory_advice import advice_for
from fimble.engine.package import PackageConfig
from fimble.engine.runtime import Logits, Model, Session
from fimble.engine.slots import Slot, SlotPool
from fimble.engine.symptoms import Symptoms
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import FimbleError, GenerationFailed, LoadFailed, ModelMisbehaved
from fimble.models.memory_plan import lower_steps

__all__ = ["LoadedModel", "load_model", "probe_continuation"]

_log = logging.getLogger(__name__)

#: Prefill slices bound how long one call holds the interpreter. Small ones cost nothing on
#: a processor; a GPU needs larger ones to be kept busy.
_SLICE_CPU = 32
_SLICE_GPU = 256
_WARM_UP_TOKENS = 4


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
        self.slice_tokens = slice_tokens(config, info.continuation)
        self.stop_ids = tokenizer.stop_ids | config.eos_ids
        self.symptoms = Symptoms()
        self.pool: SlotPool | None = None
        self._model: Model | None = model
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
        self.info = replace(self.info, window=window, notice=notice)


def slice_tokens(config: PackageConfig, continuation: bool) -> int:
    """Prompt tokens a step; 0 for all at once."""
    if not continuation:
        return 0
    return _SLICE_CPU if config.provider.upper().startswith("CPU") else _SLICE_GPU


def load_model(
    config: PackageConfig,
    tokenizer: PackageTokenizer,
    *,
    context_tokens: int,
    threads: int,
    slots: int,
) -> LoadedModel:
    """Opens the package, probes it and measures it. Raises LoadFailed or RuntimeMissing."""
    model = Model(config, threads=threads)
    window = min(config.context_length, context_tokens)
    vocabulary = min(tokenizer.size, config.vocab_size)
    try:
        model.continuation = probe_continuation(model, vocabulary)
        prefill, decode = _measure(model, config, vocabulary, window)
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
        window=window,
        provider=config.provider,
        fim=tokenizer.has_fim,
        continuation=model.continuation,
        prefill_tokens_per_s=prefill,
        decode_tokens_per_s=decode,
        healing=index.complete,
    )
    loaded = LoadedModel(config, tokenizer, model, info, index)
    loaded.open_slots(slots)
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


def probe_continuation(model: Model, vocabulary: int) -> bool:
    """Whether appending to a cache, and rewinding it, gives what one prefill would give.

    Some providers throw on the second append, others might answer wrongly; both are "no".
    """
    ids = [(each * 37 + 11) % min(vocabulary, 200) for each in range(8)]
    fresh = model.session(32)
    fresh.append(ids)
    expected = fresh.logits().copy()
    _require_numbers(expected[:vocabulary])
    try:
        model.continuation = True
        session = model.session(32)
        session.append(ids[:6])
        session.append([ids[0], ids[1]])
        session.rewind(5)
        session.append(ids[5:7])
        session.append(ids[7:])
        found = session.logits().copy()
    except GenerationFailed:
        return False
    finally:
        model.continuation = False
    return _agree(expected[:vocabulary], found[:vocabulary])


def _require_numbers(logits: Logits) -> None:
    if not np.isfinite(logits).all():
        raise ModelMisbehaved(
            "it produces NaN instead of probabilities.",
            next_step="Try another package for this provider, or update its driver.",
        )


def _agree(expected: Logits, found: Logits) -> bool:
    """The same prediction up to what slicing a prefill changes in quantised arithmetic."""
    if not np.isfinite(found).all():
        return False
    spread = float(expected.max() - expected.mean()) or 1.0
    near_top = float(expected.max() - expected[int(found.argmax())]) <= 0.1 * spread
    return near_top and float(np.corrcoef(expected, found)[0, 1]) > 0.98


def _measure(
    model: Model, config: PackageConfig, vocabulary: int, window: int
) -> tuple[float, float]:
    """(prefill, decode) in tokens per second, from two slices and a few tokens.

    The best of them counts: the first ones still touch weights that are on disk only.
    """
    count = min(slice_tokens(config, model.continuation) or 64, max(8, window // 2))
    ids: Sequence[int] = [(each * 37 + 11) % min(vocabulary, 200) for each in range(count)]
    prefill, decode = [], []
    for _ in range(2):
        session = model.session(min(window, count + _WARM_UP_TOKENS + 1))
        begun = time.perf_counter()
        session.append(ids)
        logits = session.logits()
        prefill.append(time.perf_counter() - begun)
    for _ in range(min(_WARM_UP_TOKENS, session.max_length - count)):
        begun = time.perf_counter()
        # Any ordinary token will do; the end of text would end a one-shot session.
        session.append([int(np.argmax(logits[: min(vocabulary, 200)]))])
        logits = session.logits()
        decode.append(time.perf_counter() - begun)
        # Some NPU packages give numbers for a prompt, and NaN from the third answer token on.
        _require_numbers(logits[:vocabulary])
    return count / max(min(prefill), 1e-9), 1 / max(min(decode), 1e-9)
