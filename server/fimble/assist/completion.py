"""A completion from start to end: context, prompt, answer, trimmed text.

Given a document, an offset and settings; asks one engine. Where completions are not wanted
at all is ``policy``'s affair, and who may replace whom is the caller's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fimble.assist.layout import LAYOUT_TOKENS, completion_prompt
from fimble.assist.place import Place, place_of
from fimble.assist.settings import CompletionSettings
from fimble.assist.stops import Stops
from fimble.assist.tokens import TokenCounts
from fimble.assist.trim import trim
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.protocol import (
    CompletionChunk,
    CompletionRequest,
    FinishReason,
    Timings,
    Usage,
)
from fimble.errors import ModelError
from fimble_context.assemble import Context, assemble
from fimble_context.document import Document

__all__ = ["CompletionService", "Suggestion"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``text`` replaces the code points ``start`` to ``end`` (exclusive); it may be empty.

    ``context`` is what the prompt was made of.
    """

    text: str
    start: int
    end: int
    usage: Usage
    timings: Timings
    model: str
    provider: str
    finish: FinishReason
    context: Context


class CompletionService:
    """Completions from one engine. Keeps token counts between requests, nothing else."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._counts: dict[str, TokenCounts] = {}

    async def complete(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str = ""
    ) -> Suggestion:
        """The suggestion for ``offset`` (code points) in ``document``.

        ``name`` tells documents apart: a newer request of the same one replaces an older
        one at the engine. Cancelling the task cancels the work at the engine. Raises
        ``ModelError`` for a model that cannot complete, and ``EngineError``.
        """
        info = await self._engine.model_info()
        _require_fim(info)
        max_tokens = min(settings.max_tokens, max(1, info.window // 2))
        room = max(0, info.window - max_tokens - LAYOUT_TOKENS)
        budget = min(settings.max_prompt_tokens, room)
        context = await self._context(document, offset, budget, room, info.name)
        place = place_of(document, offset, settings.multiline)
        request = CompletionRequest(
            completion_prompt(context),
            max_tokens=max_tokens,
            stop=("\n",) if place.one_line else (),
            document=name,
        )
        answer = await _collect(self._engine.complete(request), place)
        # Where a newer request took its place, what there is of an answer is a fragment.
        text = (
            ""
            if answer.finish == "cancelled"
            else trim(answer.text, place, complete=answer.finish != "length")
        )
        return Suggestion(
            text=text,
            start=offset,
            end=offset,
            usage=answer.usage,
            timings=answer.timings,
            model=answer.model or info.name,
            provider=answer.provider or info.provider,
            finish=answer.finish,
            context=context,
        )

    async def _context(
        self, document: Document, offset: int, budget: int, room: int, model: str
    ) -> Context:
        """The context within ``budget`` tokens. Counts are exact where it matters.

        Estimates will do while they are a small part and no error of theirs can burst the
        ``room`` in the window; otherwise the engine counts, once, and the context is put
        together again.
        """
        counts = self._counts.setdefault(model, TokenCounts())
        counts.begin()
        context = assemble(document, offset, budget=budget, count_tokens=counts.with_estimates)
        used = sum(section.tokens for section in context.sections)
        negligible = counts.estimated_tokens * 16 <= budget
        if negligible and used + counts.largest_error <= room:
            return context
        await counts.learn(self._engine)
        return assemble(document, offset, budget=budget, count_tokens=counts.at_most)


def _require_fim(info: ModelInfo) -> None:
    if not info.fim:
        raise ModelError(
            f"The model {info.name} does not know fill-in-the-middle: it can chat, "
            "but not complete code.",
            next_step="Use a Qwen2.5-Coder package, such as qwen2.5-coder-0.5b.",
        )


@dataclass(slots=True)
class _Answer:
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    model: str = ""
    provider: str = ""
    finish: FinishReason = "stop"


async def _collect(chunks: AsyncIterator[CompletionChunk], place: Place) -> _Answer:
    """The answer up to where it is of use; the engine is stopped there."""
    answer = _Answer()
    stops = Stops(place)
    try:
        async for chunk in chunks:
            answer.text += chunk.text
            answer.usage = chunk.usage or answer.usage
            answer.timings = chunk.timings or answer.timings
            answer.model = chunk.model or answer.model
            answer.provider = chunk.provider or answer.provider
            answer.finish = chunk.finish_reason or answer.finish
            if not place.one_line and stops.end(answer.text) is not None:
                break
    finally:
        aclose = getattr(chunks, "aclose", None)
        if aclose is not None:
            await aclose()
    return answer
