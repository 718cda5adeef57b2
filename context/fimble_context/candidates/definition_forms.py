"""A definition in forms of different length: from its whole signature to its members' names.

Names alone cost few tokens and are most of what a model cannot guess about another file. Knows
facts of files; what is wanted of them is told by whoever asks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from fimble_context.candidates.chunks import signature_of
from fimble_context.index.facts import Fact, Facts
from fimble_context.syntax.languages import Language
from fimble_context.syntax.symbols import CONTAINERS

__all__ = ["CONSTRUCTORS", "FileFacts", "forms_of", "module_form", "parts_of", "whole_name"]

CONSTRUCTORS = frozenset({"__init__", "constructor", "new", "init"})
_OPEN = CONTAINERS | {"module"}
_MEMBERS = (40, 12)  # how many members of a class its longer forms show
_NAMES = (40, 16)  # how many members the shortest forms name
_MOST_PARTS = 4  # a struct and its first implementations
_LONGEST = 6_000  # code points of a form
_LONGEST_HEADER = 240  # of a short form's header
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file's facts, by the whole names of its definitions (``Outer.inner``)."""

    path: Path
    language: Language
    facts: Facts
    by_name: dict[str, list[Fact]]
    members: dict[str, list[Fact]]

    @classmethod
    def of(cls, path: Path, facts: Facts, language: Language) -> FileFacts:
        """Ordered once, asked often."""
        by_name: dict[str, list[Fact]] = {}
        members: dict[str, list[Fact]] = {}
        for fact in facts.definitions:
            by_name.setdefault(whole_name(fact.container, fact.name), []).append(fact)
            members.setdefault(fact.container, []).append(fact)
        return cls(path, language, facts, by_name, members)

    def is_reachable(self, fact: Fact) -> bool:
        """Whether a definition can be used from outside: it is not inside a function."""
        parts = fact.container.split(".") if fact.container else []
        names = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
        return all(outer.kind in _OPEN for name in names for outer in self.by_name.get(name, ()))

    def first(self, whole: str) -> Fact | None:
        """The first definition of a whole name."""
        return next(iter(self.by_name.get(whole, ())), None)

    def members_of(self, fact: Fact) -> list[Fact]:
        """The members of a class, and what its constructor makes fields of."""
        whole = whole_name(fact.container, fact.name)
        found = [
            item
            for item in self.members.get(whole, ())
            if fact.start <= item.start and item.end <= fact.end
        ]
        known = {item.name for item in found}
        for name in CONSTRUCTORS:
            for item in self.members.get(f"{whole}.{name}", ()):
                if item.kind == "field" and item.name not in known:
                    known.add(item.name)
                    found.append(item)
        return found


def forms_of(
    file: FileFacts, fact: Fact, used: Set[str], *, depth: int = 0, inside: bool = False
) -> tuple[str, ...]:
    """The forms of a definition, the longest first.

    ``used`` are names near the cursor: members of that name stay in short forms. ``inside``:
    the cursor is in a class that inherits from it, so what is private matters too.
    """
    parts = parts_of(file, fact)
    forms = [_forms(file, part, used, depth, inside) for part in parts]
    texts = dict.fromkeys(
        "".join(form[min(number, len(form) - 1)] for form in forms)
        for number in range(max(map(len, forms)))
    )
    return tuple(
        sorted((text for text in texts if 0 < len(text) <= _LONGEST), key=len, reverse=True)
    )


def parts_of(file: FileFacts, fact: Fact) -> list[Fact]:
    """A definition, and what implements it elsewhere in its file."""
    named = file.by_name[whole_name(fact.container, fact.name)]
    return [fact, *(item for item in named if item.kind == "impl" and item != fact)][:_MOST_PARTS]


