"""Stop strings over pieces of text, and endless repetition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.engine.stopping import RepetitionGuard, StopMatcher


def answer(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    matcher = StopMatcher(stops)
    shown = "".join(matcher.push(piece) for piece in pieces)
    return shown + matcher.finish(), matcher.stopped


@pytest.mark.parametrize(
    "stops, pieces, expected",
    [
        (["\n\n"], ["a\n", "\nb"], ("a", True)),
        (["\n\n"], ["a\n", "b"], ("a\nb", False)),
        (["END"], ["aEN", "EN", "D!"], ("aEN", True)),
        (["abc", "b"], ["xab"], ("xa", True)),
        (["abcd", "b"], ["abcd"], ("a", True)),
        (["aab"], ["aaab"], ("a", True)),
        ([], ["a", "b"], ("ab", False)),
        (["x"], ["x"], ("", True)),
    ],
)
def test_stop_strings(stops: list[str], pieces: list[str], expected: tuple[str, bool]) -> None:
    assert answer(stops, pieces) == expected


def test_nothing_is_shown_that_may_become_a_stop_string() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.push("aE") == "a"
    assert matcher.push("N") == ""
    assert matcher.push("x") == "ENx"


def test_nothing_comes_after_a_stop() -> None:
    matcher = StopMatcher(["."])
    assert matcher.push("a.b") == "a"
    assert matcher.push("c") == ""
    assert matcher.finish() == ""


SHORT = st.text("ab\n", min_size=1, max_size=3)


@given(st.lists(SHORT, max_size=4), st.text("ab\n", max_size=20), st.data())
def test_the_answer_does_not_depend_on_the_pieces(
    stops: list[str], text: str, data: st.DataObject
) -> None:
    pieces = []
    rest = text
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        pieces.append(rest[:size])
        rest = rest[size:]
    shown, stopped = answer(stops, pieces)
    assert (shown, stopped) == answer(stops, [text])
    assert text.startswith(shown)
    assert not any(stop in shown for stop in stops)
    assert stopped == any(stop in text for stop in stops)


def caught_after(ids: list[int], limit: int = 1000) -> tuple[int, int]:
    """(tokens until caught, circle length) when ``ids`` come again and again."""
    guard = RepetitionGuard()
    for count in range(limit):
        circle = guard.push(ids[count % len(ids)])
        if circle:
            return count + 1, circle
    return 0, 0


@pytest.mark.parametrize(
    "circle, after",
    [([7], 65), ([7, 8], 66), (list(range(8)), 72), (list(range(16)), 144), (list(range(64)), 576)],
)
def test_a_circle_is_caught_when_it_came_often_enough(circle: list[int], after: int) -> None:
    assert caught_after(circle) == (after, len(circle))


def test_a_long_circle_and_varied_text_are_left_alone() -> None:
    assert caught_after(list(range(65))) == (0, 0)
    guard = RepetitionGuard()
    assert not any(guard.push(number * number % 97) and number < 300 for number in range(300))


def test_an_interrupted_repetition_starts_anew() -> None:
    guard = RepetitionGuard()
    assert not any(guard.push(token) for token in [5] * 64 + [6] + [5] * 64)
