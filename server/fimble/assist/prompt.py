"""The prompt of a completion: a context within the budget, laid out, anchored where that pays.

For a model that does not know fill-in-the-middle it is a chat (``chat_layout``).

Keeps token counts and anchors between requests. Asks the engine for token counts only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fimble.assist.anchor import Anchors, anchor_at, anchor_of, anchored
from fimble.assist.budget import Budget
from fimble.assist.chat_layout import chat_prompt
from fimble.assist.layout import completion_prompt
from fimble.assist.place import Place
from fimble.assist.tokens import TokenCounts
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.protocol import ChatMessage, Segment
from fimble_context.assembly import Context, TokenCounter, assemble
from fimble_context.syntax import Document

__all__ = ["Assemble", "Layout", "Prompt", "Prompts", "own_text_only"]

#: ``assemble`` of ``fimble_context`` with or without a workspace: document, offset, budget in
#: tokens, counter.
Assemble: TypeAlias = Callable[[Document, int, int, TokenCounter], Context]


#: ``fim``: control tokens for fill-in-the-middle; ``chat``: the fall-back prompt.
Layout = Literal["fim", "chat"]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Segments for the engine, and what they were made of. ``typed`` is to be healed.

    For a model that can only chat there are ``messages`` instead, and ``end`` ends its answer.
    """

    segments: tuple[Segment, ...]
    context: Context
    typed: str = ""
    messages: tuple[ChatMessage, ...] = ()
    end: str = ""

    @property
    def layout(self) -> Layout:
        """In which way it asks."""
        return "chat" if self.messages else "fim"


def own_text_only(document: Document, offset: int, budget: int, count: TokenCounter) -> Context:
    """The context without a workspace."""
    return assemble(document, offset, budget=budget, count_tokens=count, skeleton=True)


class Prompts:
    """Makes the prompts for one engine."""

    def __init__(self, engine: Engine, assemble: Assemble = own_text_only) -> None:
        self._engine = engine
        self._assemble = assemble
        self._counts: dict[str, TokenCounts] = {}
        self.anchors = Anchors()

    async def prompt_for(self, name: str, place: Place, info: ModelInfo, budget: Budget) -> Prompt:
        """The prompt for ``place`` in the document ``name``."""
        kept = info.continuation and info.healing
        if not kept and (info.fim or not info.goes_on):
            # Without fill-in-the-middle such a server says what follows the text.
            context = await self._context(place.document, place.offset, info, budget)
            return Prompt(completion_prompt(context), context)
        anchor = self.anchors.get(name, place) if kept else None
        if anchor is None:
            document, offset = anchor_at(place)
            context = await self._context(document, offset, info, budget)
            anchor = anchor_of(context, document, offset)
            if kept:
                self.anchors.set(name, anchor)
        prompt = anchored(anchor, place)
        if info.fim:
            return Prompt(prompt.segments, anchor.context, prompt.typed)
        language = place.language.id if place.language is not None else ""
        chat = chat_prompt(anchor.context, prompt.typed, language)
        return Prompt((), anchor.context, prompt.typed, chat.messages, chat.end)

    async def _context(
        self, document: Document, offset: int, info: ModelInfo, budget: Budget
    ) -> Context:
        """The context within the budget. Counts are exact where it matters.

        Estimates will do while they are a small part and no error of theirs can burst the
        ``room`` in the window; otherwise the engine counts, once, and the context is put
        together again.
        """
        counts = self._counts.setdefault(info.name, TokenCounts())
        counts.begin()
        context = self._assemble(document, offset, budget.prompt, counts.with_estimates)
        used = sum(section.tokens for section in context.sections)
        negligible = counts.estimated_tokens * 16 <= budget.prompt
        if negligible and used + counts.largest_error <= budget.room:
            return context
        await counts.learn(self._engine)
        return self._assemble(document, offset, budget.prompt, counts.at_most)
