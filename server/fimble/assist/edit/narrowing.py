"""An answer that repeats more of the file than it was asked for, cut down to what was meant.

Small models like to give the class around a method, or a helper that they were shown, once
more. What the file has elsewhere is taken out again; what is new stays.
"""

from __future__ import annotations

import textwrap

from fimble.assist.edit.documentation import comment_start
from fimble.assist.edit.target import Target
from fimble.assist.edit.tasks import EditTask
from fimble_context.syntax import Document, Symbol, outline, walk

__all__ = ["narrowed"]


def narrowed(target: Target, task: EditTask, code: str) -> str:
    """``code`` without definitions that the document has outside of the target."""
    symbol = target.symbol
    document = Document(code, path=target.document.path, language=target.document.language)
    found = outline(document)
    if symbol is None or not found:
        return code
    if not any(each.name == symbol.name for each in found):
        inner = _inside(found, symbol.name, target.around)
        return code if inner is None else _dedented(document, inner)
    elsewhere = {
        each.name
        for each in outline(target.document)
        if not (each.start < target.span.end and each.end > target.span.start)
    } | set(target.around)
    repeated = [each for each in found if each.name in elsewhere and each.name != symbol.name]
    for each in reversed(repeated):
        start = document.line_start(document.line_of(comment_start(document, each)))
        end = document.line_end(document.line_of(each.end))
        code = f"{code[:start].rstrip()}\n\n{code[end:].lstrip()}".strip("\n")
    return code


def _inside(found: tuple[Symbol, ...], name: str, around: tuple[str, ...]) -> Symbol | None:
    """The definition of that name in a class (or the like) that is around the target."""
    for container in walk(found):
        if container.name in around:
            for child in container.children:
                if child.name == name:
                    return child
    return None


def _dedented(document: Document, symbol: Symbol) -> str:
    start = document.line_start(document.line_of(comment_start(document, symbol)))
    return textwrap.dedent(document.text[start : symbol.end])
