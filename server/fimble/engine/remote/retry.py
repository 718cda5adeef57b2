"""When a request is sent again, and after how long."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from fimble.engine.protocol import Priority

__all__ = ["attempts_for", "is_passing", "pause_before"]

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
#: Too many requests; a gateway or its server that is starting, overloaded or gone for a moment.
_PASSING = frozenset({429, 502, 503, 504})


def attempts_for(priority: Priority) -> int:
    """How often a request is sent at most. Who types has moved on before a second try ends."""
    return 3 if priority == "chat" else 1


def is_passing(status: int) -> bool:
    """Whether an HTTP status tells of what may be over soon."""
    return status in _PASSING


def pause_before(
    attempt: int,
    headers: Mapping[str, str],
    chance: Callable[[], float] = random.random,
) -> float:
    """Seconds before attempt number ``attempt`` (1 is the first one that repeats).

    What the server asks for (``Retry-After``, in seconds), within reason; else a time by chance
    that doubles, so that a team's editors do not all come back at once.
    """
    try:
        asked = float(headers.get("retry-after", ""))
    except ValueError:
        asked = -1.0
    if asked >= 0:
        return min(asked, _LONGEST_PAUSE)
    doubled = _FIRST_PAUSE * float(2 ** (attempt - 1))
    return min(_LONGEST_PAUSE, doubled) * (0.5 + chance() / 2)
