"""How files hang together by their imports: who imports a file, who passes a name on.

Asks an index for facts and for resolved imports; keeps nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from fimble_context.index.answers import Definition, definition
from fimble_context.index.facts import Facts
from fimble_context.index.store_layout import import_keys, path_keys
from fimble_context.syntax.names import Import

__all__ = ["Answers", "Importing", "defining", "importers"]

# A barrel of barrels is as deep as anyone writes.
_MOST_FILES = 16


class Answers(Protocol):
    """What following an import asks; an index, or one with a memory."""

    def facts(self, path: Path) -> Facts | None: ...

    def resolve(self, import_: Import, language: str, from_path: Path) -> list[Path]: ...


class Importing(Answers, Protocol):
    """What looking for importers asks."""

    def files_importing(self, keys: set[str]) -> list[Path]: ...


def importers(index: Importing, path: Path, limit: int) -> list[Path]:
    """Files that import ``path``, no more than ``limit``."""
    keys = path_keys(path)
    found: list[Path] = []
    for candidate in index.files_importing(keys):
        if candidate != path and _imports(index, candidate, path, keys):
            found.append(candidate)
            if len(found) == limit:
                break
    return found


def _imports(index: Importing, candidate: Path, path: Path, keys: set[str]) -> bool:
    facts = index.facts(candidate)
    return facts is not None and any(
        path in index.resolve(item, facts.language, candidate)
        for item in facts.imports
        if keys & import_keys(item)
    )


def defining(
    index: Answers, name: str, import_: Import, language: str, from_path: Path
) -> list[Definition]:
    """The definitions of ``name``, as the importing file calls it, that the import leads to.

    A file that does not define it but imports it (a package's ``__init__``, an ``index.ts``)
    is followed to where it has it from. Outermost definitions first.
    """
    wanted = next((there for there, here in import_.names if here == name), name)
    waiting = [(wanted, path) for path in index.resolve(import_, language, from_path)]
    seen = {from_path}
    # Breadth first: the nearest file that defines it is the one that is meant.
    while waiting and len(seen) <= _MOST_FILES:
        wanted, path = waiting.pop(0)
        if path in seen:
            continue
        seen.add(path)
        facts = index.facts(path)
        own = [fact for fact in facts.definitions if fact.name == wanted] if facts else []
        if own:
            own.sort(key=lambda fact: (len(fact.container), fact.start))
            return [definition(str(path), fact) for fact in own]
        waiting += _passed_on(index, wanted, path)
    return []


def _passed_on(index: Answers, name: str, path: Path) -> Iterator[tuple[str, Path]]:
    facts = index.facts(path)
    if facts is None:
        return
    # An import that names it comes before one that brings everything.
    for item in sorted(facts.imports, key=lambda item: not item.names):
        there = next((there for there, here in item.names if here == name), None)
        if there is None and item.names and not item.wildcard:
            continue
        for target in index.resolve(item, facts.language, path):
            yield there or name, target
