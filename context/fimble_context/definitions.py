"""Definitions in other files of the names used near a cursor, as candidates.

Names that an import brings come first, through the index and by the language's own rules;
then what the imported files and the rest of the package define; then what the workspace
defines only once. Signatures come from the index: no file is read for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fimble_context.candidates import Candidate, Place
from fimble_context.chunks import container_headers, signature_of
from fimble_context.facts import Fact, Facts
from fimble_context.languages import Language, detect
from fimble_context.lookup import Lookup
from fimble_context.names import Import
from fimble_context.near import NameInUse, Near
from fimble_context.symbols import CONTAINERS

if TYPE_CHECKING:
    from fimble_context.index import Definition

__all__ = ["Asked", "definition_candidates"]

_MOST_IMPORTED_FILES = 30
_MEMBERS = (60, 24, 8)  # how many members of a class its signatures show
_MOST_HOMONYMS = 3  # a name defined more often elsewhere says little about which is meant
_SHORTEST_NAME = 4
_LONGEST = 6_000  # code points of a signature
_UNUSED = 0.02  # the weight of a name that is imported, but not used near the cursor
_WANTED = 0.4
_FAMILIES = (
    frozenset({"javascript", "typescript", "tsx"}),
    frozenset({"c", "cpp"}),
    frozenset({"java", "kotlin", "scala"}),
)
_OPEN = CONTAINERS | {"module"}
_CONSTRUCTORS = frozenset({"__init__", "constructor", "new", "init"})


@dataclass(frozen=True, slots=True)
class Asked:
    """The file that candidates are for: its path, our id of its language, its imports."""

    file: Path
    language: str
    imports: tuple[Import, ...]
    defined: frozenset[str]  # names that the file defines itself


@dataclass(frozen=True, slots=True)
class _File:
    """A file's facts, by the whole names of its definitions (``Outer.inner``)."""

    path: Path
    language: Language
    by_name: dict[str, Fact]
    members: dict[str, list[Fact]]
    rendered: dict[tuple[Fact, ...], str]

    @classmethod
    def of(cls, path: Path, facts: Facts, language: Language) -> _File:
        by_name: dict[str, Fact] = {}
        members: dict[str, list[Fact]] = {}
        for fact in facts.definitions:
            by_name.setdefault(_whole_name(fact.container, fact.name), fact)
            members.setdefault(fact.container, []).append(fact)
        return cls(path, language, by_name, members, {})

    def signature(self, fact: Fact, members: list[Fact], depth: int) -> str:
        """A signature, made once."""
        key = (fact, *members)
        if key not in self.rendered:
            self.rendered[key] = signature_of(fact, members, self.language, depth=depth)
        return self.rendered[key]

    def is_reachable(self, fact: Fact) -> bool:
        """Whether a definition can be used from outside: it is not inside a function."""
        parts = fact.container.split(".") if fact.container else []
        around = (self.by_name.get(".".join(parts[:count])) for count in range(1, len(parts) + 1))
        return all(outer is None or outer.kind in _OPEN for outer in around)


@dataclass(slots=True)
class _Found:
    """A definition that is wanted. ``names`` are those near the cursor that lead to it."""

    file: _File
    fact: Fact
    weight: float
    reason: str
    names: set[str] = field(default_factory=set)


def definition_candidates(
    asked: Asked, near: Near, lookup: Lookup, shown: Callable[[Path], str]
) -> tuple[list[Candidate], list[Candidate]]:
    """Definitions of what is used near the cursor, and of what is imported but not used there.

    The most wanted first. ``shown`` gives the path that a section names.
    """
    used: list[Candidate] = []
    imported: list[Candidate] = []
    for found in _Finder(asked, near, lookup).ranked():
        candidate = _candidate(found, near, shown)
        if candidate is not None:
            (used if found.weight > _UNUSED else imported).append(candidate)
    return used, imported


