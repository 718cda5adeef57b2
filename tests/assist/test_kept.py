"""What counts as kept: unchanged, or at most a third of the words and signs edited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.kept import kept

LONG = "\n".join(f"    total_{number} = add(value, {number})" for number in range(60))


@pytest.mark.parametrize(
    ("accepted", "now", "result"),
    [
        ("return a + b", "return a + b", "unchanged"),
        ("return a + b", "return a + c", "mostly"),
        ("return a + b", "", "gone"),
        ("return a + b", "pass", "gone"),
        ("f(a, b)", "f(a, x, b)", "mostly"),
        ("f(a,b)", "f(\n    a,\n    b\n)", "mostly"),
        ("a\r\nb", "a\nb", "unchanged"),
        # The editor sent the whole document, and the text is in it.
        ("return a + b", "def add(a, b):\n    return a + b\n", "unchanged"),
        ("return a + b", "x = 1\n" * 100, "gone"),
        (LONG, LONG.replace("total_7 ", "t "), "mostly"),
        (LONG, LONG[:200], "gone"),
        ("x", "y", "gone"),
    ],
)
def test_examples(accepted: str, now: str, result: str) -> None:
    assert kept(accepted, now) == result


@given(st.text(min_size=1), st.text(), st.text())
def test_what_stands_there_is_unchanged_whatever_is_around(
    accepted: str, before: str, after: str
) -> None:
    assert kept(accepted, f"{before}|{accepted}|{after}") == "unchanged"


@given(st.lists(st.sampled_from("abcdef"), min_size=1), st.data())
def test_a_third_of_the_words_may_change(words: list[str], data: st.DataObject) -> None:
    changed = data.draw(st.integers(0, len(words)))
    now = ["changed"] * changed + words[changed:]
    expected = "unchanged" if not changed else "mostly" if changed <= len(words) // 3 else "gone"
    assert kept(" ".join(words), " ".join(now)) == expected
