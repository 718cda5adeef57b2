"""Cut points and errors, where a fixture would say too much or too little."""

from __future__ import annotations

import pytest

from fimble_context.syntax import (
    CutPoint,
    Document,
    Edit,
    cut_points,
    enclosing_statements,
    error_count,
)


@pytest.mark.parametrize(
    ("language", "good", "worse"),
    [
        ("python", "print(x)", "print(x))"),
        ("javascript", "f({ a: 1 })", "f({ a: 1 })})"),
        ("go", "package a\nfunc f() { g(1) }", "package a\nfunc f() { g(1)) }"),
        ("rust", "fn f() { g(1) }", "fn f() { g(1)) }"),
    ],
)
def test_a_bracket_too_many_parses_worse(language: str, good: str, worse: str) -> None:
    assert error_count(Document(good, language=language)) == 0
    assert error_count(Document(worse, language=language)) > 0


def test_an_edit_is_tried_on_a_copy() -> None:
    document = Document("f(g(x)\n", language="python")
    tried = document.copy()
    tried.apply(Edit(6, 6, ")"))
    assert error_count(tried) < error_count(document)


def test_errors_elsewhere_do_not_count() -> None:
    document = Document("a = )\nb = 1\nc = 2\n", language="python")
    start = document.line_start(2)
    assert error_count(document, start, len(document.text)) == 0
    assert error_count(document, 0, 5) > 0


def test_plain_text_is_cut_at_lines() -> None:
    document = Document("one\ntwo\r\nthree", path="notes.txt")
    assert cut_points(document, 1, 13) == [CutPoint(4, 0), CutPoint(9, 0)]
    span = enclosing_statements(document, 5, 10)
    assert document.text[span.start : span.end] == "two\r\nthree"
    assert error_count(document) == 0


def test_only_the_range_asked_for_is_cut() -> None:
    document = Document("a = 1\n" * 100, language="python")
    assert [cut.offset for cut in cut_points(document, 60, 72)] == [60, 66, 72]
