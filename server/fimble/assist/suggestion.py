"""What a completion is, in the end: a text for a range, what it cost, what it was made of."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from fimble.assist.answer import Answer
from fimble.assist.place import Place
from fimble.assist.prompt import Layout, Prompt
from fimble.assist.trim import trim
from fimble.engine.protocol import FinishReason, Timings, Usage
from fimble_context.assembly import Context

__all__ = ["Source", "Suggestion", "suggestion_from"]

#: Where a suggestion came from: the engine was asked for it, it was remembered, or it was
#: made ahead of being asked for.
Source = Literal["engine", "memory", "ahead"]


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``text`` replaces the code points ``start`` to ``end`` (exclusive); it may be empty.

    ``alternatives`` are other texts for the same range. ``context`` is what the prompt was
    made of, and ``typed`` what stood behind it as the middle's beginning; both are of the
    prompt that the answer was made for, as is ``layout``. Where ``source`` is not the engine, no
    model was asked for this, and ``usage`` is nothing. ``confidence`` is the mean probability of a
    token, if known. ``growing`` says that more is being made than was waited for.
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
    typed: str = ""
    layout: Layout = "fim"
    confidence: float | None = None
    source: Source = "engine"
    growing: bool = False
    alternatives: tuple[str, ...] = field(default=())

    @property
    def remembered(self) -> bool:
        """Whether no model was asked."""
        return self.source != "engine"

    @property
    def texts(self) -> tuple[str, ...]:
        """The text and its alternatives, without empty ones."""
        return tuple(text for text in (self.text, *self.alternatives) if text)

    def with_alternatives(self, texts: list[str]) -> Suggestion:
        """With those of ``texts`` that are something else."""
        others = dict.fromkeys(text for text in texts if text and text != self.text)
        return replace(self, alternatives=tuple(others))


def suggestion_from(
    answer: Answer,
    place: Place,
    prompt: Prompt,
    *,
    accepted: str,
    source: Source,
    least_confidence: float,
) -> Suggestion:
    """What of ``answer`` is to be inserted at ``place``, where ``accepted`` of it stands."""
    rest = answer.text[len(accepted) :]
    sure = answer.confidence is None or answer.confidence >= least_confidence
    # Where a newer request took its place, what there is of an answer is a fragment.
    wanted = sure and answer.finish != "cancelled"
    text = trim(rest, place, continued=bool(accepted), complete=answer.whole) if wanted else ""
    return Suggestion(
        text=text,
        start=place.offset,
        end=place.offset,
        usage=answer.usage if source == "engine" else Usage(),
        timings=answer.timings if source == "engine" else Timings(),
        model=answer.model,
        provider=answer.provider,
        finish=answer.finish or "stop",
        context=prompt.context,
        typed=prompt.typed,
        layout=prompt.layout,
        confidence=answer.confidence,
        source=source,
        growing=answer.finish is None,
    )
