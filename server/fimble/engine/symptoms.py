"""Signs that a loaded model computes nonsense, seen over several of its answers.

Some packages, on some providers and drivers, say one token over and over ("TheGGGG…"). One
such answer may be what the text calls for (a long number, a table); several in a row are a
fault, and are named as one. Knows nothing of requests.
"""

from __future__ import annotations

from collections.abc import Sequence

from fimble.errors import ModelMisbehaved

__all__ = ["Symptoms", "is_one_token"]

#: Answers in a row that make a fault.
_ANSWERS = 3
#: Tokens that make an answer worth judging, and the part of them that must be the same.
_TOKENS = 16
_PART = 0.8


class Symptoms:
    """What has been seen of one loaded model."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def check(self, tokens: Sequence[int], last: bytes) -> None:
        """Looks at an answer while it grows; ``last`` is its last token's text.

        Raises ModelMisbehaved when this one, too, is one token over and over.
        """
        if self._in_a_row >= _ANSWERS - 1 and is_one_token(tokens, last):
            raise ModelMisbehaved(
                "The model says one and the same word over and over, in every answer.",
                next_step="This package does not work on this provider and driver; try another "
                "package, or update the driver (`fimble doctor`).",
            )

    def ended(self, tokens: Sequence[int], last: bytes) -> None:
        """An answer has ended, in whichever way. Short ones say nothing."""
        if is_one_token(tokens, last):
            self._in_a_row += 1
        elif len(tokens) >= _TOKENS:
            self._in_a_row = 0


def is_one_token(tokens: Sequence[int], last: bytes) -> bool:
    """Whether an answer is, but for its beginning, one token with a letter or digit in it.

    Rulers and blanks repeat by right.
    """
    if len(tokens) < _TOKENS or not last.strip() or not any(chr(each).isalnum() for each in last):
        return False
    same = 0
    for token in reversed(tokens):
        if token != tokens[-1]:
            break
        same += 1
    return same >= _PART * len(tokens)
