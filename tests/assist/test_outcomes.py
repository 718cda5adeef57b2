"""What becomes of suggestions, told from answers, edits and what the editor says."""

from __future__ import annotations

from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.outcomes import KEPT_AFTER_SECONDS, Outcomes
from fimble.assist.statistics import Statistics
from fimble_context.syntax import Edit
from tests.assist.places import at_mark


class Session:
    """A document in which somebody types, gets offers and accepts them."""

    def __init__(self, source: str) -> None:
        self.document, self.cursor = at_mark(source)
        self.statistics = Statistics(today=lambda: date(2030, 1, 2))
        self.statistics.enabled = True
        self.time = 0.0
        self.outcomes = Outcomes(self.statistics, clock=lambda: self.time)
        self.offers = 0

    def show(self, *texts: str, back: int = 0) -> str:
        """Shows texts that begin ``back`` characters before the cursor; the first one's id."""
        offers = {str(self.offers + number): text for number, text in enumerate(texts)}
        self.offers += len(texts)
        self.outcomes.shown("a", self.document, self.cursor - back, offers, "m")
        return next(iter(offers))

    def type(self, text: str) -> None:
        for character in text:
            self.insert(character)

    def insert(self, text: str) -> None:
        self.edit(Edit(self.cursor, self.cursor, text))
        self.cursor += len(text)

    def delete(self, count: int) -> None:
        self.edit(Edit(self.cursor - count, self.cursor, ""))
        self.cursor -= count

    def edit(self, *edits: Edit) -> None:
        for edit in edits:
            self.document.apply(edit)
        self.outcomes.changed("a", self.document, edits)

    def later(self) -> None:
        self.time += KEPT_AFTER_SECONDS
        self.outcomes.measure()

    def counts(self) -> dict[str, int]:
        """Everything that was counted, once the document is closed."""
        self.outcomes.close()
        counts: Counter[str] = Counter()
        for key, number in self.statistics.take().items():
            assert (key.day, key.model, key.language) == ("2030-01-02", "m", "python")
            counts[key.measure] += number
        return dict(counts)


def test_accepted_as_the_editor_tells() -> None:
    session = Session("x = │\n")
    offer = session.show("1")
    session.insert("1")
    session.outcomes.accepted("a", offer, 1)
    assert session.counts() == {"shown": 1, "accepted": 1}


def test_accepted_by_an_editor_that_does_not_tell_and_one_that_tells_too() -> None:
    for tells in (False, True):
        session = Session("x = │\n")
        offer = session.show("compute()")
        session.insert("compute()")
        if tells:
            session.outcomes.accepted("a", offer, 9)
        assert session.counts() == {"shown": 1, "accepted": 1}


def test_the_second_choice_is_accepted() -> None:
    session = Session("x = │\n")
    session.show("compute()", "other()")
    session.insert("other()")
    assert session.counts() == {"shown": 1, "accepted": 1}


def test_typing_through_is_one_suggestion() -> None:
    session = Session("x = │\n")
    text = "compute()"
    session.show(text)
    for at in range(1, 9):
        session.type(text[at - 1])
        session.show(text[at:])
    session.type(")")
    assert session.counts() == {"shown": 1, "typed": 1}


def test_deleting_back_into_it_is_one_suggestion() -> None:
    session = Session("x = │\n")
    session.show("compute()")
    session.type("comp")
    session.show("ute()")
    session.delete(3)
    session.show("ompute()")
    assert session.counts() == {"shown": 1, "dismissed": 1}


def test_typing_something_else_dismisses_it() -> None:
    session = Session("x = │\n")
    session.show("compute()")
    session.type("con")
    session.show("fused")
    session.insert("fused")
    assert session.counts() == {"shown": 2, "dismissed": 1, "accepted": 1}


def test_a_suggestion_elsewhere_dismisses_it() -> None:
    session = Session("x = │\n\n")
    session.show("compute()")
    session.cursor += 1
    session.show("compute()")
    assert session.counts() == {"shown": 2, "dismissed": 2}


def test_brackets_that_the_editor_closes_are_no_other_suggestion() -> None:
    session = Session("x = │\n")
    session.show("f(a, b)")
    session.type("f")
    session.edit(Edit(session.cursor, session.cursor, "()"))
    session.cursor += 1
    session.show("a, b")
    assert session.counts() == {"shown": 1, "dismissed": 1}


def test_words_and_lines_accepted_in_part() -> None:
    session = Session("│\n")
    first = session.show("one two\n  three\n  four")
    session.insert("one ")
    session.outcomes.accepted("a", first, 4)
    second = session.show("two\n  three\n  four")
    session.insert("two")
    session.outcomes.accepted("a", second, 3)
    # The editor asked again before it told of the last piece, which it still names.
    session.insert("\n  three")
    session.show("\n  four")
    session.outcomes.accepted("a", second, 11)
    session.later()
    session.type("!")
    assert session.counts() == {
        "shown": 1,
        "partially_accepted": 1,
        "partial_words": 3,
        "partial_lines": 2,
    }


