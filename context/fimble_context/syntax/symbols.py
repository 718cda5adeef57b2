"""A document's outline: what it defines, where, and in a word what for.

Works from ``definitions.scm`` alone; it has no rule of any one language. How a symbol is
written is ``signatures``' affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from fimble_context.syntax.captures import (
    Match,
    matches,
    matches_of,
    node_text,
    path_to,
    with_fields,
)
from fimble_context.syntax.comments import documentation
from fimble_context.syntax.document import Document
from fimble_context.syntax.headers import body_start, header

__all__ = ["CONTAINERS", "Symbol", "outline", "symbols_at", "symbols_of", "walk"]

CONTAINERS = frozenset({"class", "interface", "struct", "enum", "impl"})
"""Kinds whose direct functions are methods and whose members a signature lists."""

_DEFINITION = "definition."
_LONGEST_TAIL = 100
_DEEPEST = 64
_SMALL = 2_000
_NAMES = frozenset(
    {
        "identifier",
        "field_identifier",
        "type_identifier",
        "qualified_identifier",
        "destructor_name",
        "operator_name",
        "operator_cast",
    }
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition. Offsets are code points; ``start`` includes decorators and the like.

    ``body_start`` and ``body_end`` are None where there is nothing that a signature would
    leave out. ``signature`` is the header on as few lines as possible, ``tail`` what follows
    the body; ``doc`` the first line of its documentation. ``kind``: see the queries' README.
    """

    name: str
    kind: str
    start: int
    end: int
    name_start: int
    name_end: int
    body_start: int | None
    body_end: int | None
    signature: str
    tail: str
    doc: str
    children: tuple[Symbol, ...] = ()


def outline(document: Document) -> tuple[Symbol, ...]:
    """The document's definitions, nested, in the order of the text.

    Definitions nested more than 64 deep (which only generated data has) are left out.
    """
    return _nest(_symbols(document, matches(document, "definitions")))


def symbols_at(document: Document, offset: int) -> tuple[Symbol, ...]:
    """The definitions around ``offset``, outermost first, without their children.

    Costs by the depth of the tree, not by the length of the text. Variables and constants
    that are known by standing at the top of a file are not among them.
    """
    path = path_to(document, offset)
    found = matches_of(document, ((node, 0) for node in path))
    found += _wrapped(document, found, {node.id for node in path})
    around = [
        symbol for symbol in _symbols(document, found) if symbol.start <= offset <= symbol.end
    ]
    return tuple(replace(symbol, children=()) for symbol in walk(_nest(around)))


def symbols_of(document: Document, nodes: Iterable[Node]) -> tuple[Symbol, ...]:
    """What the nodes define themselves; members only of those of up to 2,000 bytes.

    So its cost is bounded by the number of nodes, whatever is in them.
    """
    # At least one deeper than the node itself: what a decorator or an export stands around.
    depths = (
        (node, _DEEPEST if node.end_byte - node.start_byte <= _SMALL else 1) for node in nodes
    )
    return _nest(_symbols(document, matches_of(document, depths)))


