"""The text around the cursor: cut at line ends, within the budget, nearly all of it used."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.assembly import Context, assemble
from fimble_context.syntax import Document

# Cuts text as Qwen's pre-tokenizer does where it matters: a line end takes blank lines with it.
_TOKEN = re.compile(r"\s*\n+|[^\W\d]{1,6}|\d|[^\s\w]+\n*|[^\S\n]+|.", re.DOTALL)


def tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, texts: Sequence[str]) -> list[int]:
        self.calls += 1
        return [tokens(text) for text in texts]


def around(marked: str, budget: int, counter: Counter | None = None) -> Context:
    offset = marked.index("│")
    document = Document(marked.replace("│", ""), path="a.py")
    return assemble(document, offset, budget=budget, count_tokens=counter or Counter())


def texts(context: Context) -> tuple[str, str]:
    prefix, suffix = context.sections
    assert (prefix.kind, suffix.kind) == ("prefix", "suffix")
    assert (prefix.path, suffix.path) == ("a.py", "a.py")
    return prefix.text, suffix.text


def test_a_small_document_is_taken_whole() -> None:
    context = around("def f():\n    return │1\n", 100)
    assert texts(context) == ("def f():\n    return ", "1\n")
    assert context.left_out == ()


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_do_not_change_the_prompt(end: str) -> None:
    marked = "import os\n\n\ndef f():\n    │pass\n\nx = 1\n"
    assert around(marked.replace("\n", end), 100) == around(marked, 100)


def test_a_cursor_between_cr_and_lf_is_at_the_line_end() -> None:
    assert texts(around("a\r│\nb", 100)) == ("a", "\nb")


def test_the_byte_order_mark_is_dropped() -> None:
    assert texts(around("\ufeffx = │1", 100)) == ("x = ", "1")
    assert texts(around("│\ufeffx = 1", 100)) == ("", "x = 1")


@pytest.mark.parametrize("budget", [0, 1, 50])
def test_an_empty_document(budget: int) -> None:
    context = around("│", budget)
    assert texts(context) == ("", "")
    assert context.left_out == ()


def test_cuts_are_at_line_ends_and_reported() -> None:
    lines = [f"name_{number} = {number}\n" for number in range(500)]
    context = around("".join(lines[:250]) + "name│ = 1\n" + "".join(lines[250:]), 400)
    prefix, suffix = texts(context)
    assert prefix.startswith("name_") and suffix.endswith("\n")
    assert {item.reason for item in context.left_out} == {
        "text further up is over the budget",
        "text further down is over the budget",
    }
    used = sum(section.tokens for section in context.sections)
    assert 0.97 * 400 <= used <= 400
    assert 0.2 <= context.sections[1].tokens / used <= 0.3


def test_what_one_side_does_not_need_goes_to_the_other() -> None:
    lines = "".join(f"name_{number} = {number}\n" for number in range(500))
    for marked in (f"x│\n{lines}", f"{lines}x│"):
        used = sum(section.tokens for section in around(marked, 400).sections)
        assert 0.97 * 400 <= used <= 400


def test_only_a_line_over_the_budget_is_cut_inside() -> None:
    line = "value, " * 10_000
    context = around(f"first\n{line}│{line}\nlast", 200)
    prefix, suffix = texts(context)
    assert prefix and line.endswith(prefix)
    assert suffix and line.startswith(suffix)
    assert 180 <= sum(section.tokens for section in context.sections) <= 200


def test_a_far_line_that_does_not_fit_ends_the_side() -> None:
    context = around(f"{'x ' * 100_000}\nnear = 1\n│", 100)
    assert texts(context)[0] == "near = 1\n"


def test_the_usual_case_costs_one_count() -> None:
    counter = Counter()
    lines = "".join(f"some_name_{number} = other_name({number})\n" for number in range(300))
    around(f"{lines}x = │\n{lines}", 600, counter)
    assert counter.calls == 1


_TEXT = st.lists(
    st.sampled_from(["a", "bc ", "\n", "\r\n", "\r", "  ", "(", "\ufeff", "é", "\0"])
).map("".join)


@settings(max_examples=300, deadline=None)
@given(_TEXT, _TEXT, st.integers(0, 60))
def test_never_over_budget_and_always_adjoining(before: str, after: str, budget: int) -> None:
    document = Document(before + after)
    context = assemble(document, len(before), budget=budget, count_tokens=Counter())
    prefix, suffix = context.sections
    assert prefix.tokens + suffix.tokens <= max(budget, 0)
    assert (prefix.tokens, suffix.tokens) == (tokens(prefix.text), tokens(suffix.text))
    whole = document.text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert prefix.text + suffix.text in whole
    if not context.left_out:
        assert prefix.text + suffix.text == whole


FUNCTIONS = "".join(
    f"def function_{number}(first, second):\n"
    + f"    value = first * {number}\n" * 3
    + "    return value + second\n\n\n"
    for number in range(120)
)


@pytest.mark.parametrize("skeleton", [False, True])
@pytest.mark.parametrize("budget", [300, 1000, 2000])
@pytest.mark.parametrize("place", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_nearly_all_of_the_budget_is_used(skeleton: bool, budget: int, place: float) -> None:
    document = Document("import os\n\n\n" + FUNCTIONS, path="a.py")
    context = assemble(
        document,
        int(place * len(document.text)),
        budget=budget,
        count_tokens=Counter(),
        skeleton=skeleton,
    )
    a_line = tokens("    value = first * 100\n")
    unused = budget - sum(section.tokens for section in context.sections)
    assert 0 <= unused <= max(a_line, 0.03 * budget)


@pytest.mark.parametrize("skeleton", [False, True])
def test_a_prefix_begins_the_same_for_many_lines(skeleton: bool) -> None:
    document = Document("import os\n\n\n" + FUNCTIONS, path="a.py")
    beginnings = []
    lines = range(300, 400)
    for line in lines:
        context = assemble(
            document,
            document.line_end(line),
            budget=2000,
            count_tokens=Counter(),
            skeleton=skeleton,
        )
        beginnings.append("".join(section.text for section in context.sections[:-1])[:500])
    changes = sum(this != last for this, last in pairwise(beginnings))
    assert changes <= len(lines) // 6
    assert all(beginning.startswith(("def ", "import ")) for beginning in beginnings)
