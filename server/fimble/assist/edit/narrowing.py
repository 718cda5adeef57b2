"""An answer that repeats more of the file than it was asked for, cut down to what was meant;
and a place that is larger than the code for it, such as a file of which an answer gives a function.

Small models like to give the class around a method, or a helper that they were shown, once
more. What the file has elsewhere is taken out again; what is new stays.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from fimble.assist.edit.documentation import comment_start
from fimble.assist.edit.hunks import Hunk
from fimble.assist.edit.placing import placed
from fimble.assist.edit.problems import Problem, changed_document
from fimble.assist.edit.target import FUNCTIONS, Target, definitions_in, make_target
from fimble.assist.edit.tasks import EditTask
from fimble_context.syntax import Document, Span, Symbol, error_count, outline, walk

__all__ = ["narrowed", "part_for"]

#: A file of fewer lines may be replaced whole by whatever is meant for it.
_FEW_LINES = 8


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


def part_for(target: Target, code: str) -> Target | Problem:
    """The part of a place that code is meant for: all of it, or the definition that it gives.

    A Problem where the code would take away what it does not speak of.
    """
    document, text = target.document, placed(target, code)
    new = changed_document(document, [Hunk(target.span.start, target.span.end, text)])
    if error_count(new) > error_count(document):
        return target  # which will be refused for that
    given = definitions_in(new, Span(target.span.start, target.span.start + len(text)))
    names = {each.name for each in given}
    there = definitions_in(document, target.span)
    missing = [each for each in there if each.name not in names]
    known = [each for each in there if each.name in names]
    known = _outermost(each for each in known if not any(_holds(each, gone) for gone in missing))
    if not missing and _keeps(target, known, code):
        return target
    if _is_renamed(target, there, given):
        return target
    if len(known) == 1 and _is_all_of(given, known[0].name):
        return make_target(document, Span(known[0].start, known[0].end), known[0]) or target
    gone = [each.name for each in missing[:3]] + ["more"] * (len(missing) > 3)
    what = ", ".join(gone) if gone else "other lines"
    return Problem("lost", f"It would replace {what}, which it does not have.")


def _keeps(target: Target, known: Sequence[Symbol], code: str) -> bool:
    """Whether most lines of a place outside of the known definitions are in the code, too.

    A part of a file without any is somebody's choice, and may become another text.
    """
    document, span = target.document, target.span
    text, new = document.text, {line.strip() for line in code.splitlines()}
    is_part = bool((text[: span.start] + text[span.end :]).strip())
    if not known and (is_part or len(target.code) < _FEW_LINES):
        return True
    outside, place = "", span.start
    for symbol in known:
        outside += text[place : symbol.start]
        place = symbol.end
    lines = [line.strip() for line in (outside + text[place : span.end]).splitlines()]
    lines = [line for line in lines if line]
    return sum(line in new for line in lines) * 2 >= len(lines)


def _is_renamed(target: Target, there: Sequence[Symbol], given: Sequence[Symbol]) -> bool:
    """Whether a place is one definition, and the code another one of its kind."""
    old, new = _outermost(there), _outermost(given)
    if len(old) != 1 or len(new) != 1 or old[0].name == new[0].name:
        return False
    is_place = target.text.strip() == target.document.text[old[0].start : old[0].end].strip()
    return is_place and (old[0].kind in FUNCTIONS) == (new[0].kind in FUNCTIONS)


def _is_all_of(given: Sequence[Symbol], name: str) -> bool:
    """Whether putting that definition in place leaves out no other one that is given."""
    if any(each.name == name for each in _outermost(given)):
        return True
    inner = [each for each in given if each.kind in FUNCTIONS]
    return [each.name for each in inner] == [name]


def _outermost(symbols: Iterable[Symbol]) -> list[Symbol]:
    found: list[Symbol] = []
    for symbol in symbols:  # in the order of the text, each before what is in it
        if not any(_holds(other, symbol) for other in found):
            found.append(symbol)
    return found


def _holds(outer: Symbol, inner: Symbol) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


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
