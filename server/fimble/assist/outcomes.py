"""What becomes of suggestions: shown, accepted, typed by hand, dismissed, kept after a while.

One suggestion a document is on show. An answer that only goes on with what is shown (because
the user types through it, deletes back into it, or asks again) is the same suggestion. Each
ends in one of four ways, so that shown = accepted + partially accepted + typed + dismissed.

Offsets are code points of the editor's text, which is looked at after each change. Texts are
held in memory only while they are needed: counts are all that goes out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fimble.assist.kept import kept
from fimble.assist.statistics import Measure, Statistics
from fimble_context.syntax import Document, Edit

__all__ = ["KEPT_AFTER_SECONDS", "Outcomes"]

KEPT_AFTER_SECONDS = 30.0
#: Editors that do not tell that a suggestion was accepted insert it at one go. Two characters
#: may be a bracket with the partner that the editor gave it.
_LEAST_INSERTED = 3
#: Accepted texts that are watched at a time.
_MOST_WATCHED = 50
_WORD = re.compile(r"\w+")


@dataclass
class _Region:
    """Where a text stands, followed through the edits of its document."""

    start: int
    end: int

    def follow(self, edit: Edit) -> None:
        """An edit at a border is outside; what replaces a part of the region becomes one."""
        grown = len(edit.text) - (edit.end - edit.start)
        if edit.start >= self.end:
            return
        if edit.end <= self.start:
            self.start, self.end = self.start + grown, self.end + grown
            return
        self.start = min(self.start, edit.start)
        self.end = max(self.end, edit.end) + grown


@dataclass(frozen=True)
class _Offer:
    """A text that stands from the suggestion's start on; ``typed`` of it did so before."""

    text: str
    typed: int


@dataclass
class _Shown:
    """A suggestion on show from ``start`` on: one text, or several to choose from.

    ``offers`` are all that were sent for it, by id. ``whole`` says that one of the texts
    stands there; ``taken`` is what of one was accepted.
    """

    start: int
    texts: list[str]
    offers: dict[str, _Offer]
    model: str
    language: str | None
    whole: bool = False
    taken: str = ""

    def follow(self, edit: Edit) -> bool:
        """Shifts it; whether the edit touches it."""
        if edit.end <= self.start and not (edit.start == self.start and edit.text):
            self.start += len(edit.text) - (edit.end - edit.start)
            return False
        # What replaces text from further up on may be the whole document, sent anew.
        return self.start <= edit.start <= self.start + max(map(len, self.texts))


@dataclass
class _Watched:
    region: _Region
    text: str
    due: float
    model: str
    language: str | None


@dataclass
class _Open:
    """What is known of one document."""

    document: Document
    shown: _Shown | None = None
    watched: list[_Watched] = field(default_factory=list)


