"""How a file is written: what a model should follow that one piece of code does not show."""

from __future__ import annotations

import re

from fimble.assist.edit.documentation import documentation_of
from fimble.assist.edit.placing import indent_unit
from fimble_context.syntax import Document, outline, walk

__all__ = ["documentation_style", "habits"]

_MOST_READ = 200_000
_STYLES = (
    (re.compile(r"^\s*(?:Args|Arguments|Returns|Raises|Yields):\s*$", re.MULTILINE),
     "sections such as Args:, Returns: and Raises:"),
    (re.compile(r"^\s*(?:Parameters|Returns|Raises)\s*\n\s*-{3,}", re.MULTILINE),
     "NumPy's sections, underlined with dashes"),
    (re.compile(r"^\s*:(?:param|return|raises|type)\b", re.MULTILINE),
     "fields such as :param name: and :return:"),
    (re.compile(r"@param\b"), "/** … */ with @param and @return"),
    (re.compile(r"<summary>"), "/// with <summary> and <param>"),
)  # fmt: skip
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


def documentation_style(document: Document, but: str) -> str:
    """A sentence on how other definitions of the file than ``but`` are documented.

    Empty where none are. In words, since a small model takes an example for the code.
    """
    if len(document.text) > _MOST_READ:
        return ""
    found = [
        documentation_of(document, symbol)
        for symbol in walk(outline(document))
        if symbol.name != but and symbol.body_start is not None
    ]
    found = [text for text in found if text]
    if not found:
        return ""
    whole = "\n".join(found)
    for pattern, words in _STYLES:
        if pattern.search(whole):
            return f"Follow the style of the file: {words}."
    if all("\n" not in text for text in found):
        return "Follow the style of the file: one line."
    return "Follow the style of the file: a line that sums up, then plain sentences."
