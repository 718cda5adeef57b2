"""Signatures: a definition without its body, written short.

A symbol is written with its documentation and, for a class or the like, its members' headers.
The result reads as code of the language, with ``\\n`` line ends; it need not compile.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from fimble_context.syntax.languages import Language
from fimble_context.syntax.symbols import Symbol

__all__ = ["render", "render_all"]

_MOST_MEMBERS = 60
_MEMBERLESS = frozenset({"function", "method", "constructor", "macro"})


def render(symbol: Symbol, language: Language, *, indent: str = "") -> str:
    """A symbol's signature with documentation, and the members of a class; ends with a newline."""
    doc = f"{indent}{language.comment} {symbol.doc}\n" if symbol.doc and language.comment else ""
    text = textwrap.indent(symbol.signature, indent)
    members = _members(symbol, language, indent + "    ")
    if language.id == "python":
        return _render_python(symbol, text, members, indent)
    if symbol.body_start is None:
        return f"{doc}{text}\n"
    tail = symbol.tail if language.closing == "}" else ""
    if tail[:1].isalnum():
        tail = f" {tail}"
    if not members:
        return f"{doc}{text}{language.elision}{tail}\n"
    opening = " {" if language.closing == "}" else ""
    closing = f"{indent}{language.closing}{tail}\n" if language.closing else ""
    return f"{doc}{text}{opening}\n{members}{closing}"


def _render_python(symbol: Symbol, text: str, members: str, indent: str) -> str:
    doc = f'{indent}    """{symbol.doc}"""\n' if symbol.doc and symbol.body_start else ""
    if symbol.body_start is None:
        return f"{text}\n"
    if members:
        return f"{text}\n{doc}{members}"
    return f"{text}\n{doc}{indent}    ...\n" if doc else f"{text} ...\n"


def _members(symbol: Symbol, language: Language, indent: str) -> str:
    if symbol.kind in _MEMBERLESS:
        return ""
    return render_all(symbol.children, language, indent=indent, most=_MOST_MEMBERS)


def render_all(
    symbols: Iterable[Symbol], language: Language, *, indent: str = "", most: int | None = None
) -> str:
    """Several symbols, at most ``most`` of them.

    One that shares its text with the one before is left out, since "int a, b;" defines two
    names in one piece of text.
    """
    shown: list[Symbol] = []
    for symbol in symbols:
        if not shown or (symbol.start, symbol.end) != (shown[-1].start, shown[-1].end):
            shown.append(symbol)
    more = f"{indent}...\n" if most is not None and len(shown) > most else ""
    return "".join(render(symbol, language, indent=indent) for symbol in shown[:most]) + more
