"""Counts of what suggestions were worth: numbers by day, model and language, never text.

Collected in memory and handed over in batches, so that counting costs nothing while somebody
types. Knows no disk: see ``statistics_store``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import date
from typing import Literal, NamedTuple, TypeAlias

from fimble.assist.answer import ModelCall
from fimble.assist.histogram import bucket_of

__all__ = ["MEASURES", "Batch", "Key", "Measure", "Statistics", "Waited"]

Measure = Literal[
    # What was shown, and what became of each of them.
    "shown",
    "accepted",
    "partially_accepted",
    "typed",
    "dismissed",
    # How much was taken of those that were accepted in part.
    "partial_words",
    "partial_lines",
    # What still stood where it was accepted, some time later.
    "kept_measured",
    "kept_unchanged",
    "kept_mostly",
    # Where answers came from.
    "from_memory",
    "from_ahead",
    "from_engine",
    # The model's work, also for what nobody saw.
    "model_calls",
    "computed_tokens",
    "reused_tokens",
    # Durations, by bucket.
    "keystroke_ms",
    "request_ms",
]
MEASURES: frozenset[str] = frozenset(Measure.__args__)  # type: ignore[attr-defined]
#: From the last change of the document, or from the request, to its answer.
Waited = Literal["keystroke_ms", "request_ms"]

#: A language id, and the last part of a model's name. Whatever else an editor or a server
#: gives for one may be anything, and is not written down.
_LANGUAGE = re.compile(r"[A-Za-z][A-Za-z0-9+#._-]{0,31}")
_MODEL = re.compile(r"[\w][\w.+:-]{0,63}")
_OTHER = "other"


class Key(NamedTuple):
    """What a number is about. ``day`` is YYYY-MM-DD; ``bucket`` is 0 but for durations."""

    day: str
    model: str
    language: str
    measure: str
    bucket: int = 0


#: Numbers to be added to what is stored.
Batch: TypeAlias = Counter[Key]


class Statistics:
    """The numbers that were not handed over yet. ``enabled`` is the user's choice."""

    def __init__(
        self,
        *,
        today: Callable[[], date] = date.today,
        on_count: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_count`` is called when there is something to hand over where nothing was."""
        self._today = today
        self._on_count = on_count
        self._batch: Batch = Counter()
        self._enabled = False

    @property
    def enabled(self) -> bool:
        """Whether anything is counted. Switched off, it forgets what it has."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._enabled = enabled
        if not enabled:
            self._batch.clear()

    def count(self, measure: Measure, model: str, language: str | None, number: int = 1) -> None:
        """Adds ``number`` to a measure."""
        if number:
            self._add(measure, model, language, 0, number)

    def waited(self, what: Waited, model: str, language: str | None, seconds: float) -> None:
        """An answer took so long."""
        self._add(what, model, language, bucket_of(1000 * seconds), 1)

    def called(self, call: ModelCall) -> None:
        """The model was asked, and has ended its answer or was stopped."""
        self.count("model_calls", call.model, call.language)
        self.count("computed_tokens", call.model, call.language, call.usage.computed_tokens)
        self.count("reused_tokens", call.model, call.language, call.usage.reused_tokens)

    def take(self) -> Batch:
        """What is there to hand over, which is forgotten here."""
        batch, self._batch = self._batch, Counter()
        return batch

    def put_back(self, batch: Batch) -> None:
        """``batch`` could not be handed over: it is kept for the next time."""
        if self._enabled:
            self._batch.update(batch)

    def _add(
        self, measure: str, model: str, language: str | None, bucket: int, number: int
    ) -> None:
        if not self._enabled:
            return
        if not self._batch:
            self._on_count()
        day = self._today().isoformat()
        key = Key(day, _model_name(model), _language_id(language), measure, bucket)
        self._batch[key] += number


def _model_name(model: str) -> str:
    """The last part of a model's name: other servers may give a path on their disk."""
    name = re.split(r"[/\\]", model.rstrip("/\\"))[-1]
    return name if _MODEL.fullmatch(name) else _OTHER


def _language_id(language: str | None) -> str:
    return language if language and _LANGUAGE.fullmatch(language) else _OTHER