class _Finder:
    """The search for the definitions of one cursor."""

    def __init__(self, asked: Asked, near: Near, lookup: Lookup) -> None:
        self._asked = asked
        self._near = near
        self._lookup = lookup
        self._found: dict[tuple[Path, str], _Found] = {}
        self._brought = {here: item for item in asked.imports for _, here in item.names}
        self._modules = self._imported_files()
        self._related = set(lookup.related(asked.language, asked.file))

    def ranked(self) -> list[_Found]:
        """Everything found; a member of something found counts for that."""
        for name in self._near.names:
            if name.name in self._brought:
                self._by_import(name, self._brought[name.name])
            elif name.name not in self._asked.defined:
                self._by_name(name)
        for here, item in self._brought.items():
            self._by_import(NameInUse(here, _UNUSED, "name"), item)
        for (file, whole), found in list(self._found.items()):
            outer = self._found.get((file, whole.rpartition(".")[0]))
            if outer is not None:
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
        for definition in found[:1]:
            self._add(definition, name, name.weight, reason)

    def _by_name(self, name: NameInUse) -> None:
        """A name without an import of its own: from an imported file, the package, anywhere."""
        elsewhere = [
            item
            for item in self._lookup.definitions(name.name, limit=30)
            if item.path != self._asked.file and self._same_family(item.path)
        ]
        for files, weight, reason in (
            (self._modules, name.weight * 0.9, "used here, from a file that is imported"),
            (self._related, name.weight * 0.9, "used here, from the same package"),
        ):
            group = [item for item in elsewhere if item.path in files]
            for item in group[:_MOST_HOMONYMS]:
                self._add(item, name, weight, reason)
            if group:
                return
        if len(elsewhere) <= _MOST_HOMONYMS and len(name.name) >= _SHORTEST_NAME:
            for item in elsewhere:
                weight = name.weight * 0.5 / len(elsewhere)
                self._add(item, name, weight, "the name is used here")

    def _add(self, definition: Definition, name: NameInUse, weight: float, reason: str) -> None:
        file = self._file(definition.path)
        whole = _whole_name(definition.container, definition.name)
        fact = file.by_name.get(whole) if file is not None else None
        if file is None or fact is None or definition.path == self._asked.file:
            return
        # A constructor says less than its class.
        if fact.name in _CONSTRUCTORS or fact.kind == "constructor" or not file.is_reachable(fact):
            return
        key = (definition.path, whole)
        found = self._found.setdefault(key, _Found(file, fact, 0.0, reason))
        if weight > found.weight:
            found.weight, found.reason = weight, reason
        found.names.add(name.name)

    def _file(self, path: Path) -> _File | None:
        facts = self._lookup.facts(path)
        language = detect(facts.language, str(path)) if facts is not None else None
        if facts is None or language is None:
            return None
        return self._lookup.remembered(("file", path), lambda: _File.of(path, facts, language))

    def _imported_files(self) -> set[Path]:
        """The files that the imports lead to."""
        files: set[Path] = set()
        for item in self._asked.imports:
            files.update(self._lookup.resolve(item, self._asked.language, self._asked.file))
            if len(files) >= _MOST_IMPORTED_FILES:
                break
        return files

    def _same_family(self, path: Path) -> bool:
        language = detect(None, str(path))
        languages = {language.id if language is not None else "", self._asked.language}
        return len(languages) == 1 or any(languages <= family for family in _FAMILIES)


def _candidate(found: _Found, near: Near, shown: Callable[[Path], str]) -> Candidate | None:
    file, fact = found.file, found.fact
    header, depth = container_headers(fact, file.by_name, file.language)
    texts = [
        signature_of(fact, members, file.language, depth=depth) for members in _members(found, near)
    ]
    forms = dict.fromkeys(text for text in texts if text.strip() and len(text) <= _LONGEST)
    if not forms:
        return None
    return Candidate(
        path=shown(file.path),
        kind="definition",
        place=Place(file.path, fact.start, fact.end),
        reason=f"{', '.join(sorted(found.names))}: {found.reason}",
        forms=tuple(forms),
        header=header,
        name=_whole_name(fact.container, fact.name),
        wanted=found.weight >= _WANTED,
    )


def _members(found: _Found, near: Near) -> list[list[Fact]]:
    """The members that signatures of different length show, more before fewer.

    Those used near the cursor stay longest, then what makes an object.
    """
    fact = found.fact
    if fact.kind not in CONTAINERS:
        return [[]]
    members = [
        item
        for item in found.file.members.get(_whole_name(fact.container, fact.name), ())
        if fact.start <= item.start and item.end <= fact.end
    ]
    used = {name.name for name in near.names}

    def rank(member: Fact) -> tuple[bool, bool, bool, int]:
        return (
            member.name not in used,
            member.name not in _CONSTRUCTORS and member.kind != "constructor",
            member.name.startswith("_"),
            member.start,
        )

    ranked = sorted(members, key=rank)
    few = [item for item in ranked if not all(rank(item)[:2])]
    sizes = dict.fromkeys(min(size, len(ranked)) for size in (*_MEMBERS, len(few)))
    sizes.setdefault(0)
    return [
        sorted(ranked[:size], key=lambda item: item.start) for size in sorted(sizes, reverse=True)
    ]


def _whole_name(container: str, name: str) -> str:
    return f"{container}.{name}" if container else name
