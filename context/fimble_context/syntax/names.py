"""Names that a text uses, and what it imports.

Works from ``references.scm`` and ``imports.scm``; resolves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tree_sitter import Node

from fimble_context.syntax.captures import captured, matches, node_text, span
from fimble_context.syntax.document import Document

__all__ = ["Import", "Reference", "imports", "references"]

_RANK = {"reference.call": 0, "reference.type": 1, "reference.name": 2}


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in use. ``kind`` is ``call``, ``type`` or ``name``; ``start`` in code points."""

    name: str
    kind: str
    start: int


@dataclass(frozen=True, slots=True)
class Import:
    """One imported source. Offsets are code points of the whole statement.

    ``source`` is the module, file or path without quotes, as the language writes it.
    ``names`` are (name in the source, name here); empty where the source itself is what
    gets a name, then ``alias`` is that name if it is not the source's own. ``wildcard``
    means all names.
    """

    source: str
    start: int
    end: int
    names: tuple[tuple[str, str], ...]
    alias: str
    wildcard: bool


def references(document: Document, start: int, end: int) -> list[Reference]:
    """The names used between two offsets, in order; each place once, by what it says most."""
    found: dict[int, tuple[int, Node]] = {}
    first, last = document.byte_of(start), document.byte_of(end)
    for name, node in captured(document, "references", start, end):
        rank = _RANK.get(name)
        if rank is None or node.end_byte <= first or node.start_byte >= last:
            continue
        if node.start_byte not in found or rank < found[node.start_byte][0]:
            found[node.start_byte] = rank, node
    kinds = ("call", "type", "name")
    return [
        Reference(
            node_text(document, node).strip("\"'"), kinds[rank], document.offset_of_byte(byte)
        )
        for byte, (rank, node) in sorted(found.items())
    ]


@dataclass(slots=True)
class _Draft:
    start: int
    end: int
    names: dict[str, str] = field(default_factory=dict)
    alias: str = ""
    wildcard: bool = False


def imports(document: Document) -> list[Import]:
    """The imports of a document, in order; one entry a source."""
    found = [captures for _, captures in matches(document, "imports") if "import" in captures]
    parts: dict[int, dict[int, str]] = {}
    for captures in found:
        for node in captures.get("import.part", ()):
            text = _text(document, node)
            parts.setdefault(captures["import"][0].id, {})[node.start_byte] = text
    drafts: dict[tuple[int, str], _Draft] = {}
    for captures in found:
        statement = captures["import"][0]
        if "import.source" in captures:
            source = _text(document, captures["import.source"][0])
        else:
            source = ".".join(text for _, text in sorted(parts.get(statement.id, {}).items()))
        if not source:
            continue
        start, end = span(document, statement)
        draft = drafts.setdefault((start, source), _Draft(start, end))
        names = [_text(document, node) for node in captures.get("import.name", ())]
        alias = next((_text(document, node) for node in captures.get("import.alias", ())), "")
        for name in names:
            draft.names[name] = alias or draft.names.get(name, name)
        if alias and not names:
            draft.alias = alias
        draft.wildcard |= "import.all" in captures
    return [
        Import(
            source, draft.start, draft.end, tuple(draft.names.items()), draft.alias, draft.wildcard
        )
        for (_, source), draft in sorted(drafts.items(), key=lambda item: item[0])
    ]


def _text(document: Document, node: Node) -> str:
    return node_text(document, node).strip().strip("\"'`<>")
