"""This machine's engine in place of another one, while that one does not answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from fimble.engine.base import Engine, ModelInfo
from fimble.engine.client import EngineEvent
from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.errors import EngineUnavailable

__all__ = ["FallBackEngine"]


class FallBackEngine(Engine):
    """Asks ``first``, and ``second`` where that cannot be reached; says so each time it changes.

    A request that has begun to be answered stays where it is: two models' words are not mixed.
    What the first one refuses (a prompt that is too long) is no reason to ask the second.
    """

    def __init__(
        self, first: Engine, second: Engine, on_event: Callable[[EngineEvent], None]
    ) -> None:
        self._first, self._second = first, second
        self._on_event = on_event
        self._away = False

    async def model_info(self) -> ModelInfo:
        try:
            info = await self._first.model_info()
        except EngineUnavailable as error:
            self._leave(error)
            return await self._second.model_info()
        self._return()
        return info

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        begun = False
        chunks = self._first.complete(request)
        try:
            async for chunk in chunks:
                begun = True
                yield chunk
            self._return()
            return
        except EngineUnavailable as error:
            if begun:
                raise
            self._leave(error)
        finally:
            await chunks.aclose()
        rest = self._second.complete(request)
        try:
            async for chunk in rest:
                yield chunk
        finally:
            await rest.aclose()

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return await self._first.count_tokens(texts)

    async def aclose(self) -> None:
        await self._first.aclose()
        await self._second.aclose()

    def _leave(self, error: EngineUnavailable) -> None:
        if not self._away:
            self._away = True
            self._on_event(
                EngineEvent("notice", f"{error.message} This machine's engine answers meanwhile.")
            )

    def _return(self) -> None:
        if self._away:
            self._away = False
            self._on_event(EngineEvent("notice", "The chosen engine answers again."))
