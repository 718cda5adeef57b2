"""The text on both sides of a cursor, and what was typed since it was last looked at.

It has ``\\n`` line ends whatever the document has, and no offsets: edits elsewhere leave what
is remembered by it valid.
"""

from __future__ import annotations

from dataclasses import dataclass

from fimble.assist.layout import prompt_text
from fimble_context.syntax import Document

__all__ = ["Surroundings", "surroundings", "typed_since"]

#: What editors put behind the cursor by themselves when its partner is typed.
_AUTO_CLOSERS = frozenset(")]}\"'`>")
_MOST_AUTO_CLOSED = 4


@dataclass(frozen=True, slots=True)
class Surroundings:
    """``before`` and ``after`` a cursor; whether they reach the document's start and end."""

    before: str
    after: str
    from_start: bool
    to_end: bool


def surroundings(document: Document, offset: int, before: int, after: int) -> Surroundings:
    """At most so many characters before and after ``offset``."""
    text = document.text
    start, end = max(0, offset - before), min(len(text), offset + after)
    here = prompt_text(text[start:offset])
    if start == 0:
        here = here.removeprefix("\ufeff")  # no prompt has the byte order mark
    return Surroundings(here, prompt_text(text[offset:end]), start == 0, end == len(text))


def typed_since(then: Surroundings, now: Surroundings, limit: int) -> str | None:
    """What was typed at ``then`` to make it ``now``, at most ``limit`` characters.

    None where it is another place, or the text around it has changed. ``now`` must reach
    further than ``then`` on both sides, by ``limit`` at least. What an editor put behind the
    cursor to close what was typed is no change.
    """
    if not _same_after(then, now):
        return None
    if then.from_start:
        if not now.from_start or not now.before.startswith(then.before):
            return None
        typed = now.before[len(then.before) :]
        return typed if len(typed) <= limit else None
    at = now.before.rfind(then.before, max(0, len(now.before) - limit - len(then.before)))
    return None if at < 0 else now.before[at + len(then.before) :]


def _same_after(then: Surroundings, now: Surroundings) -> bool:
    for closed in range(min(_MOST_AUTO_CLOSED, len(now.after)) + 1):
        if closed and now.after[closed - 1] not in _AUTO_CLOSERS:
            return False
        if now.after.startswith(then.after, closed):
            rest = len(now.after) - closed - len(then.after)
            if not then.to_end or (now.to_end and rest == 0):
                return True
    return False
