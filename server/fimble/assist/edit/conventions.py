"""How a file is written: what a model should follow that one piece of code does not show."""

from __future__ import annotations

import re
import textwrap

from fimble.assist.edit.documentation import documentation_of
from fimble.assist.edit.placing import indent_unit
from fimble.assist.layout import prompt_text
from fimble_context.syntax import Document, outline, walk
from fimble_context.workspace import mask_secrets

__all__ = ["documentation_examples", "habits"]

_MOST_READ = 200_000
_MOST_EXAMPLES = 2
_SHORTEST, _LONGEST = 15, 700
_SINGLE = re.compile(r"(?<![\w'])'[^'\n]*'(?!')")
_DOUBLE = re.compile(r'(?<![\w"])"[^"\n]*"(?!")')


def habits(document: Document) -> list[str]:
    """Sentences about the file: tabs, and its quotes where it prefers some.

    What the code itself shows is not said: to a small model it is only noise.
    """
    text = document.text[:_MOST_READ]
    found = []
    if indent_unit(text.splitlines()) == "\t":
        found.append("Indent with tabs.")
    language = document.syntax_language
    if language is not None and language.id in ("python", "javascript", "typescript", "tsx"):
        single, double = len(_SINGLE.findall(text)), len(_DOUBLE.findall(text))
        if max(single, double) >= 6 and max(single, double) > 3 * min(single, double):
            found.append(f"Use {'single' if single > double else 'double'} quotes.")
    return found


def documentation_examples(document: Document, but: str) -> list[str]:
    """Documentation of other definitions of the file than ``but``, to show its style."""
    if len(document.text) > _MOST_READ:
        return []
    found: list[str] = []
    for symbol in walk(outline(document)):
        text = documentation_of(document, symbol) if symbol.name != but else ""
        if _SHORTEST <= len(text) <= _LONGEST and symbol.body_start is not None:
            found.append(mask_secrets(_dedented(prompt_text(text))))
    # Those with several lines show more of a style.
    found.sort(key=lambda text: (-min(text.count("\n"), 6), len(text)))
    return found[:_MOST_EXAMPLES]


def _dedented(text: str) -> str:
    """Without the indentation that all lines but the first have."""
    first, newline, rest = text.partition("\n")
    return f"{first}{newline}{textwrap.dedent(rest)}"
