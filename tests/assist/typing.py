"""A document in which somebody types, and a service on a scripted engine that is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fimble.assist.completion import CompletionService, Suggestion
from fimble.assist.settings import CompletionSettings
from fimble.engine.protocol import CompletionRequest, Control, Text
from fimble_context.syntax import Edit
from tests.assist.places import at_mark
from tests.support.scripted_engine import Script, ScriptedEngine

__all__ = ["Typist", "healing", "middle", "prefix", "suffix"]


def healing(
    answers: Sequence[Script] | Callable[[CompletionRequest], Script], piece: int = 0
) -> ScriptedEngine:
    """An engine that continues prompts and heals."""
    engine = ScriptedEngine(answers, piece=piece)
    engine.info = replace(engine.info, healing=True)
    return engine


def _part(request: CompletionRequest, name: str) -> str:
    """The text behind a control token."""
    prompt = list(request.prompt)
    at = prompt.index(Control(name))
    following = prompt[at + 1 : at + 2]
    return following[0].text if following and isinstance(following[0], Text) else ""


def prefix(request: CompletionRequest) -> str:
    return _part(request, "fim_prefix")


def suffix(request: CompletionRequest) -> str:
    return _part(request, "fim_suffix")


def middle(request: CompletionRequest) -> str:
    return _part(request, "fim_middle")


class Typist:
    """Types into the fixture ``source``; ``ask`` gives the text that would be inserted."""

    def __init__(self, engine: ScriptedEngine, source: str, **settings: object) -> None:
        self.engine = engine
        self.service = CompletionService(engine)
        self.document, self.cursor = at_mark(source)
        self.settings = CompletionSettings(**settings)  # type: ignore[arg-type]
        self.last: Suggestion | None = None

    async def ask(self, *, invoked: bool = False) -> str:
        self.last = await self.service.complete(
            self.document, self.cursor, self.settings, name="a", invoked=invoked
        )
        return self.last.text

    def type(self, text: str) -> None:
        self.document.apply(Edit(self.cursor, self.cursor, text))
        self.cursor += len(text)

    def delete(self, count: int) -> None:
        self.document.apply(Edit(self.cursor - count, self.cursor, ""))
        self.cursor -= count

    def insert_elsewhere(self, at: int, text: str) -> None:
        self.document.apply(Edit(at, at, text))
        if at <= self.cursor:
            self.cursor += len(text)

    @property
    def calls(self) -> int:
        return len(self.engine.requests)
