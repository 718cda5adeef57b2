"""Definitions in other files of the names used near a cursor, as candidates.

Names that an import brings come first, through the index and by the language's own rules;
then what the imported files and the rest of the package define; then what the workspace
defines only once. Signatures come from the index: no file is read for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.chunks import container_headers
from fimble_context.candidates.definition_forms import (
    CONSTRUCTORS,
    FileFacts,
    forms_of,
    module_form,
    parts_of,
    whole_name,
)
from fimble_context.candidates.near import NameInUse, Near
from fimble_context.index.answers import Definition
from fimble_context.index.facts import Fact, extract
from fimble_context.index.lookup import Lookup
from fimble_context.syntax.document import Document
from fimble_context.syntax.languages import detect
from fimble_context.syntax.names import Import
from fimble_context.syntax.symbols import CONTAINERS

__all__ = ["Asked", "definition_candidates", "file_facts", "own_definitions", "own_facts"]

_MOST_IMPORTED_FILES = 30
_MOST_FILES_OF_A_MODULE = 3
# Imports that give what is in a file a name of its own, not the file.
_WITHOUT_MODULES = frozenset({"c", "cpp", "java", "kotlin", "scala"})
_MOST_BASES = 3  # how far up a class's ancestors are followed
_BASE = 0.6  # the weight of a class that the one around the cursor inherits from
_MOST_HOMONYMS = 3  # a name defined more often elsewhere says little about which is meant
_SHORTEST_NAME = 4
_UNUSED = 0.02  # the weight of a name that is imported, but not used near the cursor
_AWAITED = 0.7  # and of one that the whole file does not use yet: what is written next may
_WANTED = 0.4
_FAMILIES = (
    frozenset({"javascript", "typescript", "tsx"}),
    frozenset({"c", "cpp"}),
    frozenset({"java", "kotlin", "scala"}),
)
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Asked:
    """The file that candidates are for: its path, our id of its language, its imports.

    ``unused`` are names that it imports and does not use so far.
    """

    file: Path
    language: str
    imports: tuple[Import, ...]
    defined: frozenset[str]  # names that the file defines itself
    unused: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Found:
    """A definition that is wanted. ``names`` are those near the cursor that lead to it.

    ``inside``: the cursor is in a class that inherits from it.
    """

    file: FileFacts
    fact: Fact
    weight: float
    reason: str
    names: set[str] = field(default_factory=set)
    inside: bool = False


def definition_candidates(
    asked: Asked, near: Near, lookup: Lookup, shown: Callable[[Path], str]
) -> tuple[list[Candidate], list[Candidate]]:
    """Definitions of what is used near the cursor, and of what is imported but not used there.

    The most wanted first. ``shown`` gives the path that a section names.
    """
    finder = _Finder(asked, near, lookup)
    ranked: list[tuple[float, Candidate]] = []
    for found in finder.ranked():
        if (candidate := _candidate(found, near, shown)) is not None:
            ranked.append((found.weight, candidate))
    for weight, module, name in finder.modules():
        without = {item.fact.name for item in finder.found_in(module.path)}
        ranked.append((weight, _module(module, name, near, without, shown)))
    # Of one weight, what a name stands for before the module that it is in.
    ranked.sort(key=lambda item: -item[0])
    used = [candidate for weight, candidate in ranked if weight > _UNUSED]
    return used, [candidate for weight, candidate in ranked if weight <= _UNUSED]


def file_facts(lookup: Lookup, path: Path) -> FileFacts | None:
    """What the index knows of a file, in order; None for plain text and unknown files."""
    facts = lookup.facts(path)
    language = detect(facts.language, str(path)) if facts is not None else None
    if facts is None or language is None:
        return None
    return lookup.derived(path, facts, lambda: FileFacts.of(path, facts, language))


def own_facts(path: Path, document: Document) -> FileFacts | None:
    """The same of a document as it stands; parses all of it."""
    facts = extract(str(path), document.text, document.language)
    language = detect(document.language, str(path), document.text)
    return FileFacts.of(path, facts, language) if language is not None else None


def own_definitions(
    file: FileFacts, near: Near, but: Place, shown: Callable[[Path], str]
) -> list[Candidate]:
    """Definitions of the names used, in the file itself, outside of ``but``."""
    found = []
    for name in near.names:
        for fact in file.facts.definitions:
            place = Place(file.path, fact.start, fact.end)
            if fact.name != name.name or not file.is_reachable(fact):
                continue
            around = place.start <= but.start and but.end <= place.end
            if not around and not place.overlaps(but):
                item = _Found(file, fact, name.weight, "used here")
                if (candidate := _candidate(item, near, shown)) is not None:
                    found.append(candidate)
    return found


class _Finder:
    """The search for the definitions of one cursor."""

    def __init__(self, asked: Asked, near: Near, lookup: Lookup) -> None:
        self._asked = asked
        self._near = near
        self._lookup = lookup
        self._found: dict[tuple[Path, str], _Found] = {}
        self._brought = {here: item for item in asked.imports for _, here in item.names}
        self._files = self._imported_files()
        self._related = set(lookup.related(asked.language, asked.file))

    def ranked(self) -> list[_Found]:
        """Everything found; a member of something found counts for that."""
        for name in self._near.names:
            if name.name in self._brought:
                self._by_import(name, self._brought[name.name])
            elif name.name not in self._asked.defined:
                self._by_name(name)
        for here, item in self._brought.items():
            weight = _AWAITED if here in self._asked.unused else _UNUSED
            self._by_import(NameInUse(here, weight), item)
        self._inherited()
        for (file, whole), found in list(self._found.items()):
            outer = self._found.get((file, whole.rpartition(".")[0]))
            if outer is not None and outer.fact.kind in CONTAINERS:
                outer.weight = max(outer.weight, found.weight)
                outer.names |= found.names
                del self._found[file, whole]
        return sorted(
            self._found.values(),
            key=lambda found: (-found.weight, str(found.file.path), found.fact.start),
        )

    def _by_import(self, name: NameInUse, item: Import) -> None:
        asked = self._asked
        found = self._lookup.defining(name.name, item, asked.language, asked.file)
        reason = "imported and used here" if name.weight > _UNUSED else "imported here"
        if name.name in asked.unused:
            reason = "imported here, not used yet"
        for definition in found[:1]:
            self._add(definition, name, name.weight, reason)
        if not found and name.weight > _UNUSED:
            # A file that is not on disk yet, or a rule that we do not know.
            self._by_name(name)

    def _by_name(self, name: NameInUse) -> None:
        """A name without an import of its own: from an imported file, the package, anywhere.

        A member is meant only where the name is used as one. What is in no file that can be
        seen from here can only be a member of something that is.
        """
        visible = [
            item
            for item in self._lookup.definitions(name.name, limit=30)
            if item.path != self._asked.file
            and self._same_family(item.path)
            and (name.dotted if item.container else True)
        ]
        for files, weight, reason in (
            (self._files, name.weight * 0.9, "used here, from a file that is imported"),
            (self._related, name.weight * 0.9, "used here, from the same package"),
        ):
            group = [item for item in visible if item.path in files]
            for item in group[:_MOST_HOMONYMS]:
                self._add(item, name, weight, reason)
            if group:
                return
        elsewhere = [item for item in visible if item.container or name.name in self._brought]
        if len(elsewhere) <= _MOST_HOMONYMS and len(name.name) >= _SHORTEST_NAME:
            for item in elsewhere:
                weight = name.weight * 0.5 / len(elsewhere)
                self._add(item, name, weight, "a member of that name is used here")

    def found_in(self, path: Path) -> list[_Found]:
        """What has been found in a file."""
        return [found for (file, _), found in self._found.items() if file == path]

    def modules(self) -> list[tuple[float, FileFacts, str]]:
        """Files that the code here has a name for, with how much that name matters."""
        if self._asked.language in _WITHOUT_MODULES:
            return []
        weights = {name.name: name.weight for name in self._near.names}
        found: dict[Path, tuple[float, FileFacts, str]] = {}
        for item in self._asked.imports:
            for here, paths in self._modules_of(item):
                for path in paths[:_MOST_FILES_OF_A_MODULE]:
                    file = self._file(path)
                    if file is not None and path != self._asked.file:
                        weight = weights.get(here, _UNUSED / 2)
                        found.setdefault(path, (weight, file, here))
        return sorted(found.values(), key=lambda item: (-item[0], str(item[1].path)))

    def _modules_of(self, item: Import) -> Iterator[tuple[str, list[Path]]]:
        asked = self._asked
        if not item.names:
            here = item.alias or re.split(r"[./:]+", item.source.rstrip("/"))[-1]
            yield here, self._lookup.resolve(item, asked.language, asked.file)
            return
        anywhere = self._lookup.resolve(item, asked.language, asked.file)
        for there, here in item.names:
            # What leads nowhere with all names does not with one; most names are no modules.
            if not any(there in (path.stem, path.parent.name) for path in anywhere):
                continue
            if self._lookup.defining(here, item, asked.language, asked.file):
                continue
            only = replace(item, names=((there, here),), wildcard=False)
            paths = self._lookup.resolve(only, asked.language, asked.file)
            yield here, [path for path in paths if there in (path.stem, path.parent.name)]

    def _inherited(self) -> None:
        """The classes that the class around the cursor inherits from, and what those do."""
        waiting = [
            (found, 0)
            for found in self._found.values()
            if found.fact.kind in CONTAINERS and found.names & self._near.bases
        ]
        for found, depth in waiting:
            found.inside = True
            found.weight = max(found.weight, _BASE)
            if depth == _MOST_BASES:
                continue
            for name in dict.fromkeys(_NAME.findall(found.fact.signature)):
                above = self._definition_for(name, found.file)
                if name != found.fact.name and above is not None and above not in self._found:
                    file = self._file(above[0])
                    fact = file.first(above[1]) if file is not None else None
                    if file is not None and fact is not None and fact.kind in CONTAINERS:
                        new = _Found(file, fact, _BASE / 2, "inherited from here", {name})
                        self._found[above] = new
                        waiting.append((new, depth + 1))

    def _definition_for(self, name: str, file: FileFacts) -> tuple[Path, str] | None:
        """Where a name that another file uses is defined."""
        if name in file.by_name:
            return file.path, name
        for item in file.facts.imports:
            if any(here == name for _, here in item.names):
                found = self._lookup.defining(name, item, file.facts.language, file.path)
                if found and found[0].path != self._asked.file:
                    return found[0].path, whole_name(found[0].container, found[0].name)
        return None

    def _add(self, definition: Definition, name: NameInUse, weight: float, reason: str) -> None:
        file = self._file(definition.path)
        whole = whole_name(definition.container, definition.name)
        fact = file.first(whole) if file is not None else None
        if file is None or fact is None or definition.path == self._asked.file:
            return
        # A constructor says less than its class.
        if (
            fact.kind == "module"
            or fact.name in CONSTRUCTORS
            or fact.kind == "constructor"
            or not file.is_reachable(fact)
        ):
            return
        key = (definition.path, whole)
        found = self._found.setdefault(key, _Found(file, fact, 0.0, reason))
        if weight > found.weight:
            found.weight, found.reason = weight, reason
        found.names.add(name.name)

    def _file(self, path: Path) -> FileFacts | None:
        return file_facts(self._lookup, path)

    def _imported_files(self) -> set[Path]:
        """The files that the imports lead to."""
        files: set[Path] = set()
        for item in self._asked.imports:
            files.update(self._lookup.resolve(item, self._asked.language, self._asked.file))
            if len(files) >= _MOST_IMPORTED_FILES:
                break
        return files

    def _same_family(self, path: Path) -> bool:
        return _same_family(path.suffix or path.name, self._asked.language)


@lru_cache(maxsize=1_024)
def _same_family(name: str, language: str) -> bool:
    """Whether a file of this extension (or name) and code in ``language`` see each other."""
    other = detect(None, f"a{name}" if name.startswith(".") else name)
    languages = {other.id if other is not None else "", language}
    return len(languages) == 1 or any(languages <= family for family in _FAMILIES)


def _candidate(found: _Found, near: Near, shown: Callable[[Path], str]) -> Candidate | None:
    file, fact = found.file, found.fact
    header, depth = container_headers(fact, file.by_name, file.language)
    used = {name.name for name in near.names}
    forms = forms_of(file, fact, used, depth=depth, inside=found.inside)
    if not forms:
        return None
    return Candidate(
        path=shown(file.path),
        kind="definition",
        place=Place(file.path, fact.start, fact.end),
        reason=f"defines {fact.name} ({found.reason})",
        forms=forms,
        header=header,
        name=whole_name(fact.container, fact.name),
        wanted=found.weight >= _WANTED,
        also=tuple(Place(file.path, part.start, part.end) for part in parts_of(file, fact)[1:]),
    )


def _module(
    file: FileFacts, name: str, near: Near, without: set[str], shown: Callable[[Path], str]
) -> Candidate:
    """The names that a module defines. It takes no text of the file, so nothing overlaps it."""
    form = module_form(file, near.identifiers, without)
    return Candidate(
        path=shown(file.path),
        kind="definition",
        place=Place(file.path, 0, 0),
        reason=f"is imported as {name}",
        forms=(form,) if form else (),
        name=f"{name}.*",
    )
