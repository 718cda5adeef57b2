"""All candidates for a cursor, the most wanted first.

The order of the sources is what the infill benchmark favours: definitions of what is used
near the cursor, the user's own edits, similar code, definitions that are imported but not
used near the cursor, then the rest of the package and places that were only visited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.chunks import signature_of
from fimble_context.candidates.definitions import Asked, definition_candidates
from fimble_context.candidates.near import Near
from fimble_context.candidates.recent import Recent
from fimble_context.candidates.similar import SimilarCode
from fimble_context.index.lookup import Lookup
from fimble_context.syntax.languages import detect

__all__ = ["ranked_candidates"]

_MOST_SIBLINGS = 3
_LONGEST_SIBLING = 1_500  # code points


def ranked_candidates(
    asked: Asked,
    near: Near,
    recent: Sequence[Recent],
    lookup: Lookup,
    similar_code: SimilarCode,
    shown: Callable[[Path], str],
) -> list[Candidate]:
    """The candidates for what is near a cursor in the file ``asked`` is about."""
    used, imported = definition_candidates(asked, near, lookup, shown)
    similar = similar_code.candidates(asked.file, near)
    siblings = _siblings(asked, lookup, shown)
    edits = [_recent(item, shown) for item in recent if item.edited]
    used = [_with_edits(candidate, edits) for candidate in used]
    visits = [_recent(item, shown) for item in recent if not item.edited]
    ranked = [*used, *edits, *imported, *similar, *visits, *siblings]
    return [candidate for candidate in ranked if candidate.forms]


def _recent(recent: Recent, shown: Callable[[Path], str]) -> Candidate:
    return Candidate(
        path=shown(recent.place.file),
        kind="recent",
        place=recent.place,
        reason="edited lately" if recent.edited else "visited lately",
        forms=(recent.text,),
        header=recent.header,
        wanted=recent.edited,
    )


def _with_edits(candidate: Candidate, edits: list[Candidate]) -> Candidate:
    """A definition that was edited lately: what was edited is its longest form."""
    edited = next((item for item in edits if item.place.overlaps(candidate.place)), None)
    if edited is None or edited.header != candidate.header:
        return candidate
    edits.remove(edited)
    place = Place(
        candidate.place.file,
        min(candidate.place.start, edited.place.start),
        max(candidate.place.end, edited.place.end),
    )
    reason = f"{candidate.reason}; {edited.reason}"
    return replace(
        candidate, kind="recent", place=place, reason=reason,
        forms=(*edited.forms, *candidate.forms),
    )  # fmt: skip


def _siblings(asked: Asked, lookup: Lookup, shown: Callable[[Path], str]) -> list[Candidate]:
    """What the files beside this one define, in short."""
    found: list[Candidate] = []
    for path in lookup.related(asked.language, asked.file)[:_MOST_SIBLINGS]:
        facts = lookup.facts(path)
        language = detect(facts.language, str(path)) if facts is not None else None
        if facts is None or language is None:
            continue
        for fact in facts.definitions:
            if fact.container:
                continue
            text = signature_of(fact, (), language)
            if text.strip() and len(text) <= _LONGEST_SIBLING:
                place = Place(path, fact.start, fact.end)
                reason = f"defines {fact.name} (in the same package)"
                found.append(Candidate(shown(path), "sibling", place, reason, (text,)))
    return found
