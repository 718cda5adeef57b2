"""When a failing server is asked again, and when it is left alone."""

from __future__ import annotations

from fimble.engine.remote.breaker import FAILURES, FIRST_PAUSE, LONGEST_PAUSE, Breaker
from fimble.engine.remote.retry import attempts_for, pause_before


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_server_that_fails_is_left_alone_for_longer_and_longer() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES - 1):
        breaker.failed()
    assert breaker.seconds_left == 0
    pauses = []
    for _ in range(8):
        breaker.failed()
        # What was under way fails as well, and changes nothing.
        breaker.failed()
        pauses.append(breaker.seconds_left)
        clock.now += breaker.seconds_left
        assert breaker.seconds_left == 0
    assert pauses[:3] == [FIRST_PAUSE, FIRST_PAUSE * 2, FIRST_PAUSE * 4]
    assert pauses[-1] == LONGEST_PAUSE


def test_one_answer_is_enough() -> None:
    clock = Clock()
    breaker = Breaker(clock)
    for _ in range(FAILURES):
        breaker.failed()
    clock.now += breaker.seconds_left
    breaker.succeeded()
    breaker.failed()
    assert breaker.seconds_left == 0


def test_who_types_does_not_wait_for_a_second_try() -> None:
    assert attempts_for("completion") == attempts_for("warmup") == 1
    assert attempts_for("chat") == 3


def test_pauses_differ_by_chance_and_obey_the_server() -> None:
    assert pause_before(1, {}, lambda: 0.0) == 0.25
    assert pause_before(1, {}, lambda: 1.0) == 0.5
    assert pause_before(2, {}, lambda: 1.0) == 1.0
    assert pause_before(20, {}, lambda: 1.0) == 8.0
    assert pause_before(1, {"retry-after": "3"}) == 3.0
    assert pause_before(1, {"retry-after": "3600"}) == 8.0
    assert pause_before(1, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, lambda: 1.0) == 0.5
