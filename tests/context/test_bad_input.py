"""Whatever a text is, questions about it get an answer: a smaller one, never an error."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.assembly import assemble
from fimble_context.syntax import (
    LANGUAGES,
    Document,
    Edit,
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
    walk,
)
from fimble_context.syntax import tree as syntax_tree
from fimble_context.syntax.signatures import render_all

IDS = [language.id for language in LANGUAGES]
FRAGMENTS = [
    "def f(self, x):", "class A", "{", "}", "(", ")", "[", "]", "\n", "\r\n", "\r", "  ", "\t",
    '"', "'", "`", "#", "//", "/*", "*/", "<!--", "-->", "<a>", "</a>", "import a", "func f()",
    "fn f()", "struct s", "=", ";", ":", "- a", "a: b", "---", "# h", "\0", "\ud800", "😀", "µ",
    "${", "<<EOF", "end", "do", "if x", "@media", "SELECT a", "CREATE TABLE t (", "$$", "\ufeff",
]  # fmt: skip
TEXT = st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join)


def count(texts: Sequence[str]) -> list[int]:
    return [len(text) // 4 + 1 for text in texts]


def ask_everything(document: Document, offset: int) -> None:
    """Ask every question at one place; check what must hold of any answer."""
    length = len(document.text)
    found = outline(document)
    for symbol in walk(found):
        assert 0 <= symbol.start <= symbol.name_start <= symbol.name_end <= length
        assert symbol.start <= symbol.end <= length
        assert "\r" not in symbol.signature
    if document.syntax_language:
        render_all(found, document.syntax_language)
    symbols_at(document, offset)
    for scope in enclosing_scopes(document, offset):
        assert 0 <= scope.start <= scope.body_start <= scope.body_end <= scope.end <= length
    assert text_kind(document, offset) in ("code", "comment", "string")
    end = min(length, offset + 5)
    for span in (
        enclosing_node(document, offset, end),
        enclosing_statements(document, offset, end),
    ):
        assert 0 <= span.start <= span.end <= length
    offsets = [cut.offset for cut in cut_points(document, 0, length)]
    assert offsets == sorted(set(offsets))
    assert error_count(document) >= 0
    references(document, offset, end)
    imports(document)
    for budget in (0, 7, 120):
        context = assemble(document, offset, budget=budget, count_tokens=count, skeleton=True)
        assert sum(section.tokens for section in context.sections) <= budget


@pytest.mark.parametrize("language", [*IDS, "plaintext"])
@settings(max_examples=25, deadline=None)
@given(text=TEXT, place=st.floats(0, 1))
def test_broken_text_in_every_language(language: str, text: str, place: float) -> None:
    document = Document(text, language=language)
    ask_everything(document, int(place * len(text)))
    document.apply(Edit(len(text) // 2, len(text) // 2 + 3, "x\r"))
    ask_everything(document, int(place * len(document.text)))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("json", '{"a":' * 3_000 + "1" + "}" * 3_000),
        ("javascript", "f(" * 5_000),
        ("javascript", "function f() {" * 500 + "}" * 500),
        ("python", "[" * 5_000),
        ("html", "<div>" * 2_000),
        ("markdown", "> " * 500 + "x\n"),
        ("yaml", "".join(" " * depth + f"k{depth}:\n" for depth in range(190))),
        ("yaml", "".join(" " * depth + f"k{depth}:\n" for depth in range(400))),
        ("yaml", "- " * 1_000),
        ("yaml", "a: " + "? " * 1_000),
        ("yaml", ": " * 1_000),
    ],
    ids=lambda value: value[:12],
)
def test_deep_nesting(language: str, text: str) -> None:
    ask_everything(Document(text, language=language), len(text) // 2)


def test_a_skeleton_that_changes_with_the_prefix_stays_within_the_budget() -> None:
    """Found by random edits: the prefix grew into what the skeleton was still counted for."""
    block = """export function List({ items }: { items: Item[] }) {
  return (
    <ul>
      {items.map((item) => (
        <li key={item.id}>{item.name}</li>
      ))}
    </ul>
  );
}
"""
    broken = block.replace("items: Item[]", "ite }\n  return a;\n}\nms: Item[]")
    text = block + broken + block + block.replace("(item) => (", "(item) =>\r (")
    document = Document(text, path="a.tsx")
    for offset in range(0, len(text), 7):
        ask_everything(document, offset)


@pytest.mark.parametrize("language", ["javascript", "json", "plaintext"])
def test_a_line_of_a_million_characters(language: str) -> None:
    text = "[" + "123, " * 200_000 + "1]"
    document = Document(text, language=language)
    document.apply(Edit(500_000, 500_000, "4"))
    assert document.position_at(500_001).column == 500_001
    context = assemble(document, 500_001, budget=200, count_tokens=count, skeleton=True)
    assert 150 <= sum(section.tokens for section in context.sections) <= 200


def test_a_file_of_fifty_megabytes_is_plain_text_that_can_be_edited() -> None:
    document = Document("some words in a line of text\n" * 1_800_000, path="big.py")
    assert document.tree is None
    middle = document.line_start(900_000)
    document.apply(Edit(middle, middle, "x = 1\n"))
    assert document.line_text(900_000) == "x = 1"
    context = assemble(document, middle + 5, budget=500, count_tokens=count, skeleton=True)
    assert 485 <= sum(section.tokens for section in context.sections) <= 500


def test_giving_up_takes_no_longer_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser asks often enough for its limit to mean something."""
    looks: list[float] = []

    def next_second() -> float:
        looks.append(1.0)
        return sum(looks)

    monkeypatch.setattr(time, "thread_time", next_second)
    monkeypatch.setattr(syntax_tree, "PARSE_SECONDS", 50.0)
    assert Document("x = [" + "1, " * 100_000 + "]\n", language="python").tree is None
    assert 50 <= len(looks) <= 60
