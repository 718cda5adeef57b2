"""One answer as it grows, token by token: what is chosen, what may be shown, when it ends.

Knows nothing of slots, scheduling or how logits come about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fimble.engine.healing import Healing, TakenBack
from fimble.engine.loaded import LoadedModel
from fimble.engine.protocol import CompletionRequest, FinishReason, TokenLogprob
from fimble.engine.runtime import Logits
from fimble.engine.sampling import Sampler, Sampling, top_logprobs
from fimble.engine.stopping import RepetitionGuard, StopMatcher

__all__ = ["Candidate", "End"]


@dataclass(frozen=True, slots=True)
class End:
    """Why an answer ended: OpenAI's word for it, and ours."""

    reason: FinishReason
    detail: str


class Candidate:
    """``taken`` is the end of the typed text, which must come first and is no part of the
    answer.

    ``tokens`` are all that were generated; ``room`` is how many fit the window. ``prompt`` is
    what repetition is punished in, too. ``end`` is set by the last ``push``.
    """

    def __init__(
        self,
        request: CompletionRequest,
        index: int,
        model: LoadedModel,
        taken: TakenBack,
        room: int,
        prompt: Sequence[int] = (),
    ) -> None:
        self.index = index
        self.tokens: list[int] = []
        #: How many of them were inside the typed text.
        self.healed = 0
        self.end: End | None = None
        self._request = request
        self._model = model
        self._room = room
        self._sampler = Sampler(_sampling(request, model.config.sampling), index, prompt)
        self._healing = Healing(model.index, taken)
        self._decoder = model.tokenizer.decoder()
        self._matcher = StopMatcher(request.stop)
        self._guard = RepetitionGuard()
        self._logprob_sum = 0.0
        self._decoded = 0
        self._shown = 0
        self._pending: list[TokenLogprob] = []

    @property
    def mean_logprob(self) -> float | None:
        """Of the answer's tokens, which are those that reach beyond the typed text.

        The first of them was one of those that the typed text allowed, and has its
        probability among those. None before there is one.
        """
        count = len(self.tokens) - self.healed
        return self._logprob_sum / count if count else None

    @property
    def last(self) -> bytes:
        """The bytes of the last token; empty before there is one."""
        return self._model.tokenizer.token_bytes[self.tokens[-1]] if self.tokens else b""

    def push(self, logits: Logits) -> str:
        """Chooses the next token; returns the text that may be shown now. Sets ``end`` where
        the answer ends before it or with it. Raises ModelMisbehaved for NaN.
        """
        model, allowed = self._model, self._healing.allowed()
        size = model.tokenizer.size
        token, logprob = self._sampler.choose(logits, size, allowed)
        self.end = self._end_at(token)
        if self.end is not None:
            return self._finish("")
        self.tokens.append(token)
        data = model.tokenizer.token_bytes[token]
        if allowed is not None:
            data = self._healing.push(token, data)
            if not data:
                self.healed += 1
                self.end = self._end_of_window()
                return ""
        if self._request.logprobs is not None:
            top = top_logprobs(logits, size, self._request.logprobs, allowed)
            self._note(token, logprob, top)
        self._logprob_sum += logprob
        text = self._decoder.push_bytes(data)
        self._decoded += len(text)
        shown = self._matcher.push(text)
        self.end = self._end_after(self._guard.push(token))
        if self.end is not None:
            return self._finish(shown)
        self._shown += len(shown)
        return shown

    def logprobs(self) -> tuple[TokenLogprob, ...]:
        """Those of the tokens whose text has been shown since the last call."""
        # What a stop string cut off was never shown, nor are its tokens.
        count = sum(each.offset < self._shown for each in self._pending)
        ready, self._pending = self._pending[:count], self._pending[count:]
        return tuple(ready)

    def _finish(self, shown: str) -> str:
        """The answer's last text."""
        assert self.end is not None
        if not self._matcher.stopped:
            # A character cut off by a limit is no character; at a natural end it is what
            # the model said.
            rest = self._decoder.finish() if self.end.reason == "stop" else ""
            shown += self._matcher.push(rest) + self._matcher.finish()
        self._shown += len(shown)
        return shown

    def _end_at(self, token: int) -> End | None:
        """Why the answer ends before ``token``, which is then no part of it."""
        if token in self._model.stop_ids:
            return End("stop", "control_token")
        if self._request.max_tokens <= 0:
            return End("length", "max_tokens")
        return None

    def _end_after(self, circle: int) -> End | None:
        """Why the answer ends with the token just taken."""
        if self._matcher.stopped:
            return End("stop", "stop_string")
        if len(self.tokens) - self.healed >= self._request.max_tokens:
            return End("length", "max_tokens")
        if circle:
            return self._end_of_window() or End("stop", "repetition")
        return self._end_of_window()

    def _end_of_window(self) -> End | None:
        return End("length", "window") if len(self.tokens) >= self._room else None

    def _note(self, token: int, logprob: float, top: list[tuple[int, float]]) -> None:
        spell = self._spelling
        named = tuple((spell(each), value) for each, value in top)
        self._pending.append(TokenLogprob(spell(token), logprob, named, self._decoded))

    def _spelling(self, token: int) -> str:
        data = self._model.tokenizer.token_bytes[token]
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)


def _sampling(request: CompletionRequest, package: Sampling) -> Sampling:
    """What the request says, and what the package says where it leaves something open."""
    return Sampling(
        package.temperature if request.temperature is None else request.temperature,
        package.top_p if request.top_p is None else request.top_p,
        package.top_k if request.top_k is None else request.top_k,
        request.seed,
        package.repetition_penalty
        if request.repetition_penalty is None
        else request.repetition_penalty,
    )
