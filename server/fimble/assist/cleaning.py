"""What at the end of an answer is no code at all: by text alone.

Control tokens that a server spelled out, code fences with the explanations behind them, and
loops.
"""

from __future__ import annotations

import re

from fimble.assist.place import Place
from fimble.engine.protocol import CONTROL_TOKENS

__all__ = ["before_control_tokens", "before_fence", "may_have_fences", "without_loop"]

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
#: A unit of 2 to 60 characters that comes six times or more in a row, up to the end.
_LOOP = re.compile(r"(?P<unit>[^\n]{2,60}?)(?P=unit){5,}[^\n]*$")
_LOOPING_LINES = 3


def before_control_tokens(text: str, literals: frozenset[str]) -> str:
    """``text`` up to the first spelled control token that the document does not have itself.

    Our engine stops at control tokens; other servers may spell them out.
    """
    ends = [text.find(token) for token in CONTROL_TOKENS.values() if token not in literals]
    return text[: min((end for end in ends if end >= 0), default=len(text))]


def before_fence(text: str, place: Place) -> str:
    """``text`` up to a Markdown fence, which ends the code.

    In Markdown, comments and strings one may be meant.
    """
    if not may_have_fences(place):
        return text
    fence = _FENCE.search(text)
    return text if fence is None else text[: fence.start()].rstrip("\n")


def may_have_fences(place: Place) -> bool:
    """Whether a Markdown fence at ``place`` is none of the document's own."""
    language = place.language
    return place.code and (language is None or language.id != "markdown")


def without_loop(text: str) -> str:
    """``text`` up to where it goes round in a circle: the circle is left in once."""
    lines = text.split("\n")
    for length in (1, 2, 3):
        for start in range(len(lines) - length * _LOOPING_LINES + 1):
            unit = lines[start : start + length]
            if not "".join(unit).strip():
                continue
            rest = lines[start : start + length * _LOOPING_LINES]
            # Closing brackets repeat by right.
            if rest == unit * _LOOPING_LINES and re.search(r"\w", "".join(unit)):
                return "\n".join(lines[: start + length])
    match = _LOOP.search(text)
    if match is None or not re.search(r"\w", match["unit"]) or len(match[0]) < 30:
        return text
    return text[: match.start() + len(match["unit"])]
