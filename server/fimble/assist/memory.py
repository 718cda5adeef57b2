"""Suggestions that were made, so that typing on in them costs no call of the model.

An answer is remembered with the text that stood around it, not with its offset: edits
elsewhere and scrolling leave it valid. It serves wherever the text before the cursor is the
text it was made for followed by a beginning of it: while it is typed, deleted back into, or
accepted word by word and line by line.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from fimble.assist.answer import Answer
from fimble.assist.place import Place
from fimble.assist.surroundings import Surroundings, surroundings, typed_since

__all__ = ["Memory", "Remembered"]

#: Characters around a cursor that must be the same. What is further away is in the prompt
#: too, but seldom changes the next line; and it changes with every edit further up.
_BEFORE = 1_200
_AFTER = 400
_CAPACITY = 250
#: Characters by which typing may be ahead of an answer that is being made. The next token or
#: two tell whether it goes the same way; to begin anew would take longer than that.
_MOST_AHEAD = 16


@dataclass(eq=False)
class _Entry:
    name: str
    around: Surroundings
    answer: Answer
    alternatives: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Remembered:
    """An answer that fits a place, of which ``typed`` stands in the document already.

    ``alternatives`` are other answers to the same prompt, as far as they were asked for.
    """

    answer: Answer
    typed: str
    alternatives: list[str]

    @property
    def rest(self) -> str:
        """What has come of the answer beyond what is typed."""
        return self.answer.text[len(self.typed) :]

    @property
    def behind(self) -> bool:
        """Whether the answer is still to come as far as is typed, and goes that way so far."""
        return _is_behind(self.answer, self.typed)

    @property
    def fits(self) -> bool:
        """Whether something of the answer is left behind what is typed, or is to come."""
        return self.answer.usable and _goes_on(self.answer, self.typed)


class Memory:
    """The newest answers, of all documents (told apart by name)."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[int, _Entry] = OrderedDict()

    def add(self, name: str, place: Place, answer: Answer) -> Remembered:
        """Remembers an answer, which may still be growing, for the place it was asked for."""
        entry = _Entry(
            name,
            surroundings(place.document, place.offset, _BEFORE, _AFTER),
            answer,
        )
        self._entries[id(entry)] = entry
        while len(self._entries) > self._capacity:
            self._entries.popitem(last=False)
        return Remembered(answer, "", entry.alternatives)

    def find(self, name: str, place: Place) -> Remembered | None:
        """What fits ``place``, the newest first; None where the model must be asked.

        An answer fits while something of it is left, or is to come; and one that ended with
        nothing fits its own place: the model has nothing to say there. Where there is no such
        answer, one that is being made may be ``behind``.
        """
        hoped: Remembered | None = None
        now = surroundings(place.document, place.offset, 2 * _BEFORE, 2 * _AFTER)
        for key, entry in reversed(self._entries.items()):
            if entry.name != name or not entry.answer.usable:
                continue
            typed = typed_since(entry.around, now, _BEFORE)
            if typed is None:
                continue
            found = Remembered(entry.answer, typed, entry.alternatives)
            if not typed or found.fits:
                self._entries.move_to_end(key)
                return found
            if hoped is None and found.behind:
                hoped = found
        return hoped

    def forget(self, name: str) -> None:
        """Drops what was made for a document."""
        for key in [key for key, entry in self._entries.items() if entry.name == name]:
            del self._entries[key]


def _goes_on(answer: Answer, typed: str) -> bool:
    left = answer.text[len(typed) :].strip() or answer.finish is None
    return bool(left) and answer.text.startswith(typed)


def _is_behind(answer: Answer, typed: str) -> bool:
    ahead = len(typed) - len(answer.text)
    # One that has said nothing yet may go anywhere: it is ended, as a superseded one should be.
    growing = answer.finish is None and answer.error is None and bool(answer.text)
    return growing and 0 < ahead <= _MOST_AHEAD and typed.startswith(answer.text)
