"""Suggestions as the server makes them, with the prompt laid out in one of three ways.

- ``plain``: prefix up to the cursor, suffix, middle
- ``anchored``: prefix up to the line's start, suffix, middle, then the line up to the cursor
- ``healed``: the same, with the end of the typed text generated again

The engine is asked through ``assist``'s own service. What differs is only what the service is
told of the engine, and whether the engine is told to heal.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fimble.assist.completion import CompletionService, Suggestion
from fimble.assist.layout import LAYOUT_TOKENS
from fimble.assist.prompt import Assemble
from fimble.assist.settings import CompletionSettings
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.errors import ModelError
from fimble_context.syntax import Document

__all__ = ["LAYOUTS", "Answered", "Layout", "suggest"]

Layout = Literal["plain", "anchored", "healed"]
LAYOUTS: tuple[Layout, ...] = ("plain", "anchored", "healed")


@dataclass(frozen=True, slots=True)
class Answered:
    """A suggestion, and how it came.

    ``steps`` are the number of tokens (typed text not counted) and their mean log-probability,
    chunk by chunk, up to the end of the first line; ``logprobs`` those of the tokens.
    """

    suggestion: Suggestion
    steps: tuple[tuple[int, float], ...]
    logprobs: tuple[float, ...]
    prompt_tokens: int


async def suggest(
    engine: Engine, layout: Layout, document: Document, offset: int, assemble: Assemble,
    *, budget: int, max_tokens: int,
) -> Answered:  # fmt: skip
    """What would be shown at ``offset``, from a prompt of at most ``budget`` tokens.

    Raises ModelError where the engine cannot do what the layout needs.
    """
    laid_out = _LaidOut(engine, layout)
    line = document.line_start(document.line_of(offset))
    typed = document.text[line:offset] if layout != "plain" else ""
    (behind,) = await engine.count_tokens([typed]) if typed else (0,)
    settings = CompletionSettings(
        max_prompt_tokens=budget - LAYOUT_TOKENS - behind,
        max_tokens=max_tokens,
        min_confidence=0.0,
    )
    service = CompletionService(laid_out, assemble)
    try:
        # Two runs beside each other must not replace each other's requests at the engine.
        name = f"bench {os.getpid()} {layout}"
        suggestion = await service.complete(document, offset, settings, name=name)
    finally:
        service.end_all()
    return Answered(
        suggestion, tuple(laid_out.steps), tuple(laid_out.logprobs), laid_out.prompt_tokens
    )


class _LaidOut(Engine):
    """The engine as the service is to see it for one layout; notes how one answer came."""

    def __init__(self, engine: Engine, layout: Layout) -> None:
        self.steps: list[tuple[int, float]] = []
        self.logprobs: list[float] = []
        self.prompt_tokens = 0
        self._engine = engine
        self._layout = layout

    async def model_info(self) -> ModelInfo:
        info = await self._engine.model_info()
        if self._layout != "plain":
            _require(info, self._layout)
        # Without speeds the budget is what it is said to be.
        anchors = self._layout != "plain"
        return replace(
            info,
            continuation=anchors,
            healing=anchors,
            prefill_tokens_per_s=0.0,
            decode_tokens_per_s=0.0,
        )

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        heal = request.heal and self._layout == "healed"
        chunks = self._engine.complete(replace(request, heal=heal, logprobs=0))
        text = ""
        try:
            async for chunk in chunks:
                if "\n" not in text.lstrip():
                    self._note(chunk)
                text += chunk.text
                yield chunk
        finally:
            await chunks.aclose()

    def _note(self, chunk: CompletionChunk) -> None:
        mean = chunk.extra.get("mean_logprob")
        if chunk.usage is not None:
            self.prompt_tokens = chunk.usage.prompt_tokens
            if isinstance(mean, int | float):
                tokens = chunk.usage.completion_tokens - chunk.extra.get("healing_tokens", 0)
                self.steps.append((tokens, float(mean)))
        self.logprobs += [round(token.logprob, 3) for token in chunk.logprobs]

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._engine.count_tokens(texts)

    async def aclose(self) -> None:
        """The engine is not ours to close."""


def _require(info: ModelInfo, layout: Layout) -> None:
    if not info.continuation or (layout == "healed" and not info.healing):
        raise ModelError(
            f"The model {info.name} cannot go on from a prompt it holds, so that there are no "
            f"{layout} prompts for it.",
            next_step="Leave them out: --modes plain.",
        )
