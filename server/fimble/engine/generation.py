"""One request at work: from a prompt's ids to chunks of text, in small steps.

A generation is a Python generator that yields between prefill slices and between tokens,
so that a scheduler can pause it for as long as it likes, take its slot away, or end it.
Knows nothing of threads, HTTP or other requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from fimble.engine.loaded import LoadedModel
from fimble.engine.metrics import Metrics
from fimble.engine.protocol import (
    CompletionChunk,
    CompletionRequest,
    FinishReason,
    Timings,
    Usage,
)
from fimble.engine.runtime import Logits
from fimble.engine.sampling import Sampler, Sampling
from fimble.engine.slots import Slot
from fimble.engine.stopping import RepetitionGuard, StopMatcher
from fimble.errors import GenerationFailed, RequestRejected

__all__ = ["Generation"]


@dataclass
class _End:
    reason: FinishReason
    detail: str


class Generation:
    """``emit`` gets every chunk; ``may_evict`` says whose slot may be taken.

    The generation survives the loss of its slot and of its model: it holds the ids and
    computes them again when it is stepped the next time.
    """

    def __init__(
        self,
        request: CompletionRequest,
        emit: Callable[[CompletionChunk], None],
        metrics: Metrics,
        may_evict: Callable[[object], bool],
        queued_s: float,
    ) -> None:
        self._request = request
        self._emit = emit
        self._metrics = metrics
        self._may_evict = may_evict
        self._queued_s = queued_s
        self._model: LoadedModel | None = None
        self._slot: Slot | None = None
        self._prompt: list[int] = []
        self._generated: list[int] = []
        # Whether the slot holds prompt and generated tokens up to the one just chosen.
        self._in_step = False
        self._reused = -1
        self._computed = 0
        self._resumed = False
        self._completion_tokens = 0
        self._prefill_s = 0.0
        self._decode_s = 0.0
        self._since = 0.0
        self._index = 0
        self._logprob_sum = 0.0
        #: How the last candidate ended, once it has.
        self.finish_reason: FinishReason = "stop"

    # --- for the scheduler ---------------------------------------------------------------

    def use_model(self, model: LoadedModel) -> None:
        """The model to work with from the next step on; a new object after a reload."""
        if model is not self._model:
            self._model = model
            self._slot = None

    def steps(self) -> Iterator[None]:
        """Does the work. Raises RequestRejected before anything was emitted, or
        GenerationFailed.
        """
        self._since = time.perf_counter()
        try:
            self._prompt = self._encode()
            saved: Logits | None = None
            for index in range(self._request.n):
                saved = yield from self._candidate(index, saved)
        except GenerationFailed:
            # What the cache holds now (NaN, half an append) must not answer anyone else.
            if self._slot is not None:
                self._slot.broken = True
            raise
        finally:
            self._let_go()

    def cancelled(self) -> CompletionChunk:
        """The last chunk of an answer that was ended from outside."""
        return self._last_chunk("", self._index, _End("cancelled", "cancelled"))

    # --- the work ------------------------------------------------------------------------

    def _encode(self) -> list[int]:
        model = self._loaded()
        ids = model.tokenizer.encode_prompt(self._request.prompt)
        if len(ids) >= model.window:
            raise RequestRejected(
                f"The prompt has {len(ids)} tokens; with an answer it does not fit the window "
                f"of {model.window}.",
                next_step="Shorten the prompt, or start the engine with more --context-tokens.",
            )
        return ids

    def _candidate(self, index: int, saved: Logits | None) -> Generator[None, None, Logits | None]:
        """Generates one candidate; returns the logits after the prompt for the next one."""
        request = self._request
        settings = Sampling(request.temperature, request.top_p, request.top_k, request.seed)
        sampler = Sampler(settings, index)
        decoder = self._loaded().tokenizer.decoder()
        matcher = StopMatcher(request.stop)
        guard = RepetitionGuard()
        self._index = index
        self._generated = []
        self._in_step = False
        self._logprob_sum = 0.0
        if saved is None:
            logits = yield from self._seek()
            saved = logits.copy() if request.n > 1 else None
        else:
            logits = saved
        while True:
            token, logprob = sampler.choose(logits, self._vocabulary())
            end = self._end_at(token)
            if end is None:
                self._count(token, logprob)
                text = matcher.push(decoder.push(token))
                end = self._end_after(matcher, guard.push(token))
                if text and end is None:
                    self._emit(CompletionChunk(text, index))
            else:
                text = ""
            if end is not None:
                if not matcher.stopped:
                    # A character cut off by a limit is no character; at a natural end it is
                    # what the model said.
                    rest = decoder.finish() if end.reason == "stop" else ""
                    text += matcher.push(rest) + matcher.finish()
                self.finish_reason = end.reason
                self._emit(self._last_chunk(text, index, end))
                return saved
            yield from self._pause(decoding=True)
            logits = yield from self._advance(token)

    def _advance(self, token: int) -> Generator[None, None, Logits]:
        """The logits after ``token``, the last of the generated ones."""
        if self._in_step and self._holds_slot():
            assert self._slot is not None
            self._slot.push(token)
            return self._slot.session.logits()
        self._resumed = self._resumed or not self._holds_slot()
        return (yield from self._seek())

    def _seek(self) -> Generator[None, None, Logits]:
        """The logits after the prompt and what was generated, in whichever slot."""
        while True:
            slot = self._take_slot()
            ids = self._prompt + self._generated
            first = self._reused < 0
            if first:
                self._reused = slot.reusable(ids)
                self._metrics.reused_tokens += self._reused
            for count in slot.seek(ids, self._loaded().slice_tokens):
                self._metrics.computed_tokens += count
                self._computed += count
                yield from self._pause(decoding=not first)
                if not self._holds_slot():
                    self._resumed = True
                    break
            else:
                self._in_step = True
                return slot.session.logits()

    def _take_slot(self) -> Slot:
        if self._holds_slot():
            assert self._slot is not None
            return self._slot
        pool = self._loaded().pool
        assert pool is not None
        ids = self._prompt + self._generated
        slot = pool.take(ids, self._request.document, self, self._may_evict)
        # The scheduler steps the most urgent request only, and that one may take from any
        # other that holds a slot.
        assert slot is not None, "no slot for the most urgent request"
        self._slot = slot
        return slot

    def _holds_slot(self) -> bool:
        return self._slot is not None and self._slot.holder is self

    def _let_go(self) -> None:
        slot, self._slot = self._slot, None
        if slot is not None and self._model is not None and self._model.pool is not None:
            self._model.pool.release(slot, self)

    # --- when it ends --------------------------------------------------------------------

    def _end_at(self, token: int) -> _End | None:
        """Why the answer ends before ``token``, which is then no part of it."""
        if token in self._loaded().stop_ids:
            return _End("stop", "control_token")
        if self._request.max_tokens <= 0:
            return _End("length", "max_tokens")
        return None

    def _end_after(self, matcher: StopMatcher, circle: int) -> _End | None:
        """Why the answer ends with the token just counted."""
        if matcher.stopped:
            return _End("stop", "stop_string")
        if len(self._generated) >= self._request.max_tokens:
            return _End("length", "max_tokens")
        if len(self._prompt) + len(self._generated) >= self._loaded().window:
            return _End("length", "window")
        if circle:
            return _End("stop", "repetition")
        return None

    def _count(self, token: int, logprob: float) -> None:
        self._generated.append(token)
        self._completion_tokens += 1
        self._logprob_sum += logprob
        self._metrics.generated_tokens += 1

    def _last_chunk(self, text: str, index: int, end: _End) -> CompletionChunk:
        self._lap(decoding=True)
        reused = max(0, self._reused)
        extra: dict[str, Any] = {"stop_reason": end.detail}
        if self._generated:
            extra["mean_logprob"] = round(self._logprob_sum / len(self._generated), 4)
        if self._resumed:
            # A more urgent request took the slot in between.
            again = self._computed - (len(self._prompt) - reused)
            extra["recomputed_tokens"] = max(0, again)
        return CompletionChunk(
            text=text,
            index=index,
            finish_reason=end.reason,
            usage=Usage(
                prompt_tokens=len(self._prompt),
                reused_tokens=reused,
                computed_tokens=len(self._prompt) - reused,
                completion_tokens=self._completion_tokens,
            ),
            timings=Timings(
                queued_ms=round(self._queued_s * 1000, 2),
                prefill_ms=round(self._prefill_s * 1000, 2),
                decode_ms=round(self._decode_s * 1000, 2),
            ),
            model="" if self._model is None else self._model.info.name,
            provider="" if self._model is None else self._model.info.provider,
            extra=extra,
        )

    # --- small things --------------------------------------------------------------------

    def _loaded(self) -> LoadedModel:
        assert self._model is not None, "use_model comes before the first step"
        return self._model

    def _vocabulary(self) -> int:
        return self._loaded().tokenizer.size

    def _pause(self, *, decoding: bool) -> Iterator[None]:
        """Lets others work; their time is not ours."""
        self._lap(decoding=decoding)
        yield
        self._since = time.perf_counter()

    def _lap(self, *, decoding: bool) -> None:
        now = time.perf_counter()
        if decoding:
            self._decode_s += now - self._since
        else:
            self._prefill_s += now - self._since
        self._since = now
