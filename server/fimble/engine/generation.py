"""One request at work: from a prompt's ids to chunks of text, in small steps.

A generation is a Python generator that yields between prefill slices and between tokens,
so that a scheduler can pause it for as long as it likes, take its slot away, or end it.
Knows nothing of threads, HTTP or other requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from fimble.engine.candidate import Candidate, End
from fimble.engine.healing import TakenBack, take_back, typed_text
from fimble.engine.loaded import LoadedModel
from fimble.engine.metrics import Metrics
from fimble.engine.protocol import (
    CompletionChunk,
    CompletionRequest,
    FinishReason,
    Prompt,
    Text,
    Timings,
    Usage,
)
from fimble.engine.runtime import Logits
from fimble.engine.slots import Slot
from fimble.errors import GenerationFailed, RequestRejected

__all__ = ["Generation"]

#: Characters a token, at most, of a prompt that is cut into tokens at all. Code has three or four.
_MOST_CHARACTERS = 32


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
        # The typed tokens that are generated again.
        self._taken = TakenBack()
        # Whether the slot holds prompt and generated tokens up to the one just chosen.
        self._in_step = False
        self._reused = -1
        self._computed = 0
        self._resumed = False
        self._candidate: Candidate | None = None
        self._judged: Candidate | None = None
        # Of the candidates before this one.
        self._completion_tokens = 0
        self._prefill_s = 0.0
        self._decode_s = 0.0
        self._since = 0.0
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
        GenerationFailed (ModelMisbehaved for NaN and for nothing but one token).
        """
        self._since = time.perf_counter()
        try:
            self._prompt = self._encode()
            saved: Logits | None = None
            for index in range(self._request.n):
                saved = yield from self._answer(index, saved)
        except GenerationFailed:
            # What the cache holds now (NaN, half an append) must not answer anyone else.
            if self._slot is not None:
                self._slot.broken = True
            raise
        finally:
            self._note_symptoms()
            self._let_go()

    def cancelled(self) -> CompletionChunk:
        """The last chunk of an answer that was ended from outside."""
        return self._chunk("", End("cancelled", "cancelled"))

    # --- the work ------------------------------------------------------------------------

    def _encode(self) -> list[int]:
        model = self._loaded()
        characters = _characters(self._request.prompt)
        if characters > model.window * _MOST_CHARACTERS:
            # Cutting it into tokens could take a minute, in which nobody else is answered.
            raise RequestRejected(
                f"The prompt has {characters} characters, which does not fit the window of "
                f"{model.window} tokens.",
                next_step="Shorten the prompt.",
            )
        ids = model.tokenizer.encode_prompt(self._request.prompt)
        if len(ids) >= model.window:
            raise RequestRejected(
                f"The prompt has {len(ids)} tokens; with an answer it does not fit the window "
                f"of {model.window}.",
                next_step="Shorten the prompt, or start the engine with more --context-tokens.",
            )
        return self._take_back(ids) if self._request.heal else ids

    def _take_back(self, ids: list[int]) -> list[int]:
        """The prompt without the typed tokens that are generated again."""
        model = self._loaded()
        typed = model.tokenizer.encode_text(typed_text(self._request.prompt))
        if not (model.info.healing and typed):
            return ids
        self._taken = take_back(model.index, model.tokenizer, typed)
        # A prompt that is typed text alone may be taken back whole.
        return ids[: len(ids) - self._taken.count] or model.tokenizer.encode_prompt("")

    def _answer(self, index: int, saved: Logits | None) -> Generator[None, None, Logits | None]:
        """Generates one candidate; returns the logits after the prompt for the next one."""
        model, request = self._loaded(), self._request
        if self._candidate is not None:
            self._completion_tokens += len(self._candidate.tokens)
            self._note_symptoms()
        room = model.window - len(self._prompt)
        candidate = Candidate(request, index, model, self._taken, room, self._prompt)
        self._candidate = candidate
        self._in_step = False
        if saved is None:
            logits = yield from self._seek()
            saved = logits.copy() if request.n > 1 else None
        else:
            logits = saved
        while True:
            before = len(candidate.tokens)
            text = candidate.push(logits)
            self._metrics.generated_tokens += len(candidate.tokens) - before
            model.symptoms.check(candidate.tokens, candidate.last)
            if candidate.end is not None:
                self.finish_reason = candidate.end.reason
                self._lap(decoding=True)
                self._emit(self._chunk(text, candidate.end))
                return saved
            if text:
                self._emit(self._chunk(text))
            yield from self._pause(decoding=True)
            logits = yield from self._advance(candidate.tokens[-1])

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
            ids = self._prompt + self._generated()
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
        ids = self._prompt + self._generated()
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

    # --- what is said of it --------------------------------------------------------------

    def _chunk(self, text: str, end: End | None = None) -> CompletionChunk:
        """A piece of the answer with all that is known so far; the last one with ``end``."""
        candidate, model = self._candidate, self._model
        reused = max(0, self._reused)
        info = None if model is None else model.info
        return CompletionChunk(
            text=text,
            index=0 if candidate is None else candidate.index,
            finish_reason=None if end is None else end.reason,
            usage=Usage(
                prompt_tokens=len(self._prompt),
                reused_tokens=reused,
                computed_tokens=len(self._prompt) - reused,
                completion_tokens=self._completion_tokens + len(self._generated()),
            ),
            timings=Timings(
                queued_ms=round(self._queued_s * 1000, 2),
                prefill_ms=round(self._prefill_s * 1000, 2),
                decode_ms=round(self._decode_s * 1000, 2),
            ),
            model="" if info is None else info.name,
            provider="" if info is None else info.provider,
            extra=self._extra(end, reused),
            logprobs=() if candidate is None else candidate.logprobs(),
        )

    def _extra(self, end: End | None, reused: int) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        if end is not None:
            extra["stop_reason"] = end.detail
        if self._candidate is not None:
            mean = self._candidate.mean_logprob
            if mean is not None:
                extra["mean_logprob"] = round(mean, 4)
            if self._candidate.healed:
                extra["healing_tokens"] = self._candidate.healed
        if self._resumed:
            # A more urgent request took the slot in between.
            again = self._computed - (len(self._prompt) - reused)
            extra["recomputed_tokens"] = max(0, again)
        if self._model is not None and self._model.info.notice:
            # A client that saw the model loaded once does not see it loaded again.
            extra["notice"] = self._model.info.notice
        return extra

    # --- small things --------------------------------------------------------------------

    def _loaded(self) -> LoadedModel:
        assert self._model is not None, "use_model comes before the first step"
        return self._model

    def _generated(self) -> list[int]:
        return [] if self._candidate is None else self._candidate.tokens

    def _note_symptoms(self) -> None:
        """What the last candidate says of the model's health."""
        candidate = self._candidate
        if candidate is None or candidate is self._judged or self._model is None:
            return
        self._judged = candidate
        self._model.symptoms.ended(candidate.tokens, candidate.last)

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


def _characters(prompt: Prompt) -> int:
    """How long the texts of a prompt are together."""
    if isinstance(prompt, str):
        return len(prompt)
    return sum(len(part.text) for part in prompt if isinstance(part, Text))