def walk(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """All symbols of an outline, each before its children."""
    for symbol in symbols:
        yield symbol
        yield from walk(symbol.children)


def _wrapped(document: Document, found: list[Match], known: set[int]) -> list[Match]:
    """Matches of what wrappers stand around: at a decorator, its definition is not on the path."""
    inner = [
        child
        for _, captures in found
        for wrapper in captures.get("wrapper", ())
        for child in wrapper.named_children
        if child.id not in known
    ]
    if not inner:
        return []
    more = matches_of(document, ((node, 0) for node in inner))
    return more + _wrapped(document, more, known | {child.id for child in inner})


def _symbols(document: Document, found: list[Match]) -> list[Symbol]:
    wrappers = {captures["wrapper"][0].id for _, captures in found if "wrapper" in captures}
    docs = {
        captures["documented"][0].id: captures["doc"][0]
        for _, captures in found
        if "documented" in captures
    }
    best: dict[tuple[int, int], tuple[tuple[int, bool], str, dict[str, list[Node]]]] = {}
    for pattern, captures in found:
        kind = next((name for name in captures if name.startswith(_DEFINITION)), None)
        if kind is not None:
            captures = with_fields(captures, captures[kind][0])
        name = _name_node(captures)
        if kind is None or name is None:
            continue
        key = (captures[kind][0].id, name.start_byte)
        # The first pattern counts; of its matches, the one that found the optional body.
        rank = (pattern, "body" not in captures)
        if key not in best or rank < best[key][0]:
            best[key] = (rank, kind, captures)
    return [
        _symbol(document, kind, captures, wrappers, docs) for _, kind, captures in best.values()
    ]


def _symbol(
    document: Document,
    kind: str,
    captures: dict[str, list[Node]],
    wrappers: set[int],
    docs: dict[int, Node],
) -> Symbol:
    node = outer = captures[kind][0]
    while outer.parent is not None and outer.parent.id in wrappers:
        outer = outer.parent
    body = captures["body"][-1] if "body" in captures else None
    name = _name_node(captures)
    assert name is not None  # looked at by the caller
    offset = document.offset_of_byte
    return Symbol(
        name=_display_name(document, name),
        kind=_kind(kind, captures),
        start=offset(outer.start_byte),
        end=offset(outer.end_byte),
        name_start=offset(name.start_byte),
        name_end=offset(name.end_byte),
        body_start=body_start(document, body) if body else None,
        body_end=offset(body.end_byte) if body else None,
        signature=header(document, outer, node, body),
        tail=_tail(document, node, body),
        doc=documentation(document, outer, docs.get(node.id)),
    )


def _tail(document: Document, node: Node, body: Node | None) -> str:
    if body is None or node.end_byte - body.end_byte > _LONGEST_TAIL:
        return ""
    end = document.offset_of_byte(node.end_byte)
    text = document.text[document.offset_of_byte(body.end_byte) : end].strip()
    return "" if "\n" in text or "\r" in text else text


def _kind(capture: str, captures: dict[str, list[Node]]) -> str:
    kind = capture.removeprefix(_DEFINITION)
    if kind in ("field", "variable") and "declarator" in captures:
        declarator: Node | None = captures["declarator"][0]
        while declarator is not None and declarator.type not in _NAMES:
            if declarator.type == "function_declarator":
                return "function"
            declarator = _inner(declarator)
    return kind


def _name_node(captures: dict[str, list[Node]]) -> Node | None:
    if "name" in captures:
        return captures["name"][0]
    if "declarator" not in captures:
        return None
    node: Node | None = captures["declarator"][0]
    while node is not None and node.type not in _NAMES:
        node = _inner(node)
    return node


def _inner(declarator: Node) -> Node | None:
    """The declarator within a declarator; C++ does not name that child everywhere."""
    inner = declarator.child_by_field_name("declarator")
    if inner is None and declarator.named_children:
        inner = declarator.named_children[-1]
    return inner


def _display_name(document: Document, node: Node) -> str:
    text = node_text(document, node).strip("\"'")
    return " ".join(text.removeprefix(":").split() if "symbol" in node.type else text.split())


def _nest(symbols: list[Symbol]) -> tuple[Symbol, ...]:
    """Make a tree of symbols: one belongs to the smallest other that properly contains it."""
    ordered = sorted(symbols, key=lambda symbol: (symbol.start, -symbol.end, symbol.name_start))
    children: dict[int, list[int]] = {}
    stack: list[int] = []
    for index, symbol in enumerate(ordered):
        while stack and not _contains(ordered[stack[-1]], symbol):
            stack.pop()
        if len(stack) > _DEEPEST:
            continue
        children.setdefault(stack[-1] if stack else -1, []).append(index)
        stack.append(index)

    def build(index: int, within: str) -> Symbol:
        symbol = ordered[index]
        kind = "method" if symbol.kind == "function" and within in CONTAINERS else symbol.kind
        inner = built(index, kind, symbol.name)
        changed = kind != symbol.kind or inner
        return replace(symbol, kind=kind, children=inner) if changed else symbol

    def built(parent: int, kind: str, name: str) -> tuple[Symbol, ...]:
        result: list[Symbol] = []
        for index in children.get(parent, ()):
            child = build(index, kind)
            # "typedef struct A {…} A" and the like define one thing twice.
            twice = child.name == name and child.kind == kind
            result.extend(child.children if twice else (child,))
        return tuple(result)

    return built(-1, "", "")


def _contains(outer: Symbol, inner: Symbol) -> bool:
    return (
        outer.start <= inner.start
        and inner.end <= outer.end
        and (outer.end - outer.start > inner.end - inner.start)
    )
