"""Anchored prompts: while the user types on, a prompt stays as it was and grows at its end.

A prompt is made for the start of the cursor's line: what is above is its prefix, what is
right of the cursor its suffix. What stands in the line, and what is typed from then on, goes
behind ``fim_middle`` as the middle's beginning, to be healed. So a keystroke costs the typed
tokens and not the suffix anew, which would stand behind every change.

Only for models that can continue a prompt and heal; others get the plain form.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from fimble.assist.layout import completion_prompt, prompt_text
from fimble.assist.place import Place
from fimble.assist.surroundings import Surroundings, surroundings, typed_since
from fimble.engine.protocol import Segment, Text
from fimble_context.assembly import Context
from fimble_context.syntax import Document, Edit

__all__ = ["Anchor", "AnchoredPrompt", "Anchors", "anchor_at", "anchor_of", "anchored"]

#: Characters that may be typed behind an anchor, and lines begun, before there is a new one.
MOST_TYPED = 960
MOST_LINES = 16
_KEPT = 16
_KEPT_EACH = 3


@dataclass(frozen=True, slots=True)
class Anchor:
    """A prompt that is continued: its context, and the text that was around it."""

    context: Context
    around: Surroundings

    def typed(self, place: Place) -> str | None:
        """What stands between the anchor and ``place``; None where the anchor is no use."""
        around = self.around
        # A line end may be two characters in the document.
        before, after = 2 * (len(around.before) + MOST_TYPED), 2 * len(around.after) + 64
        now = surroundings(place.document, place.offset, before, after)
        typed = typed_since(around, now, MOST_TYPED)
        if typed is None or typed.count("\n") > MOST_LINES:
            return None
        return typed


@dataclass(frozen=True, slots=True)
class AnchoredPrompt:
    """The segments of a request. With ``typed``, the engine is to heal their end."""

    segments: tuple[Segment, ...]
    typed: str


class Anchors:
    """The newest anchors of each document, told apart by name: users jump, and come back."""

    def __init__(self) -> None:
        self._anchors: OrderedDict[str, list[Anchor]] = OrderedDict()

    def get(self, name: str, place: Place) -> Anchor | None:
        """The document's newest anchor that holds for ``place``."""
        for anchor in reversed(self._anchors.get(name, [])):
            if anchor.typed(place) is not None:
                self._anchors.move_to_end(name)
                return anchor
        return None

    def set(self, name: str, anchor: Anchor) -> None:
        """Adds an anchor to those of a document."""
        self._anchors[name] = [*self._anchors.get(name, []), anchor][-_KEPT_EACH:]
        self._anchors.move_to_end(name)
        while len(self._anchors) > _KEPT:
            self._anchors.popitem(last=False)

    def accepted(self, name: str, place: Place) -> None:
        """A suggestion was accepted: an anchor that has much behind it is given up.

        There is time now to make a new one, before the user types on.
        """
        self._anchors[name] = [
            anchor for anchor in self._anchors.get(name, []) if not _is_long(anchor.typed(place))
        ]

    def forget(self, name: str) -> None:
        """The document's next prompt is a new one."""
        self._anchors.pop(name, None)


def _is_long(typed: str | None) -> bool:
    """Whether half of what may be typed behind an anchor is; not so at another place."""
    if typed is None:
        return False
    return 2 * len(typed) > MOST_TYPED or 2 * typed.count("\n") > MOST_LINES


def anchor_at(place: Place) -> tuple[Document, int]:
    """The document without the text from the anchor to ``place``, and the anchor's offset."""
    start = place.offset - len(place.before)
    if len(place.before) > MOST_TYPED // 2:
        return place.document, place.offset
    document = place.document.copy()
    document.apply(Edit(start, place.offset, ""))
    return document, start


def anchor_of(context: Context, document: Document, offset: int) -> Anchor:
    """The anchor for a context that was put together for what ``anchor_at`` gave."""
    prefix = prompt_text("".join(s.text for s in context.sections if s.kind == "prefix"))
    suffix = prompt_text("".join(s.text for s in context.sections if s.kind == "suffix"))
    # Twice as far as the sections reach, since a line end may be two characters here.
    whole = surroundings(document, offset, 2 * len(prefix) + 2, 2 * len(suffix) + 2)
    return Anchor(
        context,
        Surroundings(
            prefix,
            suffix,
            from_start=whole.from_start and whole.before == prefix,
            to_end=whole.to_end and whole.after == suffix,
        ),
    )


def anchored(anchor: Anchor, place: Place) -> AnchoredPrompt:
    """The prompt for ``place``, which must be one that the anchor holds for."""
    typed = anchor.typed(place) or ""
    segments = completion_prompt(anchor.context)
    return AnchoredPrompt((*segments, Text(typed)) if typed else segments, typed)
