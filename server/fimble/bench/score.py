"""How near an answer is to what was there: exact match and edit similarity."""

from __future__ import annotations

__all__ = ["compared", "edit_similarity", "is_exact", "normalised"]


def normalised(text: str, lines: int) -> str:
    """The first ``lines`` lines without white space at their ends."""
    return "\n".join(line.rstrip() for line in text.strip().split("\n")[:lines])


def compared(expected: str, answer: str) -> tuple[str, str]:
    """Both without white space at the ends of lines, and with only as many lines as both have.

    For what is inserted as it stands: white space in front counts.
    """
    ours = [line.rstrip() for line in answer.rstrip().split("\n")]
    theirs = [line.rstrip() for line in expected.rstrip().split("\n")]
    count = min(len(ours), len(theirs))
    return "\n".join(theirs[:count]), "\n".join(ours[:count])


def is_exact(expected: str, answer: str) -> bool:
    """Whether two normalised texts are the same."""
    return expected == answer


def edit_similarity(expected: str, answer: str) -> float:
    """1 for the same text, 0 for nothing in common: 1 - Levenshtein distance / longer length."""
    longest = max(len(expected), len(answer))
    return 1.0 - _distance(expected, answer) / longest if longest else 1.0


def _distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            cost = min(row[j] + 1, row[j - 1] + 1, diagonal + (a != b))
            diagonal, row[j] = row[j], cost
    return row[-1]
