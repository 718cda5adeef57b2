"""An index asked often: what it answers is remembered while nothing changes.

One assembly asks for the same files again and again, and the next keystroke's the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from fimble_context.index import links
from fimble_context.index.answers import Definition
from fimble_context.index.facts import Facts
from fimble_context.index.similarity import Similar
from fimble_context.index.terms import ChunkTerms
from fimble_context.index.workspace_index import WorkspaceIndex
from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve import related

__all__ = ["Lookup"]

_T = TypeVar("_T")
_MOST_ANSWERS = 3_000
_MOST_FILES = 64


class Lookup:
    """The questions of ``WorkspaceIndex`` that candidates need, with a memory.

    Belongs to one thread at a time.
    """

    def __init__(self, index: WorkspaceIndex) -> None:
        self._index = index
        self._answers: dict[tuple[object, ...], object] = {}
        self._by_facts: OrderedDict[Path, tuple[Facts, object]] = OrderedDict()
        self._state: object = None

    def refresh(self) -> None:
        """Before an assembly: forget what may have changed while the index was at work."""
        state = self._index.generation
        if state != self._state or len(self._answers) > _MOST_ANSWERS:
            self.forget()
            self._state = state

    def forget(self) -> None:
        """Something in the workspace has changed."""
        self._answers.clear()

    def forget_file(self, path: Path) -> None:
        """The text of an open document has changed, or who it belongs to."""
        self._answers.pop(("facts", path), None)

    def facts(self, path: Path) -> Facts | None:
        """See ``WorkspaceIndex``, as for all methods here."""
        return self.remembered(("facts", path), lambda: self._index.facts(path))

    def definitions(self, name: str, *, limit: int = 50) -> list[Definition]:
        key = ("definitions", name, limit)
        return self.remembered(key, lambda: self._index.definitions(name, limit=limit))

    def chunks(self, path: Path) -> list[ChunkTerms] | None:
        return self._index.chunks(path)

    def resolve(self, import_: Import, language: str, from_path: Path) -> list[Path]:
        key = ("resolve", import_.source, import_.names, language, from_path)
        return self.remembered(key, lambda: self._index.resolve(import_, language, from_path))

    def related(self, language: str, path: Path) -> list[Path]:
        """Files whose names ``path`` sees without an import, if they may be used."""

        def ask() -> list[Path]:
            found = related(language, path, self._index.project)
            return [item for item in found if self._index.allowed(item)]

        return self.remembered(("related", language, path), ask)

    def defining(
        self, name: str, import_: Import, language: str, from_path: Path
    ) -> list[Definition]:
        key = ("defining", name, import_.source, import_.names, language, from_path)
        return self.remembered(
            key, lambda: links.defining(self, name, import_, language, from_path)
        )

    def importers(self, path: Path, *, limit: int = 20) -> list[Path]:
        key = ("importers", path, limit)
        return self.remembered(key, lambda: self._index.importers(path, limit=limit))

    def files_similar(self, identifiers: Iterable[str], k: int = 10) -> list[Similar]:
        """Not remembered: hardly asked twice alike."""
        return self._index.files_similar(identifiers, k)

    def remembered(self, key: tuple[object, ...], ask: Callable[[], _T]) -> _T:
        """The answer to a question of the caller's, asked anew when something has changed."""
        if key not in self._answers:
            self._answers[key] = ask()
        return self._answers[key]  # type: ignore[return-value]

    def derived(self, path: Path, facts: Facts, make: Callable[[], _T]) -> _T:
        """What a caller makes of a file's facts; one thing a file, made anew for other facts."""
        known = self._by_facts.get(path)
        if known is None or known[0] is not facts:
            known = self._by_facts[path] = facts, make()
        self._by_facts.move_to_end(path)
        if len(self._by_facts) > _MOST_FILES:
            self._by_facts.popitem(last=False)
        return known[1]  # type: ignore[return-value]
