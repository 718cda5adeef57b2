"""Jinja for templates of someone else's: a small language, with limits on time and size.

A template is a program. Here it is made of a few kinds of nodes, reaches fields of plain data
and a few methods, and ends when it takes too long or its text grows too large. Which values
there are, and what a template is for, is known to whoever derives an environment.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

__all__ = [
    "LARGEST_TEXT",
    "LONGEST_RENDERING",
    "BoundedEnvironment",
    "TooMuch",
    "bounded",
    "bounded_join",
    "require_room",
]

#: The largest rendered text, in code points.
LARGEST_TEXT = 4_000_000
#: The longest that one rendering may take, in seconds.
LONGEST_RENDERING = 2.0

_LARGEST_NUMBER = 2**63

#: All that a template may be made of. Left out: macros, blocks, inheritance, imports,
#: captured and filtered blocks, powers.
_ALLOWED = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.For,
    nodes.Assign,
    nodes.With,
    nodes.Name,
    nodes.Const,
    nodes.Tuple,
    nodes.List,
    nodes.Dict,
    nodes.Pair,
    nodes.Keyword,
    nodes.CondExpr,
    nodes.Filter,
    nodes.Test,
    nodes.Call,
    nodes.Getattr,
    nodes.Getitem,
    nodes.Slice,
    nodes.Concat,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
)
_FILTERS = ("trim", "length", "count", "first", "last", "lower", "upper", "default", "d", "abs")
_TESTS = ("defined", "undefined", "none", "string", "number", "odd", "even", "eq", "ne", "in")


class TooMuch(Exception):
    """A template goes beyond a limit; the message says which."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Conditions, loops, attributes and a few filters, with limits on all of it.

    Every node of a template is one of ``_ALLOWED`` or of ``more_nodes``. Whatever can make a
    text longer is done by a function here that looks at its length first, and each turn of a
    loop looks at the clock.
    """

    intercepted_binops = frozenset(["+", "*", "%"])
    #: What a template may be made of besides.
    more_nodes: tuple[type[nodes.Node], ...] = ()
    #: The methods that may be called: none that makes anything longer.
    methods = frozenset(["items", "keys", "values", "get", "cycle"])

    def __init__(
        self,
        *,
        loader: jinja2.BaseLoader | None = None,
        undefined: type[jinja2.Undefined] = jinja2.StrictUndefined,
    ) -> None:
        super().__init__(loader=loader, undefined=undefined, trim_blocks=True, lstrip_blocks=True)
        self._deadline = 0.0
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.filters["join"] = bounded_join
        self.tests = {name: self.tests[name] for name in _TESTS}

    def begin(self) -> None:
        """Starts the clock for one rendering."""
        self._deadline = time.monotonic() + LONGEST_RENDERING

    def tick(self, *_: Any) -> str:
        """Called by templates themselves, each turn of a loop: ends one that takes too long."""
        if time.monotonic() > self._deadline:
            raise TooMuch(f"it takes longer than {LONGEST_RENDERING:g} s")
        return ""

    def text_of(self, template: jinja2.Template, values: Mapping[str, Any]) -> str:
        """What a template renders to. Raises TooMuch."""
        pieces: list[str] = []
        size = 0
        for piece in template.generate(**values):
            self.tick()
            size += len(piece)
            if size > LARGEST_TEXT:
                raise TooMuch(f"its text is longer than {LARGEST_TEXT} characters")
            pieces.append(piece)
        return "".join(pieces)

    def concat_bounded(self, *values: Any) -> str:
        """The ``~`` of templates."""
        return bounded("".join(map(str, values)))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return bounded(left + right)
        if not all(isinstance(each, int | float) for each in (left, right)):
            raise TooMuch(f"{operator} is for numbers")
        if operator == "*" and abs(left) * abs(right) > _LARGEST_NUMBER:
            raise TooMuch("a number is too large")
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:
        """No ``format``, which the sandbox would let through: it can make a text longer."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Fields of data, and the few methods that make nothing longer."""
        if not super().is_safe_attribute(obj, attr, value):
            return False
        return attr in self.methods if callable(value) else not isinstance(obj, str)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(nodes.Node):
            known = isinstance(node, (*_ALLOWED, *self.more_nodes))
            if not known or getattr(node, "recursive", False):
                raise jinja2.TemplateSyntaxError(
                    f"{type(node).__name__} is not allowed here", node.lineno, name, filename
                )
        for loop in list(tree.find_all(nodes.For)):
            loop.body.insert(0, _tick_node())
        tree.body.insert(0, _tick_node())
        _BoundedConcat().visit(tree)
        tree.set_environment(self)
        return tree


def require_room(size: int) -> None:
    """Raises TooMuch where a text of ``size`` code points would be too long."""
    if size > LARGEST_TEXT:
        raise TooMuch(f"a text in it is longer than {LARGEST_TEXT} characters")


def bounded(text: str) -> str:
    """The text itself. Raises TooMuch where it is too long."""
    require_room(len(text))
    return text


def bounded_join(values: Iterable[Any], separator: str = "") -> str:
    """Jinja's ``join``, bounded."""
    texts = [str(value) for value in values]
    require_room(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


class _BoundedConcat(NodeTransformer):
    """``a ~ b`` by ``concat_bounded``: the sandbox does not look at that operator."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        operands = [self.visit(each) for each in node.nodes]
        joined = nodes.EnvironmentAttribute("concat_bounded")
        return nodes.Call(joined, operands, [], None, None).set_lineno(node.lineno)


def _tick_node() -> nodes.Node:
    call = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
    return nodes.ExprStmt(call).set_lineno(1, override=True)
