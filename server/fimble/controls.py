"""Characters that no text of somebody else's may bring into a terminal, a message or a log.

What a model says, what a server says and what files are called is shown to people: none of it may
move a cursor, set a title, or turn the direction of writing so that a text reads as another one.
"""

from __future__ import annotations

import re

__all__ = ["without_controls"]

#: All C0 and C1 controls but tab and line feed; the marks, embeddings, overrides and isolates
#: of bidirectional text; the separators of lines and paragraphs.
_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
_BREAKS = re.compile(r"[\t\n]+")


def without_controls(text: str, instead: str | None = None) -> str:
    """``text`` without them. With ``instead``, which then stands for tabs and line feeds too, it
    is one line.
    """
    if instead is None:
        return _OBEYED.sub("", text)
    return _BREAKS.sub(instead, _OBEYED.sub(instead, text))
