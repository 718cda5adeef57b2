"""What the index knows of one file: its definitions, its imports, the identifiers in it.

Plain data, to be stored or sent to another process. ``extract`` is the one place where a
file's text becomes facts; secrets are masked there, so that no fact holds one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fimble_context.index.terms import ChunkTerms, chunk_terms, identifiers, term, terms_of
from fimble_context.syntax.document import Document
from fimble_context.syntax.languages import detect
from fimble_context.syntax.names import Import, imports
from fimble_context.syntax.symbols import Symbol, outline
from fimble_context.workspace.secrets import mask_secrets

__all__ = ["EXTRACTION", "Fact", "Facts", "extract", "identifiers", "term", "terms_of"]

#: Counted up when ``extract`` gives other facts for the same text: caches are then rebuilt.
EXTRACTION = 2

_MOST_DEFINITIONS = 2_000
_MOST_IMPORTS = 500
_LONGEST_SIGNATURE = 300
_LONGEST_DOC = 120
_SHORTEST_SECRET = 16
_SUSPECT = re.compile(r"[0-9\"'`]")
# Keys, headings and elements are no definitions that a name elsewhere leads to.
_DATA = frozenset({"json", "yaml", "toml", "html", "markdown"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One definition. Offsets are code points and lines zero-based, of the text as read.

    ``container`` are the names of the definitions around it, joined by dots. For ``kind`` see
    the queries' README. ``signature`` is short, ``doc`` one line or empty; both are masked.
    """

    name: str
    kind: str
    container: str
    start: int
    end: int
    line: int
    end_line: int
    signature: str
    doc: str


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of one file. ``language`` is our id, empty for plain text.

    ``terms`` are numbers that stand for the distinct identifiers (see ``term``), sorted.
    ``chunks`` are only in what ``extract`` gives: the store keeps them apart.
    """

    language: str
    definitions: tuple[Fact, ...]
    imports: tuple[Import, ...]
    terms: tuple[int, ...]
    chunks: tuple[ChunkTerms, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, Any]:
        """Nested lists, for another process."""
        return {
            "language": self.language,
            "definitions": [
                [getattr(definition, field) for field in Fact.__slots__]
                for definition in self.definitions
            ],
            "imports": [
                [item.source, item.start, item.end, item.names, item.alias, item.wildcard]
                for item in self.imports
            ],
            "terms": self.terms,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Facts:
        """The inverse of ``to_json``."""
        return cls(
            data["language"],
            tuple(Fact(*values) for values in data["definitions"]),
            tuple(
                Import(source, start, end, tuple((a, b) for a, b in names), alias, wildcard)
                for source, start, end, names, alias, wildcard in data["imports"]
            ),
            tuple(data["terms"]),
        )


def extract(path: str, text: str, language: str | None = None) -> Facts:
    """The facts of a text. Broken code, or a grammar that fails to load, gives fewer."""
    known = detect(language, path, text)
    name = known.id if known is not None else ""
    terms = identifiers(mask_secrets(text))
    if known is None or name in _DATA:
        return Facts(name, (), (), terms)
    document = Document(text, path=path, language=name)
    definitions = [item for item in _definitions(document) if _is_harmless(item.name)]
    imported = [item for item in imports(document) if _is_harmless(item.source)]
    definitions = definitions[:_MOST_DEFINITIONS]
    chunks = tuple(chunk_terms(text, definitions, terms))
    return Facts(name, tuple(definitions), tuple(imported[:_MOST_IMPORTS]), terms, chunks)


def _masked(line: str) -> str:
    """``mask_secrets`` of a short text; most have nothing that a key is made of."""
    return mask_secrets(line) if _SUSPECT.search(line) else line


def _is_harmless(name: str) -> bool:
    """Whether a name or a module is no key, and no address with a password."""
    return len(name) < _SHORTEST_SECRET or mask_secrets(name) == name


def _definitions(document: Document) -> Iterator[Fact]:
    stack: list[tuple[Symbol, str]] = [(symbol, "") for symbol in reversed(outline(document))]
    while stack:
        symbol, container = stack.pop()
        yield Fact(
            symbol.name,
            symbol.kind,
            container,
            symbol.start,
            symbol.end,
            document.line_of(symbol.start),
            document.line_of(symbol.end),
            _masked(symbol.signature)[:_LONGEST_SIGNATURE],
            _masked(symbol.doc)[:_LONGEST_DOC],
        )
        within = f"{container}.{symbol.name}" if container else symbol.name
        stack += [(child, within) for child in reversed(symbol.children)]
