"""Hunks: they give exactly what was accepted, are small, and move along where they still fit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.edit.hunks import Hunk, apply_hunks, lines_of, minimal_hunks, rebase_hunks
from fimble_context.syntax import Edit

PIECES = ["a", "b", "x = 1", "\n", "\r\n", "\r", "\t", "😀", "é", " ", "\x0c", "\u2028"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@given(TEXTS, TEXTS, st.integers(0, 5))
def test_applying_gives_exactly_the_new_text(before: str, after: str, offset: int) -> None:
    hunks = minimal_hunks(before, after, offset)
    shifted = "." * offset
    assert apply_hunks(shifted + before, hunks) == shifted + after
    assert all(one.end <= other.start for one, other in pairwise(hunks))
    assert not (before == after and hunks)


@given(TEXTS, TEXTS)
def test_no_boundary_is_inside_a_line_end(before: str, after: str) -> None:
    for hunk in minimal_hunks(before, after):
        for place in (hunk.start, hunk.end):
            assert before[max(0, place - 1) : place + 1] != "\r\n" or place == 0


@given(TEXTS)
def test_lines_are_the_text(text: str) -> None:
    assert "".join(lines_of(text)) == text


def test_what_did_not_change_is_in_no_hunk() -> None:
    before = "def f(a):\n    x = a\n    y = a\n    return x\n"
    after = "def f(a):\n    x = a + 1\n    y = a\n    return x + y\n"
    assert minimal_hunks(before, after) == (
        Hunk(before.index("\n    y"), before.index("\n    y"), " + 1"),
        Hunk(len(before) - 1, len(before) - 1, " + y"),
    )


BEFORE = "a\nb\nc\nd\ne\nf\ng\n"
HUNKS = minimal_hunks(BEFORE, "a\nb\nc\nD\ne\nf\ng\n")


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ([Edit(0, 0, "new\n")], "new\na\nb\nc\nD\ne\nf\ng\n"),
        ([Edit(14, 14, "more\n")], "a\nb\nc\nD\ne\nf\ng\nmore\n"),
        ([Edit(0, 2, ""), Edit(8, 9, "F")], "b\nc\nD\ne\nF\ng\n"),
        # The whole text is sent again, as some editors do.
        ([Edit(0, 14, "A\nb\nc\nd\ne\nf\ng\n")], "A\nb\nc\nD\ne\nf\ng\n"),
        ([Edit(6, 7, "x")], None),  # the line itself
        ([Edit(4, 5, "x")], None),  # the line above
        ([Edit(8, 9, "x")], None),  # the line below
        ([Edit(4, 10, "")], None),
        ([Edit(3, 4, "")], None),  # the line above is joined with another
    ],
)
def test_hunks_move_along_or_are_refused(edits: list[Edit], expected: str | None) -> None:
    text = BEFORE
    for edit in edits:
        text = text[: edit.start] + edit.text + text[edit.end :]
    moved = rebase_hunks(HUNKS, BEFORE, edits)
    assert (None if moved is None else apply_hunks(text, moved)) == expected


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 3), st.sampled_from(["", "z", "z\n", "\n"])),
        max_size=4,
    )
)
def test_a_moved_hunk_still_replaces_the_same_text(typed: list[tuple[int, int, str]]) -> None:
    text, edits = BEFORE, []
    for place, length, new in typed:
        start = min(place, len(text))
        end = min(start + length, len(text))
        edits.append(Edit(start, end, new))
        text = text[:start] + new + text[end:]
    moved = rebase_hunks(HUNKS, BEFORE, edits)
    if moved is not None:
        assert [text[hunk.start : hunk.end] for hunk in moved] == ["d"]
        assert "c\nD\ne\n" in apply_hunks(text, moved)
