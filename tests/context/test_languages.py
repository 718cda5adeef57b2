"""Every row of the language table works, and a language is found as documented."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import get_args

import pytest

from fimble_context.syntax import LANGUAGES, Document, Language, detect, languages
from fimble_context.syntax.languages import QueryName, grammar, prepare, query

IDS = [language.id for language in LANGUAGES]


@pytest.mark.parametrize("language", LANGUAGES, ids=IDS)
def test_every_grammar_loads(language: Language) -> None:
    assert grammar(language) is not None


@pytest.mark.parametrize("name", get_args(QueryName))
@pytest.mark.parametrize("language", LANGUAGES, ids=IDS)
def test_every_query_fits_its_grammar(
    language: Language, name: QueryName, caplog: pytest.LogCaptureFixture
) -> None:
    query.cache_clear()
    with caplog.at_level(logging.WARNING):
        found = query(language, name)
    assert caplog.messages == []
    assert (found is None) == (not languages.query_source(language, name).strip())


@pytest.mark.parametrize(
    ("language_id", "path", "text", "expected"),
    [
        ("typescriptreact", "a.py", "", "tsx"),  # the editor's id wins
        ("plaintext", "a.py", "", "python"),  # one that we do not know does not
        (None, "src/a.PY", "", "python"),
        (None, r"C:\src\Gemfile", "", "ruby"),
        (None, "a.d.ts", "", "typescript"),
        (None, "x.h", "struct a { int b; };", "c"),
        (None, "x.h", "namespace a { class B; }", "cpp"),
        (None, "x.h", "#include <vector>\n", "cpp"),
        (None, "run", "#!/usr/bin/env python3.11\n", "python"),
        (None, "run", "#!/usr/bin/env -S FOO=1 node --x\n", "javascript"),
        (None, "run", "#!/bin/bash -e\r\n", "bash"),
        (None, "run", "\ufeff#! /usr/local/bin/ruby\n", "ruby"),
        (None, "run", "#!", None),
        (None, "notes.txt", "", None),
        (None, "", "", None),
    ],
)
def test_detection(language_id: str | None, path: str, text: str, expected: str | None) -> None:
    found = detect(language_id, path, text)
    assert (found.id if found else None) == expected


def test_a_grammar_that_fails_to_load_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(LANGUAGES[0], module="no_such_grammar_module")
    monkeypatch.setattr(languages, "_BY_LSP_ID", {"broken": broken})
    document = Document("x = 1\n", language="broken")
    assert document.tree is None
    assert query(broken, "definitions") is None


def test_preparing_a_language_leaves_nothing_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    query.cache_clear()
    prepare(LANGUAGES[0])
    monkeypatch.setattr(languages, "Query", None)
    for name in get_args(QueryName):
        assert query(LANGUAGES[0], name) is not None
