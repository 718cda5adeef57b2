"""A prompt's worth of text for a cursor: pieces of other places, then the text around it.

The sections are in prompt order: what changes least comes first, so that a model's state for
the beginning of a prompt stays of use from one keystroke to the next. Knows nothing of control
tokens: how sections become a prompt is the caller's affair. Text in sections has ``\\n`` line
ends and no byte order mark, whatever the document has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fimble_context.assembly.around import Around, Begin
from fimble_context.assembly.sections import Context, LeftOut, Section
from fimble_context.assembly.selection import (
    HEADING_TOKENS,
    Selection,
    choose,
    texts_of,
    to_count,
    to_sections,
)
from fimble_context.assembly.window import TokenCounter
from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.syntax.document import Document

__all__ = [
    "NOTHING",
    "Assembly",
    "Context",
    "LeftOut",
    "Others",
    "Section",
    "TokenCounter",
    "assemble",
    "assemble_with",
]

# The part of the budget, in hundredths, that other places get where the file needs it all: one
# for so many tokens from some on, within bounds. In a small prompt the text around the cursor
# says more; with a larger part than a quarter, code that needs no other file is filled in worse.
_FROM_TOKENS, _TOKENS_A_HUNDREDTH = 380, 25
_LEAST_SHARE, _LARGEST_SHARE = 8, 25
_SUFFIX_YIELDS = 20  # one part of the budget in so many, before other places yield too
_SPARE = 40  # one part of the budget in so many is left where all of the file is there
_WASTED_AT_MOST = 50  # one part of the budget in so many may stay unused


@dataclass(frozen=True, slots=True)
class Others:
    """What there is of other places, and what an earlier prompt showed of it.

    ``candidates`` come with the most wanted first. ``earlier`` is the selection of an earlier
    prompt, shown again as it was while it fits; ``begin`` is where its prefix began; ``order``
    are the paths of earlier sections, which keep their order where all is chosen anew.
    ``repository`` names the workspace; ``here`` is the document's place in it and ``path`` what
    sections name it (empty: the document's own path). ``share`` is
    the part of the budget, in hundredths, that other places get at least; None: by the budget.
    """

    candidates: Sequence[Candidate] = ()
    repository: str = ""
    here: Place | None = None
    path: str = ""
    earlier: Selection | None = None
    begin: Begin | None = None
    order: tuple[str, ...] = ()
    share: int | None = None


@dataclass(frozen=True, slots=True)
class Assembly:
    """A context, and what the next keystroke's assembly needs to stay like it."""

    context: Context
    selection: Selection
    begin: Begin


NOTHING = Others()


def assemble(
    document: Document,
    offset: int,
    *,
    budget: int,
    count_tokens: TokenCounter,
    skeleton: bool = False,
) -> Context:
    """The text around ``offset`` (code points, clamped) within ``budget`` tokens.

    The suffix gets a quarter of the budget; what one side does not need goes to the other.
    Cuts are at line ends; only a line that alone is over its side's budget is cut inside.

    A prefix that is cut begins with a statement, so that it begins with the same one for many
    lines to come and what a model holds of it stays of use; what that leaves free, the suffix
    gets. With ``skeleton``, what is above is there in short. Tokens are counted in one call
    in the usual case.
    """
    return assemble_with(
        document, offset, NOTHING, budget=budget, count_tokens=count_tokens, skeleton=skeleton
    ).context


def assemble_with(
    document: Document,
    offset: int,
    others: Others,
    *,
    budget: int,
    count_tokens: TokenCounter,
    skeleton: bool = True,
) -> Assembly:
    """The same with text of other places: what the file leaves, and ``share`` in any case."""
    offset = _cursor(document, offset)
    budget = max(budget, 0)
    around = Around(document, offset, budget, skeleton=skeleton, path=others.path)
    # In the usual case an earlier selection is shown again, and nothing else need be counted.
    worth = [] if others.earlier is not None else to_count(others.candidates, budget)
    known = others.earlier.texts if others.earlier is not None else texts_of(worth)
    texts = list(dict.fromkeys([*_headings(around, others), *known]))
    costs = dict(zip(texts, around.count(count_tokens, texts, others.begin), strict=True))
    heading = _heading_cost(around, others, costs)
    room = _room(around, budget, heading, others.share)
    selection = _earlier(others.earlier, costs, room, budget)
    if selection is None:
        if others.earlier is not None:
            worth = to_count(others.candidates, budget)
            more = [text for text in texts_of(worth) if text not in costs]
            costs |= zip(more, count_tokens(more) if more else (), strict=True)
        selection = choose(
            worth, costs, room, order=others.order, beyond=others.candidates[len(worth) :]
        )
    used = selection.tokens + heading if selection.chosen else 0
    around.fill(budget - used, count_tokens, others.begin)
    selection = _without_overlaps(selection, others, around, costs)
    sections = to_sections(selection, costs)
    own = around.sections()
    if sections:
        # The first section of the file carries the headings of the file and the repository.
        first = own[0]
        own[0] = Section(first.path, first.kind, first.reason, first.tokens + heading, first.text)
    context = Context(
        (*sections, *own),
        budget,
        (*selection.left_out, *around.left_out()),
        others.repository if sections else "",
    )
    return Assembly(context, selection, around.begin())


def _cursor(document: Document, offset: int) -> int:
    """``offset`` within the text, not between ``\\r`` and ``\\n``."""
    offset = min(max(offset, 0), len(document.text))
    return min(offset, document.line_end(document.line_of(offset)))


def _headings(around: Around, others: Others) -> list[str]:
    if not others.candidates and others.earlier is None:
        return []
    return [text for text in (around.path, others.repository) if text]


def _heading_cost(around: Around, others: Others, costs: dict[str, int]) -> int:
    texts = _headings(around, others)
    return sum(costs[text] + HEADING_TOKENS for text in texts)


def _room(around: Around, budget: int, heading: int, share: int | None) -> int:
    """The tokens that other places may have."""
    if share is None:
        wanted = (budget - _FROM_TOKENS) // _TOKENS_A_HUNDREDTH
        share = min(max(_LEAST_SHARE, wanted), _LARGEST_SHARE)
    guaranteed = budget * share // 100
    whole = around.whole
    # Some typing goes by before they have to yield.
    free = budget - whole - budget // _SPARE if whole is not None else 0
    return max(0, max(guaranteed, free) - heading)


def _earlier(
    earlier: Selection | None, costs: dict[str, int], room: int, budget: int
) -> Selection | None:
    """The earlier selection as it was, if it fits and there is not much more room now."""
    if earlier is None:
        return None
    tokens = sum(section.tokens for section in to_sections(earlier, costs))
    full = room <= earlier.room + budget // _WASTED_AT_MOST or not earlier.crowded
    # The suffix gives way to what is typed, but not for ever.
    if tokens <= room + budget // _SUFFIX_YIELDS and full:
        return replace(earlier, tokens=tokens)
    return None


def _without_overlaps(
    selection: Selection, others: Others, around: Around, costs: dict[str, int]
) -> Selection:
    """Without what the text around the cursor shows anyway."""
    if others.here is None:
        return selection
    shown = Place(others.here.file, around.start, around.end)
    kept = [item for item in selection.chosen if not item.candidate.place.overlaps(shown)]
    if len(kept) == len(selection.chosen):
        return selection
    left_out = [
        LeftOut(item.candidate.path, f"{item.candidate.reason}: is near the cursor")
        for item in selection.chosen
        if item not in kept
    ]
    result = replace(selection, chosen=kept, left_out=[*selection.left_out, *left_out])
    result.tokens = sum(section.tokens for section in to_sections(result, costs))
    return result
