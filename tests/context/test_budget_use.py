"""A budget is used: at least 97 % of it where there is enough to fill it, never more than all."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fimble_context.assembly import assemble
from fimble_context.assembly.assemble import Others, assemble_with
from fimble_context.syntax import Document, Edit

# As Qwen's tokenizer splits text, about: counts of lines add up.
TOKEN = re.compile(r"\s*\n+|[^\W\d]{1,5}|\d|[^\s\w]+\n*|[^\S\n]+(?=\S)|.", re.DOTALL)
WORDS = st.text("abcdefgh_", min_size=1, max_size=12)
LINES = st.builds(
    lambda indent, words, blank: f"{'    ' * indent}{' = '.join(words)}\n{blank}",
    st.integers(0, 2),
    st.lists(WORDS, min_size=1, max_size=14),
    st.sampled_from(("", "", "", "\n", "\n\n")),
)


def count(texts: Sequence[str]) -> list[int]:
    return [len(TOKEN.findall(text)) for text in texts]


def filled(lines: Sequence[str], budget: int) -> str:
    """The lines, again and again, under different functions, until there is enough of them."""
    pieces: list[str] = []
    tokens = 0
    while tokens < 2 * budget:
        piece = f"def function_{len(pieces)}(value):\n" + "".join(f"    {line}" for line in lines)
        pieces.append(piece)
        tokens += count([piece])[0]
    return "".join(pieces)


@settings(deadline=None, max_examples=60)
@given(
    lines=st.lists(LINES, min_size=1, max_size=12),
    budget=st.integers(256, 8192),
    place=st.floats(0, 1),
    skeleton=st.booleans(),
)
@example(lines=["value = value\n"], budget=256, place=1.0, skeleton=True)
@example(lines=["value = value\n"], budget=256, place=0.0, skeleton=False)
@example(
    lines=["_ = _ = _ = _ = _ = _ = _ = _ = _ = _ = _ = _ = ___\n"],
    budget=256,
    place=1.0,
    skeleton=False,
)
@example(lines=[f"f({', '.join(['argument'] * 14)})\n"], budget=300, place=0.5, skeleton=True)
def test_at_least_97_percent_of_a_budget_is_used(
    lines: list[str], budget: int, place: float, skeleton: bool
) -> None:
    text = filled(lines, budget)
    document = Document(text, path="a.py")
    offset = int(len(text) * place)
    context = assemble(document, offset, budget=budget, count_tokens=count, skeleton=skeleton)
    assert budget * 0.97 <= context.tokens <= budget
    # Headers of a skeleton count as the whole pieces that they begin.
    assert sum(count([section.text for section in context.sections])) <= context.tokens


@settings(deadline=None, max_examples=60)
@given(
    lines=st.lists(LINES, min_size=1, max_size=12),
    budget=st.integers(256, 2048),
    place=st.floats(0, 1),
    typed=st.text("ab (=\n", min_size=1, max_size=12),
)
@example(
    lines=[
        "_ = _ = _ = ______ = ______ = ___________ = ___________ = ___________\n",
        "_ = _ = _ = _ = ___________ = _ = _ = _ = _ = _ = _\n",
    ],
    budget=256,
    place=0.0,
    typed="=",
)
def test_typing_on_keeps_to_the_budget_too(
    lines: list[str], budget: int, place: float, typed: str
) -> None:
    text = filled(lines, budget)
    document = Document(text, path="a.py")
    offset = document.line_end(document.line_of(int(len(text) * place)))
    begin = None
    for character in typed:
        document.apply(Edit(offset, offset, character))
        offset += 1
        made = assemble_with(
            document, offset, Others(begin=begin), budget=budget, count_tokens=count
        )
        begin = made.begin
        context = made.context
        assert budget * 0.97 <= context.tokens <= budget
        # Headers of a skeleton count as the whole pieces that they begin.
        assert sum(count([section.text for section in context.sections])) <= context.tokens
        prefix = next(section for section in context.sections if section.kind == "prefix")
        suffix = next(section for section in context.sections if section.kind == "suffix")
        assert document.text[:offset].endswith(prefix.text)
        assert document.text[offset:].startswith(suffix.text)
