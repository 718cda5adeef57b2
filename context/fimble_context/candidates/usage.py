"""Where something is used: the definitions that mention a name, in files that can see it.

Found by name in files that import the one that defines it, and in that file itself; what a
comment or a string says is taken for a use as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.chunks import container_headers, fact_chunk, plain, still_there
from fimble_context.candidates.definition_forms import FileFacts
from fimble_context.index.facts import Fact
from fimble_context.workspace.secrets import mask_secrets

__all__ = ["callers_in"]

_CALLABLE = frozenset({"function", "method", "constructor"})
_LONGEST = 2_400


def callers_in(
    file: FileFacts, text: str, name: str, but: Place | None, shown: Callable[[Path], str]
) -> Iterator[Candidate]:
    """The functions of a file that use a name, in the order of the text.

    ``text`` is the file's as indexed or later; ``but`` is where not to look.
    """
    seen: set[int] = set()
    for use in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text):
        fact = _function_around(file, text, use.start())
        if fact is None or fact.start in seen or fact.name == name:
            continue
        seen.add(fact.start)
        place = Place(file.path, fact.start, fact.end)
        if but is not None and place.overlaps(but):
            continue
        header, _ = container_headers(fact, file.by_name, file.language)
        around = fact_chunk(text, fact)
        whole = plain(mask_secrets(text[around.start : around.end]))
        line = text.count("\n", 0, use.start())
        short = "\n".join(text.split("\n")[max(0, line - 1) : line + 2])
        forms = tuple(dict.fromkeys(form for form in (whole, plain(mask_secrets(short))) if form))
        if len(whole) > _LONGEST:
            forms = forms[1:]
        yield Candidate(
            path=shown(file.path),
            kind="caller",
            place=place,
            reason=f"{fact.name} uses {name}",
            forms=forms,
            header=header,
            name=fact.name,
        )


def _function_around(file: FileFacts, text: str, offset: int) -> Fact | None:
    """The innermost function that an offset is in, if it is where the index saw it."""
    around = [
        fact
        for fact in file.facts.definitions
        if fact.kind in _CALLABLE and fact.start <= offset < fact.end
    ]
    fact = min(around, key=lambda item: item.end - item.start, default=None)
    return fact if fact is not None and still_there(text, fact) else None
