"""What encloses a place: scopes with their headers, outermost first.

Works from ``scopes.scm``. Where a language is told by its indentation, a blank line belongs
to the scopes that it is indented under, even where the tree ends them above it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Node

from fimble_context.syntax.captures import matches, node_text, with_fields
from fimble_context.syntax.document import Document
from fimble_context.syntax.headers import body_start, header

__all__ = ["Scope", "enclosing_scopes"]

_INDENTED = frozenset({"python", "yaml"})
_NAME_FIELDS = ("name", "key", "declarator")
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Scope:
    """A node that encloses a place. Offsets are code points.

    ``name`` is empty for a lambda and the like. Without a body of its own, a scope's
    ``body_start`` is the end of its first line.
    """

    name: str
    start: int
    end: int
    body_start: int
    body_end: int
    header: str


def enclosing_scopes(document: Document, offset: int) -> tuple[Scope, ...]:
    """The scopes around ``offset`` (code points), outermost first.

    A place in a scope's header is within it; a place just after its end is not, unless the
    text there still belongs to it by indentation.
    """
    language = document.syntax_language
    if language is None:
        return ()
    closed = language.id not in _INDENTED
    at, column = (offset, None) if closed else _by_indentation(document, offset)
    best: dict[int, dict[str, list[Node]]] = {}
    for _, captures in matches(document, "scopes", at, at):
        node = captures["scope"][0]
        captures = with_fields(captures, node)
        if node.id not in best or len(captures) > len(best[node.id]):
            best[node.id] = captures
    scopes = [_scope(document, captures) for captures in best.values()]
    found = [
        scope
        for scope in scopes
        if scope.start <= offset < scope.end + (not closed)
        or (column is not None and _reaches(document, scope, at, column))
    ]
    return tuple(sorted(found, key=lambda scope: (scope.start, -scope.end)))


def _by_indentation(document: Document, offset: int) -> tuple[int, int | None]:
    """On a blank line: the end of the text above, and the column that scopes that end there
    must be left of to go on. Elsewhere ``offset`` and no column."""
    line = document.line_of(offset)
    start = document.line_start(line)
    before = document.text[start:offset]
    if before.strip() or document.text[offset : document.line_end(line)].strip():
        return offset, None
    return len(document.text[:start].rstrip()), _width(before)


def _width(indent: str) -> int:
    return len(indent.expandtabs(8))


def _reaches(document: Document, scope: Scope, offset: int, column: int) -> bool:
    """Whether a scope that holds ``offset`` goes on to a blank line indented to ``column``."""
    line_start = document.line_start(document.line_of(scope.start))
    text = document.text[line_start : scope.start]
    indent = text[: len(text) - len(text.lstrip())]
    return scope.start <= offset <= scope.end and _width(indent) < column


def _scope(document: Document, captures: dict[str, list[Node]]) -> Scope:
    node = captures["scope"][0]
    name = captures["name"][0] if "name" in captures else _name_node(node)
    start, end = document.offset_of_byte(node.start_byte), document.offset_of_byte(node.end_byte)
    if "body" in captures:
        body = captures["body"][0]
        inside = body_start(document, body), document.offset_of_byte(body.end_byte)
        text = header(document, node, node, body)
    else:
        inside = min(document.line_end(document.line_of(start)), end), end
        text = document.text[start : inside[0]].strip()
    return Scope(_name(document, name), start, end, *inside, text)


def _name_node(node: Node) -> Node | None:
    found = next(filter(None, map(node.child_by_field_name, _NAME_FIELDS)), None)
    if found is None and node.parent is not None and "declarator" in node.parent.type:
        found = node.parent.child_by_field_name("name")  # const f = () => …
    while found is not None and (inner := found.child_by_field_name("declarator")) is not None:
        found = inner
    return found


def _name(document: Document, node: Node | None) -> str:
    text = node_text(document, node).strip("\"' ") if node is not None else ""
    # A lambda's declarator has no name in it, only parameters.
    return text if len(text) <= _LONGEST_NAME and not {"\n", "("} & set(text) else ""
