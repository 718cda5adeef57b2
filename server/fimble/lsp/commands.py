"""Commands: what became of an offer, what a prompt is made of, and leaving the user alone.

``workspace/executeCommand`` gets ``fimble.accepted`` ``[id]``, ``fimble.partiallyAccepted``
``[id, length]`` (UTF-16 code units from the offer's beginning), ``fimble.snooze``
``[minutes]`` (default 10, 0 ends it) and ``fimble.showPrompt`` ``[uri, position]``. Arguments
that cannot be meant are an error of the protocol, not of the server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from fimble.errors import FimbleError
from fimble.lsp.ahead import Ahead
from fimble.lsp.convert import offset_of
from fimble.lsp.offers import Offer, Offers
from fimble.lsp.plain import plain
from fimble.lsp.statistics import SessionStatistics
from fimble.lsp.suggestions import Suggestions, ViewOf
from fimble.lsp.text_sync import OpenDocuments

__all__ = ["Commands", "cursor_of"]

_DEFAULT_SNOOZE_MINUTES = 10.0
_LONGEST_SNOOZE_MINUTES = 24 * 60.0


class Commands:
    """The commands of one session. ``on_snooze`` is told that something about it changed."""

    def __init__(
        self,
        documents: OpenDocuments,
        suggestions: Suggestions,
        offers: Offers,
        ahead: Ahead,
        view_of: ViewOf,
        statistics: SessionStatistics,
        on_snooze: Callable[[], None],
    ) -> None:
        self._documents = documents
        self._suggestions = suggestions
        self._offers = offers
        self._ahead = ahead
        self._view_of = view_of
        self._statistics = statistics
        self._on_snooze = on_snooze

    def accepted(self, *arguments: Any) -> None:
        """The editor has inserted an offer: its successor is made while the user reads."""
        offer = self._offer(arguments)
        if offer is not None:
            self._statistics.accepted(offer, len(offer.text))
            self._follow(offer, len(offer.text), whole=True)

    def partially_accepted(self, *arguments: Any) -> None:
        """The editor has inserted the beginning of an offer."""
        offer = self._offer(arguments)
        if len(arguments) < 2 or not _is_number(arguments[1]) or arguments[1] < 0:
            raise _unusable("fimble.partiallyAccepted takes [id, length].")
        if offer is not None:
            taken = _prefix_of_units(offer.text, int(arguments[1]))
            self._statistics.accepted(offer, taken)
            self._follow(offer, taken, whole=taken >= len(offer.text))

    def snooze(self, *arguments: Any) -> None:
        """Leaves the user alone for some minutes."""
        minutes = arguments[0] if arguments else _DEFAULT_SNOOZE_MINUTES
        if not _is_number(minutes) or not 0 <= minutes <= _LONGEST_SNOOZE_MINUTES:
            raise _unusable("fimble.snooze takes [minutes], from 0 to 1440.")
        self._suggestions.snooze(float(minutes))
        self._on_snooze()

    async def show_prompt(self, *arguments: Any) -> dict[str, Any]:
        """What the prompt for a place is made of, or why there is none. A ``refusal`` with
        sections is one that an explicit request overrules.
        """
        uri, position = _place(arguments)
        document, view = self._documents.get(uri), self._view_of(uri)
        offset = (
            None if document is None else offset_of(document, position, self._documents.encoding)
        )
        refused = self._suggestions.refused(uri, offset)
        shown: dict[str, Any] = {"refusal": None if refused is None else asdict(refused)}
        if view is None or offset is None or (refused and refused.name != "mid-word"):
            return {**shown, "sections": [], "left_out": []}
        service, settings = self._suggestions.service, self._suggestions.settings
        here, name = view.inside(offset), self._suggestions.name_of(uri)
        refused = refused or service.withheld(view.document, here, settings, name=name)
        shown["refusal"] = None if refused is None else asdict(refused)
        try:
            prompt = await service.explain(view.document, here, settings, name=name)
        except FimbleError as error:
            return {**shown, "sections": [], "left_out": [], "error": str(error)}
        context = prompt.context
        return {
            **shown,
            "sections": [asdict(section) for section in context.sections],
            "typed": prompt.typed,
            "layout": prompt.layout,
            "budget_tokens": context.budget_tokens,
            "left_out": [asdict(item) for item in context.left_out],
        }

    def _offer(self, arguments: tuple[Any, ...]) -> Offer | None:
        """The offer that the first argument names; None for one that is long gone."""
        if not arguments or not isinstance(arguments[0], str | int):
            raise _unusable("The first argument is the id of an offer.")
        return self._offers.get(arguments[0])

    def _follow(self, offer: Offer, length: int, *, whole: bool) -> None:
        document, view = self._documents.get(offer.uri), self._view_of(offer.uri)
        end = offer.start + length
        if document is None or view is None:
            return
        if document.text[offer.start : end] != offer.text[:length]:
            return  # it was undone, or typed over
        if whole:
            self._suggestions.service.accepted(
                view.document,
                view.inside(end),
                self._suggestions.settings,
                name=self._suggestions.name_of(offer.uri),
            )
        self._ahead.prepare(offer.uri, end)


def cursor_of(params: Any) -> tuple[str, types.Position]:
    """The place in the parameters of ``fimble/cursor``: ``{uri, position}``."""
    return _place((params,))


def _place(arguments: tuple[Any, ...]) -> tuple[str, types.Position]:
    """``[uri, {line, character}]``, or one object with ``uri`` and ``position``."""
    given = [plain(argument) for argument in arguments]
    if len(given) == 1 and isinstance(given[0], dict):
        given = [given[0].get("uri"), given[0].get("position")]
    if len(given) == 2 and isinstance(given[0], str) and isinstance(given[1], dict):
        line, character = given[1].get("line"), given[1].get("character")
        if isinstance(line, int) and isinstance(character, int):
            return given[0], types.Position(max(0, line), max(0, character))
    raise _unusable("A place is [uri, position].")


def _prefix_of_units(text: str, units: int) -> int:
    """How many characters the first ``units`` UTF-16 code units of ``text`` are."""
    return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _unusable(message: str) -> JsonRpcInvalidParams:
    return JsonRpcInvalidParams(message)
