"""Counts what suggestions were worth, and writes it down now and then, off the event loop.

Hears of answers, acceptance and changes; ``assist/outcomes.py`` makes counts of them. A store
that cannot be written to is told of once, in the log; what was counted waits.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from datetime import date

from fimble.assist import statistics_store
from fimble.assist.outcomes import Outcomes
from fimble.assist.statistics import Measure, Statistics
from fimble.assist.suggestion import Source, Suggestion
from fimble.errors import StatisticsError
from fimble.lsp.convert import document_key
from fimble.lsp.offers import Offer
from fimble.lsp.text_sync import DocumentListener, OpenDocuments
from fimble_context.syntax import Document, Edit

__all__ = ["SessionStatistics"]

logger = logging.getLogger(__name__)

#: Seconds from the first count to its being written down, with all that came after it.
BATCH_SECONDS = 10.0
#: Seconds that the end of a session waits for the last of it.
PATIENCE_SECONDS = 2.0

_FROM: dict[Source, Measure] = {
    "memory": "from_memory",
    "ahead": "from_ahead",
    "engine": "from_engine",
}


class SessionStatistics(DocumentListener):
    """The statistics of one window. ``clock`` gives monotonic seconds."""

    def __init__(
        self, documents: OpenDocuments, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._documents = documents
        self._clock = clock
        self.counts = Statistics(on_count=self._write_later)
        self._outcomes = Outcomes(self.counts, clock=clock, on_watch=self._measure_later)
        self._changed_at: dict[str, float] = {}
        self._writing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._measuring: asyncio.TimerHandle | None = None
        self._failed = False

    def use(self, enabled: bool) -> None:
        """The user's choice; what was counted and not written yet is forgotten with ``False``."""
        self.counts.enabled = enabled
        if not enabled:
            self._outcomes.forget()
            self._changed_at.clear()

    def now(self) -> float:
        """The time, to be given to ``answered``."""
        return self._clock()

    # --- what happens --------------------------------------------------------------------

    def answered(
        self, uri: str, offers: Sequence[Offer], suggestion: Suggestion, asked_at: float
    ) -> None:
        """``offers`` are about to be sent, as the answer to what was asked at ``asked_at``."""
        document = self._documents.get(uri)
        if not self.counts.enabled or not offers or document is None:
            return
        key, now = document_key(uri), self._clock()
        counts, model, language = self.counts, suggestion.model, document.language
        counts.count(_FROM[suggestion.source], model, language)
        counts.waited("request_ms", model, language, now - asked_at)
        changed_at = self._changed_at.pop(key, None)
        if changed_at is not None:
            counts.waited("keystroke_ms", model, language, now - changed_at)
        texts = {offer.id: offer.text for offer in offers}
        self._outcomes.shown(key, document, offers[0].start, texts, model)

    def accepted(self, offer: Offer, length: int) -> None:
        """The editor has inserted the first ``length`` characters of an offer."""
        self._outcomes.accepted(document_key(offer.uri), offer.id, length)

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        if self.counts.enabled:
            key = document_key(uri)
            self._changed_at[key] = self._clock()
            self._outcomes.changed(key, document, edits)

    def closed(self, uri: str) -> None:
        key = document_key(uri)
        self._changed_at.pop(key, None)
        self._outcomes.closed(key)

    # --- later ---------------------------------------------------------------------------

    async def close(self) -> None:
        """Counts what is on show as ended, and writes down what there is."""
        for timer in (self._timer, self._measuring):
            if timer is not None:
                timer.cancel()
        self._outcomes.close()
        self._write()
        if self._writing is not None:
            # Not for ever: the disk may be one that hangs.
            await asyncio.wait({self._writing}, timeout=PATIENCE_SECONDS)

    def _measure_later(self) -> None:
        if self._measuring is None:
            self._measure_again()

    def _measure_again(self) -> None:
        """Looks at what was accepted when the next of it is due."""
        self._measuring = None
        seconds = self._outcomes.measure()
        if seconds is not None:
            loop = asyncio.get_running_loop()
            # Not at once again where the clock is a little behind the loop's.
            self._measuring = loop.call_later(max(seconds, 0.1), self._measure_again)

    def _write_later(self) -> None:
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(BATCH_SECONDS, self._write)

    def _write(self) -> None:
        self._timer = None
        former = self._writing
        if self.counts.enabled:
            self._writing = asyncio.create_task(self._hand_over(former))

    async def _hand_over(self, former: asyncio.Task[None] | None) -> None:
        if former is not None:
            await asyncio.wait({former})
        batch = self.counts.take()
        if not batch:
            return
        try:
            await asyncio.to_thread(statistics_store.add, batch, date.today())
        except StatisticsError as error:
            self.counts.put_back(batch)
            self._write_later()
            if not self._failed:
                logger.warning("no statistics are written: %s", error.message)
            self._failed = True
        else:
            self._failed = False
