"""Conversations stay as they were sent, get shorter only where they must, and are bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.chat.conversation import Conversation, Conversations, Turn


def turn(question: str, tokens: int, context: int = 0) -> Turn:
    return Turn(
        question,
        f"about {question}" if context else "",
        f"answer to {question}",
        tokens,
        context,
        tokens,
    )


def texts(conversation: Conversation, new: Turn) -> list[str]:
    return [message.content for message in conversation.messages(new)]


def test_while_there_is_room_nothing_changes() -> None:
    conversation = Conversation("c", "be brief", 10)
    conversation.turns = [turn("one", 10, 50), turn("two", 10)]
    new = turn("three", 10)
    assert conversation.fit(new, 1000)
    assert texts(conversation, new) == [
        "be brief",
        "about one\n\none",
        "answer to one",
        "two",
        "answer to two",
        "three",
    ]
    assert conversation.left_out() == []


def test_the_context_of_old_turns_goes_first_then_the_turns() -> None:
    conversation = Conversation("c", "s", 10)
    conversation.turns = [turn("one", 20, 100), turn("two", 20, 100), turn("three", 20, 100)]
    new = turn("four", 20, 100)
    assert conversation.fit(new, 640)
    assert [bool(each.context) for each in conversation.turns] == [False, False, True]
    assert [item.reason for item in conversation.left_out()] == [
        "the context of question 1: no room for it",
        "the context of question 2: no room for it",
    ]
    assert conversation.fit(new, 400)
    assert [each.shown for each in conversation.turns] == [False, False, True]
    assert [item.reason for item in conversation.left_out()] == [
        "question 1 and its answer: no room for them",
        "question 2 and its answer: no room for them",
        "the context of question 3: no room for it",
    ]


def test_what_is_dropped_is_dropped_at_once_for_several_questions() -> None:
    conversation = Conversation("c", "s", 10)
    shortened = 0
    for number in range(40):
        new = turn(str(number), 10, 40)
        before = texts(conversation, new)
        assert conversation.fit(new, 1000)
        shortened += texts(conversation, new) != before
        conversation.turns.append(new)
    # Of forty prompts, the engine had to begin anew for a few.
    assert 0 < shortened <= 8


def test_a_question_that_is_too_long_alone_does_not_fit() -> None:
    conversation = Conversation("c", "s", 10)
    assert not conversation.fit(turn("one", 500), 500)


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 200)), max_size=12),
    st.integers(50, 900),
)
def test_what_fits_is_within_the_budget(sizes: list[tuple[int, int]], budget: int) -> None:
    conversation = Conversation("c", "s", 10)
    for number, (tokens, context) in enumerate(sizes):
        new = turn(str(number), tokens, context)
        earlier = [each.shown for each in conversation.turns]
        if conversation.fit(new, budget):
            assert conversation.tokens + new.tokens <= budget
            conversation.turns.append(new)
        shown = [each.shown for each in conversation.turns[: len(earlier)]]
        # What is gone stays gone, and the oldest goes first.
        assert all(was or not now for was, now in zip(earlier, shown, strict=True))
        assert shown == sorted(shown)


def test_the_least_recently_used_conversation_is_forgotten_and_says_so() -> None:
    conversations = Conversations(most=2)
    for id in ("a", "b", "a", "c"):
        conversations.get(id).turns.append(turn("x", 1))
        conversations.trim()
    assert len(conversations) == 2
    assert len(conversations.get("a").turns) == 2
    again = conversations.get("b")
    assert again.turns == [] and "forgotten" in again.left_out()[0].reason


def test_memory_is_bounded_by_size_too() -> None:
    conversations = Conversations(largest=5_000)
    for number in range(20):
        conversations.get(str(number)).turns.append(turn("x" * 1_000, 1))
        conversations.trim()
    assert len(conversations) <= 5
    # The one that is in use stays, however large.
    conversations.get("large").turns.append(turn("x" * 9_000, 1))
    conversations.trim()
    assert len(conversations) == 1


def test_a_conversation_that_is_not_known_is_made_again_from_its_history() -> None:
    conversations = Conversations()
    made = conversations.get("a", [("one", "1"), ("two", "2")])
    assert [(each.question, each.answer) for each in made.turns] == [("one", "1"), ("two", "2")]
    assert "made again" in made.left_out()[0].reason
    assert conversations.get("a", [("other", "x")]) is made
    conversations.clear("a")
    assert conversations.get("a").left_out() == []
