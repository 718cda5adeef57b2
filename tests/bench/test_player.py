"""The user of the typing benchmark, with a scripted assistant (a fake) on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from fimble.bench.player import Assistant, Played, Work, play
from fimble.bench.session import Key, Passage, Session
from tests.bench.virtual_time import run

BEFORE, AFTER = "def f(items):", "\nprint(f)\n"


class FakeAssistant(Assistant):
    """Shows ``suggest(text before the cursor)`` after ``seconds``; None is no answer at all.

    A newer edit supersedes what was not shown yet. Each edit costs 3 tokens and a call.
    """

    def __init__(self, suggest: Callable[[str], str | None], seconds: float = 0.05) -> None:
        self._suggest = suggest
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._shown = ""
        self._done = Work()
        self.text, self.cursor = "", 0

    async def open(self, file: Path, text: str, cursor: int) -> None:
        self.text, self.cursor = text, cursor

    def edit(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)
        asyncio.get_running_loop().call_later(0.001, self._compute)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._show)

    def accept(self, length: int) -> None:
        self.edit(self.cursor, self.cursor, self._shown[:length])

    def move(self, cursor: int) -> None:
        self.cursor = cursor

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def work(self) -> Work:
        return self._done

    def _compute(self) -> None:
        self._done = Work(self._done.computed_tokens + 3, self._done.model_calls + 1)

    def _show(self) -> None:
        text = self._suggest(self.text[: self.cursor])
        if text is not None:
            self._shown = text
            self.on_shown(text)


def keys(text: str, pause: float) -> tuple[Key, ...]:
    return tuple(Key(at, pause, character) for at, character in enumerate(text))


def session(text: str, pause: float = 0.2, typed: tuple[Key, ...] | None = None) -> Session:
    passage = Passage(len(BEFORE), text, typed or keys(text, pause))
    return Session(Path("a.py"), BEFORE + AFTER, BEFORE + text + AFTER, (passage,))


def played(session: Session, assistant: FakeAssistant) -> Played:
    result = Played()
    run(play(session, assistant, result))
    assert assistant.text == session.whole
    return result


def goes_on(target: str) -> Callable[[str], str]:
    """The right text up to ``target``'s end, wherever the cursor is."""
    return lambda before: (BEFORE + target)[len(before) :]


def test_without_suggestions_every_key_is_pressed() -> None:
    result = played(session("\n    return items"), FakeAssistant(lambda before: None))
    assert len(result.keystrokes) == len("\n    return items")
    assert result.shown == result.right == result.accepted == 0
    assert [each.latency_ms for each in result.keystrokes] == [None] * len(result.keystrokes)


def test_a_right_line_is_accepted_once_it_was_read() -> None:
    target = "\n    return items"
    result = played(session(target), FakeAssistant(goes_on(target)))
    # In view 0.05 s after the first key, accepted after 0.3 s; one key came in between.
    assert [each.accepted for each in result.keystrokes] == ["", "", "   return items"]
    assert result.accepted == result.right == result.shown == 1
    assert round(result.keystrokes[0].latency_ms or 0) == 50


def test_a_block_is_accepted_line_by_line_and_counts_by_lines() -> None:
    target = "\n    for item in items:\n        use(item)\n    return items"
    result = played(session(target), FakeAssistant(goes_on(target)))
    assert result.right == result.accepted == 3


def test_typing_in_a_suggestion_counts_once_and_a_wrong_one_is_no_right_one() -> None:
    def wrong(before: str) -> str:
        return (BEFORE + "\n    return itself")[len(before) :]

    result = played(session("\n    return it"), FakeAssistant(wrong))
    assert (result.shown, result.right, result.accepted) == (1, 0, 0)


def test_few_missing_characters_do_not_count() -> None:
    target = "\n    return x"
    late = FakeAssistant(lambda before: goes_on(target)(before) if "return" in before else None)
    result = played(session(target), late)
    assert (result.shown, result.right, result.accepted) == (0, 0, 0)


def test_a_slow_suggestion_is_waited_for_over_several_keystrokes() -> None:
    pauses = (0.1, 0.1, 0.1, 2.0)
    typed = tuple(Key(at, pause, "abcd"[at]) for at, pause in enumerate(pauses))
    result = played(session("abcd", typed=typed), FakeAssistant(lambda before: "xxxxx", 0.5))
    latencies = [round(each.latency_ms) if each.latency_ms else None for each in result.keystrokes]
    assert latencies == [700, 600, 500, None]


def test_where_there_is_nothing_to_suggest_there_is_no_time() -> None:
    result = played(session("abcd", 2.0), FakeAssistant(lambda before: ""))
    assert [each.latency_ms for each in result.keystrokes] == [None] * 4


def test_work_belongs_to_the_keystroke_before_it() -> None:
    # The session ends with the last key, before there is any work for it.
    result = played(session("abcd"), FakeAssistant(lambda before: None))
    assert [each.computed_tokens for each in result.keystrokes] == [3, 3, 3, 0]
    assert [each.model_calls for each in result.keystrokes] == [1, 1, 1, 0]
    assert result.work == Work(9, 3)


def test_errors_are_deleted_and_nothing_is_accepted_on_them() -> None:
    typed = (Key(0, 0.2, "zz", wrong=2), Key(0, 1.0, delete=2), *keys("value = 1", 0.2))
    target = "value = 1"

    def suggest(before: str) -> str:
        return target if before == BEFORE + "zz" else ""

    result = played(session(target, typed=typed), FakeAssistant(suggest))
    assert (result.shown, result.right, result.accepted) == (1, 0, 0)
