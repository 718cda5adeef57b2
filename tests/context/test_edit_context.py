"""What an edit gets to know: the whole node, its surroundings, what it uses, who uses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble_context.assembly import Diagnostic, EditContext, edit_context
from fimble_context.syntax import Document
from tests.context.workspace_fixture import Counter, Fixture, Opened, opened

FIXTURE = Fixture.parse(
    """=== file prices.py
def parse(text: str) -> int:
    \"\"\"Reads a price.\"\"\"
    return int(text)
=== file report.py
from cart import Cart


def total(cart: Cart) -> int:
    return cart.add("12") + 1


def unrelated() -> None:
    print("nothing")
=== file unrelated.py
def add(text: str) -> str:
    return text
=== cursor cart.py
from prices import parse

LIMIT = 100


def check(price: int) -> bool:
    return price < LIMIT


class Cart:
    \"\"\"Holds prices.\"\"\"

    def add(self, text: str) -> int:
        price = parse(text)│
        if check(price):
            return price
        return 0

    def twice(self, text: str) -> int:
        return self.add(text) * 2
"""
)


def around(case: Opened, selected: str, budget: int = 1000) -> EditContext:
    start = case.document.text.index(selected)
    return edit_context(
        case.document,
        start,
        start + len(selected),
        budget=budget,
        count_tokens=Counter(),
        workspace=case.workspace,
        path=case.path,
    )


def test_a_whole_function_its_surroundings_and_its_callers(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        context = around(case, "def add(self, text: str)")
    assert context.text.startswith("def add(self")
    assert context.text.endswith("return 0")
    assert context.headers == ("class Cart:",)
    assert {(item.kind, item.path) for item in context.sections} == {
        ("definition", "prices.py"),
        ("caller", "cart.py"),
        ("caller", "report.py"),
    }
    by_path = {item.path: item.text for item in context.sections}
    assert "def parse(text: str) -> int" in by_path["prices.py"]
    assert "def check(price: int) -> bool" in by_path["cart.py"]
    assert "def twice" in by_path["cart.py"]
    assert "def total" in by_path["report.py"]
    assert "unrelated" not in by_path["report.py"]


def test_a_statement_is_as_small_as_it_can_be(tmp_path: Path) -> None:
    with opened(FIXTURE, tmp_path) as case:
        context = around(case, "parse(text)")
    assert context.text == "price = parse(text)"
    assert context.headers == ("class Cart:", "def add(self, text: str) -> int:")


@pytest.mark.parametrize("budget", [0, 20, 60, 200])
def test_sections_stay_within_the_budget_and_what_is_missing_is_named(
    budget: int, tmp_path: Path
) -> None:
    with opened(FIXTURE, tmp_path) as case:
        context = around(case, "def add(self, text: str)", budget)
    assert sum(item.tokens for item in context.sections) <= budget
    assert bool(context.left_out) == (budget < 200)


def test_diagnostics_that_touch_it_are_passed_on() -> None:
    document = Document("a = 1\nb = unknown\nc = 3\n", path="a.py")
    near = Diagnostic(10, 17, "undefined name", "linter")
    far = Diagnostic(0, 1, "unused", "linter")
    context = edit_context(
        document, 6, 17, budget=100, count_tokens=Counter(), diagnostics=[near, far]
    )
    assert context.text == "b = unknown"
    assert context.diagnostics == (near,)
    assert context.sections == ()


def test_line_ends_and_places_outside_the_text() -> None:
    document = Document("if a:\r\n    b()\r\n", path="a.py")
    context = edit_context(document, -5, 500, budget=100, count_tokens=Counter())
    assert context.text == "if a:\n    b()"


def test_a_secret_file_has_no_surroundings(tmp_path: Path) -> None:
    fixture = Fixture.parse("=== file a.py\ndef f() -> None: ...\n=== cursor .env\nA=f│\n")
    with opened(fixture, tmp_path) as case:
        assert around(case, "A=f").sections == ()
