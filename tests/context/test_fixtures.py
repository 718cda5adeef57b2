"""What the library says about source text, as told by the files under ``fixtures/``.

A fixture is source with a mark │ for the cursor (two marks for a selection), then sections
with what is expected. With FIMBLE_UPDATE_FIXTURES=1 in the environment the expectations are
rewritten from the results, to be looked at with ``git diff``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fimble_context.assembly import assemble
from fimble_context.syntax import (
    LANGUAGES,
    Document,
    Symbol,
    cut_points,
    enclosing_node,
    enclosing_scopes,
    enclosing_statements,
    error_count,
    imports,
    outline,
    references,
    symbols_at,
    text_kind,
)
from fimble_context.syntax.signatures import render_all

FIXTURES = Path(__file__).parent / "fixtures"
FILES = sorted(FIXTURES.rglob("*.txt"))
MARK = "│"
_SECTION = re.compile(r"^=== (\S+)(?: (\S+))?\n", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    document: Document
    start: int
    end: int


def read(file: Path) -> tuple[str, str, dict[str, str]]:
    """The path named, the marked source and the expected sections of a fixture."""
    parts = [part or "" for part in _SECTION.split(file.read_text(encoding="utf-8"))[1:]]
    sections = list(zip(parts[::3], parts[1::3], parts[2::3], strict=True))
    (name, path, source), *expected = sections
    assert name == "source"
    return path, source, {f"{name} {argument}".strip(): text for name, argument, text in expected}


def case(path: str, source: str) -> Case:
    before, *rest = source.split(MARK)
    start = len(before)
    end = start + (len(rest[0]) if len(rest) == 2 else 0)
    return Case(Document("".join([before, *rest]), path=path), start, end)


def show_outline(case: Case) -> list[str]:
    def shown(symbol: Symbol, indent: str) -> list[str]:
        line = f"{indent}{symbol.kind} {symbol.name} @{case.document.line_of(symbol.start) + 1}"
        inner = [text for child in symbol.children for text in shown(child, indent + "  ")]
        return [line + (f"  ({symbol.doc})" if symbol.doc else ""), *inner]

    return [line for symbol in outline(case.document) for line in shown(symbol, "")]


def show_signatures(case: Case) -> list[str]:
    language = case.document.syntax_language
    assert language is not None
    return render_all(outline(case.document), language).splitlines()


def show_scopes(case: Case) -> list[str]:
    scopes = enclosing_scopes(case.document, case.start)
    return [f"{scope.name or '-'}: {' ⏎ '.join(scope.header.splitlines())}" for scope in scopes]


def show_symbols(case: Case) -> list[str]:
    return [f"{symbol.kind} {symbol.name}" for symbol in symbols_at(case.document, case.start)]


def show_kind(case: Case) -> list[str]:
    return [text_kind(case.document, case.start)]


def show_node(case: Case) -> list[str]:
    span = enclosing_node(case.document, case.start, case.end)
    return case.document.text[span.start : span.end].splitlines()


def show_statements(case: Case) -> list[str]:
    span = enclosing_statements(case.document, case.start, case.end)
    return case.document.text[span.start : span.end].splitlines()


def show_references(case: Case) -> list[str]:
    found = references(case.document, case.start, case.end)
    return [f"{reference.kind} {reference.name}" for reference in found]


def show_imports(case: Case) -> list[str]:
    lines = []
    for item in imports(case.document):
        names = [name if name == here else f"{name} as {here}" for name, here in item.names]
        parts = [item.source, f"as {item.alias}" if item.alias else "", "*" * item.wildcard]
        lines.append(" ".join(filter(None, [*parts, f": {', '.join(names)}" if names else ""])))
    return lines


def show_cuts(case: Case) -> list[str]:
    """Every line of the text, with the depth where it may be cut before it."""
    document = case.document
    depths = {cut.offset: cut.depth for cut in cut_points(document, 0, len(document.text))}
    lines = range(document.line_count - document.text.endswith("\n"))
    return [
        f"{depths.pop(document.line_start(line), '-')}|{document.line_text(line)}" for line in lines
    ]


def show_context(case: Case, budget: int) -> list[str]:
    """The sections for a budget; a token is four characters of a line here."""

    def count(texts: Sequence[str]) -> list[int]:
        return [sum(len(line) // 4 + 1 for line in text.split("\n")) for text in texts]

    context = assemble(case.document, case.start, budget=budget, count_tokens=count, skeleton=True)
    lines = []
    for section in context.sections:
        lines.append(f"--- {section.kind}, {section.tokens} tokens")
        lines += section.text.splitlines()
    return lines


def show_errors(case: Case) -> list[str]:
    return [str(error_count(case.document))]


SHOW: dict[str, Callable[[Case], list[str]]] = {
    "outline": show_outline,
    "signatures": show_signatures,
    "scopes": show_scopes,
    "symbols": show_symbols,
    "kind": show_kind,
    "node": show_node,
    "statements": show_statements,
    "references": show_references,
    "imports": show_imports,
    "cuts": show_cuts,
    "errors": show_errors,
}


def results(path: str, source: str, names: list[str]) -> dict[str, str]:
    found = case(path, source)
    shown = {}
    for name in names:
        show, _, argument = name.partition(" ")
        lines = show_context(found, int(argument)) if argument else SHOW[show](found)
        shown[name] = "".join(f"{line}\n" for line in lines)
    return shown


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_fixture(file: Path) -> None:
    path, source, expected = read(file)
    found = results(path, source, list(expected))
    if os.environ.get("FIMBLE_UPDATE_FIXTURES"):
        sections = "".join(f"=== {name}\n{text}" for name, text in found.items())
        text = f"=== source {path}\n{source}{sections}"
        file.write_text(text, encoding="utf-8", newline="\n")
        return
    assert found == expected


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
def test_every_language_has_three_fixtures(language: object) -> None:
    folder = FIXTURES / getattr(language, "id", "")
    assert len(list(folder.glob("*.txt"))) >= 3


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_line_ends_do_not_change_the_result(file: Path) -> None:
    path, source, expected = read(file)
    names = list(expected)
    assert results(path, source.replace("\n", "\r\n"), names) == results(path, source, names)
