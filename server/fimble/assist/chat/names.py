"""Completion of what a message may hold besides words: slash commands, mentions, names.

Offsets are code points of the message.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fimble.assist.chat.mentions import MENTIONS
from fimble.assist.chat.pieces import Sources
from fimble.assist.chat.tasks import TASKS
from fimble_context.workspace import Policy, Walk

__all__ = ["Name", "NameCompleter", "Names", "file_names"]

_MOST = 30
#: For so long a list of files is good enough while somebody types, in seconds.
_FRESH = 10.0
_SLASH = re.compile(r"\s*(?P<word>/[a-z]*)")
_WORD = re.compile(r"(?<![\w@#./:-])(?P<word>@(?:file|symbol):(?:\"[^\"\n]*|[^\s\"]*)|[@#]\w*)")


@dataclass(frozen=True, slots=True)
class Name:
    """``text`` is put in place of what is typed so far; ``detail`` is for a person."""

    text: str
    detail: str


@dataclass(frozen=True, slots=True)
class Names:
    """What may stand in place of the code points ``start`` to ``end`` of a message."""

    start: int
    end: int
    names: tuple[Name, ...] = ()


class NameCompleter:
    """Completes names; remembers the workspace's files for some seconds."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._files: list[str] = []
        self._listed_at = 0.0
        self._listed_for: Policy | None = None

    async def complete(self, message: str, cursor: int) -> Names:
        """The names that fit what stands before ``cursor``, the likeliest first."""
        cursor = min(max(cursor, 0), len(message))
        before = message[:cursor]
        slash = _SLASH.fullmatch(before)
        if slash is not None:
            return Names(slash.start("word"), cursor, tuple(_commands(slash["word"])))
        words = [found for found in _WORD.finditer(before) if found.end() == cursor]
        if not words:
            return Names(cursor, cursor)
        word = words[-1]["word"]
        kind, colon, typed = word.partition(":")
        if not colon:
            found = [Name(form, help) for form, help in MENTIONS.items() if form.startswith(word)]
        elif kind == "@file":
            found = await self._file_names(typed.lstrip('"'))
        else:
            found = self._symbol_names(typed.lstrip('"'))
        return Names(cursor - len(word), cursor, tuple(found[:_MOST]))

    async def _file_names(self, typed: str) -> list[Name]:
        policy = self._sources.policy
        if policy is not self._listed_for or time.monotonic() - self._listed_at > _FRESH:
            paths = await asyncio.to_thread(file_names, policy)
            self._files = [self._sources.shown_path(path) for path in paths]
            self._listed_at, self._listed_for = time.monotonic(), policy
        wanted = typed.lower()
        fitting = [path for path in self._files if wanted in path.lower()]

        def rank(path: str) -> tuple[bool, bool, int, str]:
            name = path.rpartition("/")[2].lower()
            return not name.startswith(wanted), wanted not in name, len(path), path

        return [Name(_mention("@file:", path), path) for path in sorted(fitting, key=rank)]

    def _symbol_names(self, typed: str) -> list[Name]:
        workspace = self._sources.workspace()
        if workspace is None or not typed:
            return []
        container, dot, prefix = typed.rpartition(".")
        names: dict[str, Name] = {}
        for item in workspace.index.definitions_beginning(prefix, limit=_MOST * 4):
            if dot and not f".{item.container}".endswith(f".{container}"):
                continue
            whole = f"{container}.{item.name}" if dot else item.name
            detail = f"{item.kind} in {self._sources.shown_path(item.path)}"
            names.setdefault(whole, Name(_mention("@symbol:", whole), detail))
        return list(names.values())


def file_names(policy: Policy) -> list[Path]:
    """The files of a workspace that may be used, those near its root first. Blocks."""
    found = (item for item in Walk(policy) if item is not None)
    return sorted((Path(item.path) for item in found), key=lambda path: (len(path.parts), path))


def _commands(typed: str) -> Iterable[Name]:
    known = {f"/{task.name}": task.help for task in TASKS.values()}
    known |= {"/clear": "begin anew", "/help": "what may be written besides words"}
    return (Name(text, help) for text, help in known.items() if text.startswith(typed))


def _mention(form: str, name: str) -> str:
    return f'{form}"{name}"' if re.search(r"\s", name) else f"{form}{name}"
