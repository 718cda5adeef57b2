"""Looking at a place parses what an edit has changed, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from fimble.assist.place import place_of
from fimble_context.syntax import Document, Edit
from fimble_context.syntax.tree import SyntaxTree


def test_places_share_the_tree_of_their_document(monkeypatch: pytest.MonkeyPatch) -> None:
    parses: list[bool] = []
    parse = SyntaxTree._parse

    def counted(tree: SyntaxTree, parser: Any, old: Any, seconds: float) -> Any:
        parses.append(old is not None)
        return parse(tree, parser, old, seconds)

    monkeypatch.setattr(SyntaxTree, "_parse", counted)
    document = Document("def f(a):\n    return a\n\n\n" * 20, language="python")
    for _ in range(3):
        document.apply(Edit(4, 5, "g"))
        for offset in (5, 25, 40):
            place_of(document, offset)
    # The first one, and what goes on from it after each edit.
    assert parses == [False, True, True]
