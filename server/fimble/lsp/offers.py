"""What was offered to the user, so that acceptance can be told by a name.

An item's command carries the offer's id; with it the server finds what the text was and
where it stood. Only the newest offers are known.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import count

from lsprotocol import types

__all__ = ["ACCEPTED", "PARTIALLY_ACCEPTED", "Offer", "Offers"]

#: Commands of items: ``[id]``, and ``[id, length]`` with the accepted length in UTF-16 units.
ACCEPTED = "fimble.accepted"
PARTIALLY_ACCEPTED = "fimble.partiallyAccepted"
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Offer:
    """A text offered for the code points from ``start`` in the document ``uri``."""

    id: str
    uri: str
    text: str
    start: int

    @property
    def command(self) -> types.Command:
        """What the editor executes after it has inserted the text."""
        return types.Command("Accepted", ACCEPTED, arguments=[self.id])


class Offers:
    """The newest offers of a session."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._offers: OrderedDict[str, Offer] = OrderedDict()

    def add(self, uri: str, text: str, start: int) -> Offer:
        """Notes an offer that is about to be sent."""
        offer = Offer(str(next(self._numbers)), uri, text, start)
        self._offers[offer.id] = offer
        while len(self._offers) > _KEPT:
            self._offers.popitem(last=False)
        return offer

    def get(self, identifier: object) -> Offer | None:
        """The offer, if it is known still."""
        return self._offers.get(str(identifier))