def _forms(file: FileFacts, fact: Fact, used: Set[str], depth: int, inside: bool) -> list[str]:
    """The forms of one definition, the longest first; at least one."""
    members = file.members_of(fact) if fact.kind in CONTAINERS else []
    if not members:
        forms = [signature_of(fact, (), file.language, depth=depth)]
        forms += [signature_of(_short(fact), (), file.language, depth=depth)]
    else:
        ranked = _ranked(members, used, inside)
        forms = [
            _class_form(file.language, fact, ranked, size, depth)
            for size in dict.fromkeys(min(size, len(ranked)) for size in _MEMBERS)
        ]
        named = sum(member.name in used for member in ranked)
        has_constructor = any(_is_constructor(member) for member in ranked)
        short = replace(_short(fact), doc="")
        forms.append(_class_form(file.language, short, ranked, named + has_constructor, depth))
        forms += [_class_form(file.language, short, ranked, 0, depth, most) for most in _NAMES]
    return forms


def module_form(file: FileFacts, used: Iterable[str], without: Set[str]) -> str:
    """What a file defines at its top, by name, with what resembles ``used`` first."""
    words = {word for name in used for word in words_in(name)}
    top = [
        item
        for item in file.members.get("", ())
        if not item.name.startswith("_") and item.name not in without and item.kind != "impl"
    ]

    def rank(item: Fact) -> tuple[int, int]:
        return -len(words & set(words_in(item.name))), item.start

    names = dict.fromkeys(item.name for item in sorted(top, key=rank))
    return _names_line(file.language, list(names), "", _NAMES[0])


def words_in(name: str) -> list[str]:
    """``parse_HTTPHeader`` → parse, http, header."""
    return [word.lower() for word in _WORD.findall(name)]


def whole_name(container: str, name: str) -> str:
    """A definition's name with those around it."""
    return f"{container}.{name}" if container else name


def _is_constructor(member: Fact) -> bool:
    return member.name in CONSTRUCTORS or member.kind == "constructor"


def _short(fact: Fact) -> Fact:
    if len(fact.signature) <= _LONGEST_HEADER:
        return fact
    return replace(fact, signature=fact.signature[:_LONGEST_HEADER].rstrip() + " ...")


def _ranked(members: Sequence[Fact], used: Set[str], inside: bool) -> list[Fact]:
    """Members as a form keeps them: used near the cursor, the constructor, public ones."""

    def rank(member: Fact) -> tuple[bool, bool, bool, bool, int]:
        dunder = member.name.startswith("__")
        return (
            member.name not in used,
            not _is_constructor(member),
            dunder,
            member.name.startswith("_") and not inside,
            member.start,
        )

    return sorted(members, key=rank)


def _class_form(
    language: Language,
    fact: Fact,
    ranked: Sequence[Fact],
    size: int,
    depth: int,
    most: int = _NAMES[0],
) -> str:
    """The first ``size`` members by their signatures, the others by their names."""
    shown = sorted(ranked[:size], key=lambda item: item.start)
    text = signature_of(fact, [_short(item) for item in shown], language, depth=depth)
    known = {item.name for item in shown}
    rest = dict.fromkeys(
        item.name
        for item in ranked[size:]
        if item.name not in known and not item.name.startswith("__")
    )
    line = _names_line(language, list(rest), "    " * (depth + 1), most)
    if not line:
        return text
    if not shown:
        # No members' lines to stand among: the names take the place of the body.
        body = text.rstrip("\n")
        if not body.endswith(language.elision):
            return text
        opening = " {" if language.closing == "}" else ""
        end = f"{'    ' * depth}{language.closing}\n" if language.closing else ""
        return f"{body.removesuffix(language.elision)}{opening}\n{line}{end}"
    if language.closing:
        body, _, last = text.rstrip("\n").rpartition("\n")
        return f"{body}\n{line}{last}\n"
    return f"{text.rstrip()}\n{line}"


def _names_line(language: Language, names: Sequence[str], indent: str, most: int) -> str:
    if not names or not language.comment:
        return ""
    more = ", ..." if len(names) > most else ""
    return f"{indent}{language.comment} {', '.join(names[:most])}{more}\n"