def test_a_part_and_then_the_rest_is_accepted_as_a_whole() -> None:
    session = Session("│\n")
    offer = session.show("one two")
    session.insert("one ")
    session.outcomes.accepted("a", offer, 4)
    rest = session.show("two")
    session.insert("two")
    session.outcomes.accepted("a", rest, 3)
    session.later()
    assert session.counts() == {
        "shown": 1,
        "accepted": 1,
        "partial_words": 1,
        "kept_measured": 1,
        "kept_unchanged": 1,
    }


def test_what_was_undone_before_the_editor_told_is_not_accepted() -> None:
    session = Session("x = │\n")
    offer = session.show("ab")
    session.outcomes.accepted("a", offer, 2)
    assert session.counts() == {"shown": 1, "dismissed": 1}


def test_a_completion_item_replaces_the_word_that_is_typed() -> None:
    session = Session("os.remo│\n")
    session.show("remove(path)", back=4)
    session.type("v")
    session.show("remove(path)", back=5)
    start = session.cursor - 5
    session.edit(Edit(start, session.cursor, "remove(path)"))
    session.later()
    assert session.counts() == {
        "shown": 1,
        "accepted": 1,
        "kept_measured": 1,
        "kept_unchanged": 1,
    }


def test_an_import_added_above_while_accepting_changes_nothing() -> None:
    session = Session("x = 1\ny = │\n")
    offer = session.show("os.getcwd()")
    session.edit(Edit(session.cursor, session.cursor, "os.getcwd()"), Edit(0, 0, "import os\n"))
    session.outcomes.accepted("a", offer, 11)
    session.later()
    assert session.counts()["kept_unchanged"] == 1


def test_a_document_sent_as_a_whole_at_every_key() -> None:
    """Such an editor tells what it accepted; by its edits nobody could know."""
    session = Session("x = │\n")
    offer = session.show("value")
    session.edit(Edit(0, len(session.document.text), "x = value\n"))
    session.outcomes.accepted("a", offer, 5)
    session.edit(Edit(0, len(session.document.text), "x = value\ny\n"))
    session.later()
    assert session.counts() == {
        "shown": 1,
        "accepted": 1,
        "kept_measured": 1,
        "kept_unchanged": 1,
    }


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (Edit(0, 0, "# above\n"), {"kept_measured": 1, "kept_unchanged": 1}),
        (Edit(16, 16, " + 1"), {"kept_measured": 1, "kept_unchanged": 1}),
        (Edit(12, 13, "k"), {"kept_measured": 1, "kept_mostly": 1}),
        (Edit(4, 16, "None"), {"kept_measured": 1}),
        (Edit(0, 17, ""), {"kept_measured": 1}),
    ],
)
def test_what_is_kept_after_a_while(edit: Edit, expected: dict[str, int]) -> None:
    session = Session("x = │\n")
    session.show("compute(a,b)")
    session.insert("compute(a,b)")
    session.edit(edit)
    assert session.outcomes.measure() == KEPT_AFTER_SECONDS
    session.later()
    assert session.outcomes.measure() is None
    assert session.counts() == {"shown": 1, "accepted": 1, **expected}


def test_what_is_closed_before_is_not_measured() -> None:
    session = Session("x = │\n")
    session.show("compute()")
    session.insert("compute()")
    session.outcomes.closed("a")
    session.later()
    assert session.counts() == {"shown": 1, "accepted": 1}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("show"), st.sampled_from(["a", "ab", "abc", "ba\nab", "b"])),
        st.tuples(st.just("insert"), st.sampled_from(["a", "b", "ab", "abc", "ba\nab"])),
        st.tuples(st.just("delete"), st.integers(1, 3)),
        st.tuples(st.just("elsewhere"), st.integers(0, 5)),
        st.tuples(st.just("tell"), st.integers(0, 6)),
        st.tuples(st.just("later"), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
def test_each_suggestion_has_exactly_one_outcome(steps: list[tuple[str, object]]) -> None:
    session = Session("x = │\n")
    offer = "none"
    for what, value in steps:
        if what == "show":
            offer = session.show(str(value))
        elif what == "insert":
            session.insert(str(value))
        elif what == "delete":
            assert isinstance(value, int)
            session.delete(min(value, session.cursor))
        elif what == "elsewhere":
            assert isinstance(value, int)
            at = min(value, session.cursor)
            session.edit(Edit(at, at, "z"))
            session.cursor += 1
        elif what == "tell":
            assert isinstance(value, int)
            session.outcomes.accepted("a", offer, value)
        else:
            session.later()
    counts = session.counts()
    ends = ("accepted", "partially_accepted", "typed", "dismissed")
    assert counts.get("shown", 0) == sum(counts.get(end, 0) for end in ends)
    taken = counts.get("accepted", 0) + counts.get("partially_accepted", 0)
    measured = counts.get("kept_measured", 0)
    assert counts.get("kept_unchanged", 0) + counts.get("kept_mostly", 0) <= measured <= taken
