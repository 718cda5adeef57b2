"""What a message asks for by itself: a slash command at its beginning, mentions within.

``@file:PATH``, ``@symbol:NAME``, ``@workspace``, ``@diff`` and ``#selection``; a path or name
with blanks is put in quotes. The message keeps its mentions: the model sees what is meant.
Decorators, addresses and the like are no mentions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["MENTIONS", "Mention", "MentionKind", "Slash", "mentions_in", "slash_in"]

MentionKind: TypeAlias = Literal["file", "symbol", "workspace", "diff", "selection"]

#: How each is written, and what it brings; for help and for completion.
MENTIONS: dict[str, str] = {
    "@file:": "a file of the workspace",
    "@symbol:": "a definition, by its name",
    "@workspace": "code of the workspace that has to do with the question",
    "@diff": "what has changed since the last commit",
    "#selection": "what is selected in the editor",
}

_MENTION = re.compile(
    r"(?<![\w@#./:-])(?:"
    r"@(?P<named>file|symbol):(?:\"(?P<quoted>[^\"\n]+)\"|(?P<bare>[^\s\"`'<>|]+))"
    r"|@(?P<plain>workspace|diff)(?![\w:./-])"
    r"|#(?P<selection>selection)(?![\w:./-])"
    r")"
)
#: What ends a sentence and not a name.
_PUNCTUATION = ".,;:!?)]}"
_SLASH = re.compile(r"\s*/(?P<name>[a-z]+)(?=\s|$)\s*(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mention:
    """``text`` is how it was written; ``name`` the path or name that it is about."""

    kind: MentionKind
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Slash:
    """A slash command: its name, and what the message says besides."""

    name: str
    rest: str


def slash_in(message: str) -> Slash | None:
    """The slash command that a message begins with. ``/usr/bin is …`` is none."""
    found = _SLASH.match(message)
    return None if found is None else Slash(found["name"], found["rest"].strip())


def mentions_in(message: str) -> list[Mention]:
    """The mentions in a message, each once, in their order."""
    found: dict[tuple[MentionKind, str], Mention] = {}
    for match in _MENTION.finditer(message):
        mention = _mention(match)
        if mention is not None:
            found.setdefault((mention.kind, mention.name), mention)
    return list(found.values())


def _mention(match: re.Match[str]) -> Mention | None:
    if match["selection"]:
        return Mention("selection", match[0])
    if match["plain"]:
        return Mention("workspace" if match["plain"] == "workspace" else "diff", match[0])
    bare = match["bare"]
    name = match["quoted"] or bare.rstrip(_PUNCTUATION)
    if not name:
        return None
    text = match[0] if bare is None else match[0][: len(match[0]) - len(bare) + len(name)]
    return Mention("file" if match["named"] == "file" else "symbol", text, name)
