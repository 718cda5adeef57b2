"""An answer of the engine while it is made: it grows, is waited for, and may outlive its asker.

Whoever asked may be content with the first line and go; the rest goes on being made, and is
there when that line has been accepted. Knows no documents.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from math import exp
from typing import Literal

from fimble.assist.manner import Manner
from fimble.assist.prompt import Prompt
from fimble.assist.stops import Stops
from fimble.engine.protocol import CompletionChunk, FinishReason, Timings, Usage

__all__ = ["TOKENS_TO_JUDGE", "Answer", "ModelCall"]

#: Tokens of an answer before a low confidence says something.
TOKENS_TO_JUDGE = 3


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One request to the engine that has ended, in whatever way, and what it is known to have
    cost. One that was stopped before the first piece of its answer came has no ``usage``.
    """

    model: str
    language: str | None
    usage: Usage


class Answer:
    """Grows from its creation on until it ended by itself, was ended, or failed.

    ``text`` is what has come so far, in the document's manner, up to the end that ``stops``
    found. ``finish`` is None while it grows. ``confidence`` is the mean probability of a token,
    0 to 1. Below ``least_confidence`` it ends (``doubtful``): with the whole lines that it was
    sure of, which may have been shown, and with nothing where there are none.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[CompletionChunk, None],
        stops: Stops,
        manner: Manner,
        prompt: Prompt,
        *,
        model: str,
        provider: str,
        least_confidence: float = 0.0,
        in_time: bool = True,
        on_end: Callable[[Answer], None] = lambda answer: None,
    ) -> None:
        self.text = ""
        self.usage = Usage()
        self.timings = Timings()
        self.prompt = prompt
        self.model = model
        self.provider = provider
        self.confidence: float | None = None
        self.finish: FinishReason | None = None
        self.error: BaseException | None = None
        #: Whether low confidence ended it: there would have been more.
        self.doubtful = False
        #: Whether its model makes a whole block within the latency that the user wants.
        self.in_time = in_time
        #: Whether it goes on when nobody waits for it.
        self.detached = False
        #: Whether it was made before anybody asked, and nobody has had it since.
        self.ahead = False
        self._waiting = 0
        self._on_end = on_end
        self._state: Literal["new", "asked", "over"] = "new"
        self._least_confidence = least_confidence
        self._tokens = 0
        self._sure: tuple[str, float | None] | None = None
        self._raw = ""
        # Both hold the document as it was: let go when the answer has ended.
        self._shaping: tuple[Manner, Stops] | None = (manner, stops)
        self._grown = asyncio.Event()
        self._task = asyncio.create_task(self._run(chunks))

    @property
    def whole(self) -> bool:
        """Whether it ended where it should: by itself, or where syntax ends it."""
        return self.finish == "stop"

    @property
    def usable(self) -> bool:
        """Whether it may be remembered: it grows, or has come to some end that is its own."""
        return self.error is None and self.finish != "cancelled"

    async def wait(self, enough: Callable[[], bool]) -> None:
        """Returns when ``enough()`` or when no more will come; raises what it failed with."""
        self._waiting += 1
        try:
            while self.finish is None and self.error is None and not enough():
                await self._grown.wait()
        finally:
            self._waiting -= 1
        if self.error is not None:
            raise self.error

    async def ended(self) -> None:
        """Returns when no more will come, for whatever reason."""
        await asyncio.wait({self._task})

    def cancel(self) -> None:
        """Ends it, at the engine too."""
        if self.finish is None:
            self.finish = "cancelled"
        self._task.cancel()
        self._call_is_over()

    def abandon(self, grace: float) -> None:
        """Whoever waited has gone: ends it, unless somebody wants it within ``grace`` seconds."""
        if grace > 0:
            asyncio.get_running_loop().call_later(grace, self.abandon, 0.0)
        elif not self.detached and self._waiting == 0:
            self.cancel()

    async def _run(self, chunks: AsyncGenerator[CompletionChunk, None]) -> None:
        self._state = "asked"
        try:
            async for chunk in chunks:
                if self._take(chunk):
                    break
            if self.finish is None:
                self._shape(complete=True)
            self._end("stop")
        except asyncio.CancelledError:
            self._end("cancelled")
            raise
        except Exception as error:  # noqa: BLE001
            # Whoever waits gets it; nobody else need know.
            self.error = error
            self._tell()
        finally:
            self._call_is_over()
            self._shaping, self._raw = None, ""
            await chunks.aclose()

    def _call_is_over(self) -> None:
        """Tells once that the engine was asked, and will not be heard of any more."""
        if self._state == "asked":
            self._state = "over"
            self._on_end(self)

    def _take(self, chunk: CompletionChunk) -> bool:
        """Adds a piece; whether that was enough."""
        self._raw += chunk.text
        self.usage = chunk.usage or self.usage
        self.timings = chunk.timings or self.timings
        self.model = chunk.model or self.model
        self.provider = chunk.provider or self.provider
        logprob = chunk.extra.get("mean_logprob")
        if isinstance(logprob, int | float):
            self.confidence = exp(min(0.0, float(logprob)))
        # Tokens inside the typed text are no part of the answer.
        self._tokens = self.usage.completion_tokens - chunk.extra.get("healing_tokens", 0)
        ended = self._shape(complete=chunk.finish_reason is not None)
        if self._is_poor():
            self._keep_what_is_sure()
            self._end("stop")
            return True
        self._note_what_is_sure()
        if ended:
            self._end("stop")
            return True
        if chunk.finish_reason is not None:
            self._end(chunk.finish_reason)
        self._tell()
        return False

    def _shape(self, *, complete: bool) -> bool:
        """Makes the text of what has come; whether syntax ends it."""
        assert self._shaping is not None  # it grows
        manner, stops = self._shaping
        self.text = manner.of(self._raw, complete=complete)
        end = stops.end(self.text)
        if end is not None:
            self.text = self.text[:end]
        return end is not None

    def _is_poor(self) -> bool:
        enough = self._tokens >= TOKENS_TO_JUDGE
        return enough and self.confidence is not None and self.confidence < self._least_confidence

    def _note_what_is_sure(self) -> None:
        """Its whole lines have come with enough confidence."""
        end = self.text.rfind("\n")
        if end > 0 and self.text[:end].strip() and self._tokens >= TOKENS_TO_JUDGE:
            self._sure = (self.text[:end], self.confidence)

    def _keep_what_is_sure(self) -> None:
        # Without its beginning, what is left would be found wherever that is typed.
        self.text, self.confidence = self._sure or ("", self.confidence)
        self.doubtful = True

    def _end(self, reason: FinishReason) -> None:
        if self.finish is None:
            self.finish = reason
        self._tell()

    def _tell(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()
