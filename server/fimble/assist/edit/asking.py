"""Asking for an edit: the answer as far as it is needed, judged, asked for once more with a reason.

Cancelling the task ends the work at the engine before its next token.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fimble.assist.edit.problems import Problem
from fimble.assist.edit.prompt import EditPrompt
from fimble.assist.edit.verdict import Accepted
from fimble.engine.base import Engine
from fimble.engine.protocol import (
    ChatMessage,
    CompletionChunk,
    CompletionRequest,
    FinishReason,
    Timings,
    Usage,
)
from fimble.errors import EditRefused

if TYPE_CHECKING:
    # jinja2 takes a tenth of a second to import, which no editor's start should wait for.
    from fimble.assist.templates import Templates

__all__ = ["Answered", "Cost", "Judge", "ask"]

#: The second try sees the first answer: so much of it at most, in code points.
_LONGEST_SHOWN = 12_000
_TRIES = 2
_MENDED = ("syntax", "unterminated", "changed")

#: What becomes of an answer, whose end had that reason.
Judge = Callable[[str, FinishReason], "Accepted | Problem"]


@dataclass(frozen=True, slots=True)
class Cost:
    """What all tries took together, and who made the last one. ``total_ms`` is by the clock."""

    tries: int = 0
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    model: str = ""
    provider: str = ""
    total_ms: float = 0.0

    def with_try(self, last: CompletionChunk, total_ms: float) -> Cost:
        """One try more, whose answer ended with ``last``."""
        usage, timings = last.usage or Usage(), last.timings or Timings()
        return Cost(
            self.tries + 1,
            Usage(
                self.usage.prompt_tokens + usage.prompt_tokens,
                self.usage.reused_tokens + usage.reused_tokens,
                self.usage.computed_tokens + usage.computed_tokens,
                self.usage.completion_tokens + usage.completion_tokens,
            ),
            Timings(
                self.timings.queued_ms + timings.queued_ms,
                self.timings.prefill_ms + timings.prefill_ms,
                self.timings.decode_ms + timings.decode_ms,
            ),
            last.model or self.model,
            last.provider or self.provider,
            total_ms,
        )


@dataclass(frozen=True, slots=True)
class Answered:
    """``text`` is the whole answer, of which ``accepted`` was taken."""

    accepted: Accepted
    text: str
    cost: Cost


async def ask(
    engine: Engine,
    templates: Templates,
    prompt: EditPrompt,
    judge: Judge,
    *,
    document: str,
    enough: Callable[[str], bool],
    on_tokens: Callable[[int], None],
) -> Answered:
    """An accepted answer, of the second try at the latest. Raises EditRefused, EngineError.

    ``document`` is the engine's name of the conversation; ``enough`` tells of an answer so far
    whether more of it is not needed; ``on_tokens`` gets the tokens of all answers so far.
    """
    started, cost = time.perf_counter(), Cost()
    info = await engine.model_info()
    messages = list(prompt.messages)
    while True:
        request = CompletionRequest(
            "",
            max_tokens=prompt.max_tokens,
            temperature=0.0,
            priority="chat",
            document=document,
            messages=tuple(messages),
        )
        count = _counting(on_tokens, cost.usage.completion_tokens)
        answer, last = await _stream(engine, request, enough, count)
        cost = cost.with_try(last, (time.perf_counter() - started) * 1000)
        verdict = judge(answer, last.finish_reason or "stop")
        if isinstance(verdict, Accepted):
            return Answered(verdict, answer, cost)
        room = info.window - prompt.tokens - cost.usage.completion_tokens - prompt.max_tokens
        if not verdict.again or cost.tries == _TRIES or room < 128:
            raise _refusal(verdict, answer)
        messages = _again(templates, prompt, verdict, answer)


def _counting(on_tokens: Callable[[int], None], earlier: int) -> Callable[[int], None]:
    return lambda tokens: on_tokens(earlier + tokens)


def _again(
    templates: Templates, prompt: EditPrompt, problem: Problem, answer: str
) -> list[ChatMessage]:
    """The second try: with the first answer where that is to be mended, else anew."""
    shown = problem.name in _MENDED
    values = {
        "reason": problem.reason,
        "shown": shown,
        "unchanged": problem.name == "unchanged",
        "problems": prompt.problems,
    }
    told = templates.render("edit/again", values)
    *before, asked = prompt.messages
    if shown:
        said = ChatMessage("assistant", answer[:_LONGEST_SHOWN])
        return [*prompt.messages, said, ChatMessage("user", told)]
    # Whoever sees an answer of his own at no temperature gives it again.
    return [*before, ChatMessage("user", f"{asked.content}\n\n{told}")]


def _refusal(problem: Problem, answer: str) -> EditRefused:
    steps = {
        "unchanged": "Say what is to be different, or select other code.",
        "cut": "Select less, or raise edit.maxTokens.",
    }
    return EditRefused(
        f"Nothing was changed. {problem.reason}",
        next_step=steps.get(problem.name, "See the answer, and take of it what is right."),
        name=problem.name,
        answer=answer,
    )


async def _stream(
    engine: Engine,
    request: CompletionRequest,
    enough: Callable[[str], bool],
    on_tokens: Callable[[int], None],
) -> tuple[str, CompletionChunk]:
    """The answer, as far as it is needed, and its last chunk with what earlier ones knew."""
    text, looked = "", 0
    last = CompletionChunk("")
    # Closing the stream is what stops the engine.
    async with aclosing(engine.complete(request)) as chunks:
        async for chunk in chunks:
            last = replace(
                chunk,
                usage=chunk.usage or last.usage,
                timings=chunk.timings or last.timings,
                model=chunk.model or last.model,
                provider=chunk.provider or last.provider,
            )
            text += chunk.text
            on_tokens(last.usage.completion_tokens if last.usage else 0)
            # Looking costs a parse, so it is done line by line.
            line = text.rfind("\n") + 1
            if line > looked or (chunk.text and text.endswith("```")):
                looked = line
                if enough(text):
                    break
    return text, last
