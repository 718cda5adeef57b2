"""Where no completion is offered: each refusal by its name."""

from __future__ import annotations

import pytest

from fimble.assist.policy import MAX_DOCUMENT_BYTES, refusal
from fimble.assist.settings import CompletionSettings
from fimble_context.syntax import Document

REFUSED = {
    "closed": (None, CompletionSettings()),
    "disabled": (Document("x"), CompletionSettings(enabled=False)),
    "language": (Document("x", language="c"), CompletionSettings(disabled_languages=("c",))),
    "pattern": (
        Document("x", path="/home/u/p/secrets/a.py"),
        CompletionSettings(exclude_patterns=("secrets/",)),
    ),
    "size": (Document("é" * (MAX_DOCUMENT_BYTES // 2 + 1)), CompletionSettings()),
    "binary": (Document("a\0b"), CompletionSettings()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    found = refusal(*REFUSED[name])
    assert found is not None
    assert found.name == name
    assert found.reason.endswith(".")


@pytest.mark.parametrize(
    ("path", "patterns", "excluded"),
    [
        ("/p/.env", (".env",), ".env"),
        ("C:\\p\\.env", (".env",), ".env"),
        ("/p/a.min.js", ("*.min.js", "!keep.min.js"), "*.min.js"),
        ("/p/keep.min.js", ("*.min.js", "!keep.min.js"), None),
        ("/p/environment.py", (".env",), None),
        ("", ("*",), None),
    ],
)
def test_patterns_are_those_of_gitignore(
    path: str, patterns: tuple[str, ...], excluded: str | None
) -> None:
    found = refusal(Document("x", path=path), CompletionSettings(exclude_patterns=patterns))
    assert (found.reason if found else None) == (
        f"completion.excludePatterns has {excluded}." if excluded else None
    )


def test_a_document_of_the_largest_size_is_answered() -> None:
    assert refusal(Document("a" * MAX_DOCUMENT_BYTES), CompletionSettings()) is None
    assert refusal(Document("é" * (MAX_DOCUMENT_BYTES // 2)), CompletionSettings()) is None