class Outcomes:
    """Follows suggestions in documents that are told apart by name."""

    def __init__(
        self,
        statistics: Statistics,
        *,
        clock: Callable[[], float] = time.monotonic,
        on_watch: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_watch`` is called when there is something to be measured in a while."""
        self._statistics = statistics
        self._clock = clock
        self._on_watch = on_watch
        self._open: dict[str, _Open] = {}

    # --- what happens --------------------------------------------------------------------

    def shown(
        self, name: str, document: Document, start: int, offers: Mapping[str, str], model: str
    ) -> None:
        """``offers`` (text by id, the first one on show) are sent, to stand from ``start`` on."""
        known = self._open.setdefault(name, _Open(document))
        known.document = document
        if known.shown is not None and self._goes_on(known.shown, document, start, offers):
            return
        self._settle(known)
        known.shown = _Shown(
            start,
            list(offers.values()),
            {offer: _Offer(text, 0) for offer, text in offers.items()},
            model,
            document.language,
        )
        self._statistics.count("shown", model, document.language)

    def changed(self, name: str, document: Document, edits: Sequence[Edit]) -> None:
        """``edits`` were made; on the way of every keystroke, so it does little."""
        known = self._open.get(name)
        if known is None:
            return
        known.document = document
        for watched in known.watched:
            for edit in edits:
                watched.region.follow(edit)
        if known.shown is not None:
            self._judge(known, known.shown, edits)

    def accepted(self, name: str, offer: str, length: int) -> None:
        """The editor tells that it has inserted the first ``length`` characters of an offer."""
        known = self._open.get(name)
        shown = known.shown if known is not None else None
        told = None if shown is None else shown.offers.get(offer)
        if known is None or shown is None or told is None:
            return  # it was counted already when it was inserted
        taken = told.typed + length
        if not known.document.text.startswith(told.text[:taken], shown.start):
            return  # it was undone, or typed over
        if taken >= len(told.text):
            self._accept(known, shown, told.text)
        elif taken > len(shown.taken):
            self._count_part(shown, told, taken)
            shown.taken = told.text[:taken]

    def closed(self, name: str) -> None:
        """The document is gone."""
        known = self._open.get(name)
        if known is not None:
            self._settle(known)
            self._measure(known)
            del self._open[name]

    def close(self) -> None:
        """No more will happen in any document."""
        for name in list(self._open):
            self.closed(name)

    def measure(self) -> float | None:
        """Looks at what was accepted long enough ago; seconds until the next look, if any."""
        for known in self._open.values():
            self._measure(known)
        due = [watched.due for known in self._open.values() for watched in known.watched]
        return max(0.0, min(due) - self._clock()) if due else None

    def forget(self) -> None:
        """Nothing is counted any more."""
        self._open.clear()

    # --- one suggestion ------------------------------------------------------------------

    def _goes_on(
        self, shown: _Shown, document: Document, start: int, offers: Mapping[str, str]
    ) -> bool:
        """Whether ``offers`` are what is left of ``shown``; then they are its own."""
        typed = start - shown.start
        (first, *_) = offers.values()
        for text in shown.texts:
            rest = text[typed:]
            if (
                0 <= typed < len(text)
                and (rest.startswith(first) or first.startswith(rest))
                and document.text[shown.start : start] == text[:typed]
            ):
                shown.texts = [text[:typed] + new for new in offers.values()]
                for offer, new in offers.items():
                    shown.offers[offer] = _Offer(text[:typed] + new, typed)
                return True
        return False

    def _judge(self, known: _Open, shown: _Shown, edits: Sequence[Edit]) -> None:
        """What a change makes of the suggestion on show."""
        touching = [edit for edit in edits if shown.follow(edit)]
        if not touching:
            return
        shown.whole = False
        last = touching[-1]
        for option in shown.texts:
            end = shown.start + len(option)
            if last.start + len(last.text) < end:
                continue
            if known.document.text.startswith(option, shown.start):
                shown.whole = True
                if end - last.start >= _LEAST_INSERTED:
                    self._accept(known, shown, option)
                return

    def _accept(self, known: _Open, shown: _Shown, text: str) -> None:
        shown.taken = text
        self._end(known, shown, "accepted")

    def _settle(self, known: _Open) -> None:
        """The suggestion on show is no more: what became of it is counted."""
        shown = known.shown
        if shown is None:
            return
        if shown.taken:
            self._end(known, shown, "partially_accepted")
        else:
            self._end(known, shown, "typed" if shown.whole else "dismissed")

    def _end(self, known: _Open, shown: _Shown, outcome: Measure) -> None:
        self._statistics.count(outcome, shown.model, shown.language)
        known.shown = None
        if shown.taken and len(known.watched) < _MOST_WATCHED:
            region = _Region(shown.start, shown.start + len(shown.taken))
            due = self._clock() + KEPT_AFTER_SECONDS
            known.watched.append(_Watched(region, shown.taken, due, shown.model, shown.language))
            self._on_watch()

    def _count_part(self, shown: _Shown, offer: _Offer, taken: int) -> None:
        """How many words and whole lines were accepted since the editor last told."""
        before = max(len(shown.taken), offer.typed)
        words = len(_WORD.findall(offer.text[before:taken]))
        lines = _whole_lines(offer.text, taken) - _whole_lines(offer.text, before)
        self._statistics.count("partial_words", shown.model, shown.language, words)
        self._statistics.count("partial_lines", shown.model, shown.language, lines)

    def _measure(self, known: _Open) -> None:
        now = self._clock()
        due = [watched for watched in known.watched if watched.due <= now]
        if not due:
            return
        known.watched = [watched for watched in known.watched if watched.due > now]
        for watched in due:
            here = known.document.text[watched.region.start : watched.region.end]
            count, of = self._statistics.count, (watched.model, watched.language)
            count("kept_measured", *of)
            found = kept(watched.text, here)
            if found != "gone":
                count("kept_unchanged" if found == "unchanged" else "kept_mostly", *of)


def _whole_lines(text: str, length: int) -> int:
    """How many lines of ``text`` end within its first ``length`` characters, or right there."""
    return text.count("\n", 0, length) + text.startswith(("\n", "\r"), length)
