"""How well a text fits a place, by syntax: whether the document parses with it.

Where there is no tree, brackets of the line are counted instead.
"""

from __future__ import annotations

from fimble.assist.brackets import imbalance, open_in
from fimble.assist.place import Place, place_of
from fimble.assist.stops import in_long_string
from fimble_context.syntax import Edit, error_count, text_kind

__all__ = ["badness", "calls_for_more"]


def badness(place: Place, text: str) -> int:
    """How badly the document parses with ``text`` inserted; comparable at one place only."""
    if place.language is None:
        return imbalance(place.before + text + place.after)
    document = place.document.copy()
    inserted = text.replace("\n", place.newline)
    document.apply(Edit(place.offset, place.offset, inserted))
    if document.tree is None:
        return imbalance(place.before + text + place.after)
    return error_count(document)


def calls_for_more(place: Place, text: str) -> bool:
    """Whether the line that ``text`` ends, inserted at ``place``, calls for more below it.

    The body of a header, the rest of brackets or of a string, what a decorator is for.
    """
    if place.language is None:
        return False
    document = place.document.copy()
    document.apply(Edit(place.offset, place.offset, text))
    end = place.offset + len(text)
    below = place_of(document, end)
    line = below.before.strip()
    return (
        below.shape == "body"
        or bool(open_in(below.before))
        or line.endswith("\\")
        or line.startswith(("@", "#["))
        or in_long_string(line)
        or text_kind(document, end) == "string"
        or badness(place, text) > badness(place, "")
    )
