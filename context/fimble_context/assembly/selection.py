"""Which candidates a prompt shows, and in which order: within a budget, no text twice.

Knows token counts and candidates; where those come from is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fimble_context.assembly.sections import OTHER_KINDS, LeftOut, Section
from fimble_context.candidates.candidate import Candidate, Place

__all__ = ["HEADING_TOKENS", "Chosen", "Selection", "choose", "texts_of", "to_count", "to_sections"]

#: What a heading costs besides its path: the control token before it, the line end after it.
HEADING_TOKENS = 2
_MOST_COUNTED = 120
_CHARS_A_TOKEN = 8  # how much text of candidates is looked at for a budget


@dataclass(frozen=True, slots=True)
class Chosen:
    """A candidate and the form of it that is shown."""

    candidate: Candidate
    text: str


@dataclass(slots=True)
class Selection:
    """What is shown, in the order of the prompt, file by file; what all of it costs."""

    chosen: list[Chosen] = field(default_factory=list)
    tokens: int = 0
    left_out: list[LeftOut] = field(default_factory=list)
    crowded: bool = False  # whether something was left out for want of room
    room: int = 0  # the tokens that there were

    @property
    def texts(self) -> list[str]:
        """Everything that has to be counted to know what it costs."""
        return _texts(item.candidate for item in self.chosen)

    def files(self) -> set[Path]:
        """The files shown."""
        return {item.candidate.place.file for item in self.chosen}


def to_count(candidates: Sequence[Candidate], budget: int) -> list[Candidate]:
    """The candidates that are worth counting for a budget, in their order."""
    room = budget * _CHARS_A_TOKEN
    kept = []
    for candidate in candidates[:_MOST_COUNTED]:
        room -= len(candidate.forms[-1])
        if room < 0:
            break
        kept.append(candidate)
    return kept


def _texts(candidates: Iterable[Candidate]) -> list[str]:
    found: dict[str, None] = {}
    for candidate in candidates:
        found.update(dict.fromkeys((candidate.path, candidate.header, *candidate.forms)))
    found.pop("", None)
    return list(found)


def texts_of(candidates: Sequence[Candidate]) -> list[str]:
    """What of the candidates has to be counted, each text once."""
    return _texts(candidates)


def choose(
    candidates: Sequence[Candidate],
    costs: Mapping[str, int],
    room: int,
    *,
    taken: Sequence[Place] = (),
    order: Sequence[str] = (),
    beyond: Sequence[Candidate] = (),
) -> Selection:
    """As many candidates, the first ones first, as ``room`` tokens hold.

    ``taken`` is text that the prompt has anyway; ``order`` are paths as an earlier prompt had
    them, which keep their order; ``beyond`` are candidates that nobody counted. Short forms
    come first, longer ones get what is left.
    """
    chooser = _Chooser(costs, room, list(taken))
    for candidate in candidates:
        chooser.take(candidate)
    chooser.lengthen()
    for candidate in beyond:
        chooser.crowded = True
        chooser.left_out.append(_left_out(candidate, "is over the budget"))
    chosen = chooser.chosen
    while True:
        selection = Selection(_in_order(chosen, order), 0, chooser.left_out, chooser.crowded, room)
        selection.tokens = sum(section.tokens for section in to_sections(selection, costs))
        if selection.tokens <= room:
            return selection
        # A header can be there twice, where a class's members are not side by side.
        last = chosen.pop()
        selection.left_out.append(_left_out(last.candidate, "is over the budget"))


class _Chooser:
    def __init__(self, costs: Mapping[str, int], room: int, taken: list[Place]) -> None:
        self._costs = costs
        self._room = room
        self._taken = taken
        self._texts: set[str] = set()
        self._headings: set[str] = set()
        self.chosen: list[Chosen] = []
        self.left_out: list[LeftOut] = []
        self.crowded = False

    def take(self, candidate: Candidate) -> None:
        """Choose a candidate in its shortest form, if it is new and there is room."""
        text = candidate.forms[-1]
        if text in self._texts or self._overlaps(candidate):
            self.left_out.append(_left_out(candidate, "is in the prompt already"))
            return
        cost = self._costs[text]
        # A header that several share is paid for by each: simpler, and never too low.
        for heading in (candidate.path, candidate.path + "\0" + candidate.header):
            if heading not in self._headings and not heading.endswith("\0"):
                is_path = heading == candidate.path
                cost += self._costs[candidate.path if is_path else candidate.header]
                cost += HEADING_TOKENS * is_path
        if cost > self._room:
            self.crowded = True
            self.left_out.append(_left_out(candidate, "is over the budget"))
            return
        self._room -= cost
        self._headings.update((candidate.path, candidate.path + "\0" + candidate.header))
        self._texts.add(text)
        self._taken += candidate.places
        self.chosen.append(Chosen(candidate, text))

    def _overlaps(self, candidate: Candidate) -> bool:
        return any(own.overlaps(place) for own in candidate.places for place in self._taken)

    def lengthen(self) -> None:
        """Show in a longer form what has one, while there is room."""
        for index, item in enumerate(self.chosen):
            for form in item.candidate.forms:
                more = self._costs[form] - self._costs[item.text]
                if form == item.text:
                    break
                if more <= self._room and form not in self._texts:
                    self._room -= more
                    self._texts.add(form)
                    self.chosen[index] = Chosen(item.candidate, form)
                    break


def _left_out(candidate: Candidate, why: str) -> LeftOut:
    return LeftOut(candidate.path, f"{candidate.reason}: {why}")


def _in_order(chosen: list[Chosen], order: Sequence[str]) -> list[Chosen]:
    """Stable kinds first, of a kind the most wanted last; a file's pieces as in the file."""
    place: dict[str, tuple[int, int]] = {}
    for rank, item in enumerate(chosen):
        path = item.candidate.path
        kind, first = place.get(path, (0, rank))
        place[path] = max(kind, OTHER_KINDS.index(item.candidate.kind)), first
    known = {path: number for number, path in enumerate(dict.fromkeys(order))}

    def key(item: Chosen) -> tuple[int, int, int, int]:
        kind, rank = place[item.candidate.path]
        position = known.get(item.candidate.path, len(known))
        return position, kind, -rank, item.candidate.place.start

    return sorted(chosen, key=key)


def to_sections(selection: Selection, costs: Mapping[str, int]) -> list[Section]:
    """One section a file, its pieces in the order of the file."""
    sections: list[Section] = []
    for items in _by_path(selection.chosen):
        text, tokens, header = "", costs[items[0].candidate.path] + HEADING_TOKENS, ""
        for item in items:
            candidate = item.candidate
            if candidate.header and candidate.header != header:
                text += candidate.header
                tokens += costs[candidate.header]
            header = candidate.header
            text += item.text
            tokens += costs[item.text]
        kinds = [OTHER_KINDS.index(item.candidate.kind) for item in items]
        reasons = dict.fromkeys(item.candidate.reason for item in items)
        sections.append(
            Section(
                items[0].candidate.path,
                OTHER_KINDS[max(kinds)],
                "; ".join(reasons),
                tokens,
                text,
            )
        )
    return sections


def _by_path(chosen: Sequence[Chosen]) -> list[list[Chosen]]:
    groups: dict[str, list[Chosen]] = {}
    for item in chosen:
        groups.setdefault(item.candidate.path, []).append(item)
    return list(groups.values())
