"""Prompt templates: ours, the user's own in their place, and a workspace's if the user says so.

A template is named ``chat/system``; ours is ``prompts/chat/system.jinja`` beside this module,
the user's ``FIMBLE_HOME/templates/chat/system.jinja``, a workspace's
``.fimble/templates/chat/system.jinja``. What a workspace brings is used only if the file
``FIMBLE_HOME/templates/workspaces.txt`` lists its folder: editor settings could come from the
same workspace, that file cannot.

Someone else's template is a program, so it gets a small language: see ``_Environment``. What a
prompt says is not known here; what is rendered is text, in which nothing is a control token.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from fimble import system
from fimble.errors import TemplateFailed

__all__ = ["Templates", "fence_for", "fenced", "find_templates"]

#: The largest template, in bytes, and the largest rendered text, in code points.
LARGEST_TEMPLATE = 64 * 1024
LARGEST_TEXT = 4_000_000
#: The longest that one rendering may take, in seconds.
LONGEST_RENDERING = 2.0

_ENDING = ".jinja"
_WORKSPACE_FOLDER = Path(".fimble", "templates")
_TRUSTED = "workspaces.txt"
_WIDEST_INDENT = 64
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
    nodes.Include,
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
_METHODS = {"items", "keys", "values", "get", "cycle"}


def find_templates(workspace_folders: Iterable[Path] = ()) -> Templates:
    """The templates for a session whose workspace has these folders.

    Those of a workspace take precedence over the user's, and the user's over ours.
    """
    own = system.templates_dir()
    trusted = _trusted_folders(own / _TRUSTED)
    brought = [
        folder / _WORKSPACE_FOLDER for folder in workspace_folders if folder.resolve() in trusted
    ]
    return Templates(own=own, brought=brought)


class Templates:
    """Renders templates by name, in any thread.

    ``own`` is the user's folder of overriding templates; those of the ``brought`` folders win
    over them, and cannot be links to elsewhere.
    """

    def __init__(self, own: Path | None = None, brought: Sequence[Path] = ()) -> None:
        self._loader = _Loader(own, brought)
        self._environment = _Environment(self._loader)
        self._rendering = threading.Lock()

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The text of the template ``name`` for these values, without white space at its ends.

        Values are plain data: texts, numbers, lists, dicts and frozen dataclasses of them.
        Raises TemplateFailed, which names the file and the line where that is known.
        """
        with self._rendering:
            try:
                self._environment.begin()
                template = self._environment.get_template(name)
                return self._environment.text_of(template, values).strip()
            except TemplateFailed:
                raise
            except Exception as error:
                # A template is a program of someone else's and may fail in any way.
                raise _failed(self._loader.where(name), error) from error


def fence_for(text: str) -> str:
    """A Markdown fence that no line of ``text`` can close: three backticks or more."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


def fenced(text: str, language: str = "") -> str:
    """``text`` as a fenced code block of Markdown, whatever fences are in it."""
    fence = fence_for(text)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{language}\n{text}{end}{fence}"


class _Loader(jinja2.BaseLoader):
    """Finds a template in the first of the folders that has it, else among ours."""

    def __init__(self, own: Path | None, brought: Sequence[Path]) -> None:
        self._own = own
        self._brought = tuple(brought)

    def where(self, name: str) -> str:
        """The template for a person: its file, or its name if it is ours or none."""
        try:
            file = self._override(name)
        except jinja2.TemplateNotFound:
            file = None
        return name if file is None else str(file)

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        file = self._override(template)
        if file is not None:
            # Read again each time: whoever works on a template sees what it does.
            return _read(file), str(file), lambda: False
        ours = resources.files("fimble.assist").joinpath("prompts")
        try:
            text = ours.joinpath(*f"{template}{_ENDING}".split("/")).read_text(encoding="utf-8")
        except OSError as error:
            raise jinja2.TemplateNotFound(template) from error
        # An override may appear at any time, so one is looked for again.
        return text, None, lambda: self._override(template) is None

    def _override(self, name: str) -> Path | None:
        """The file that stands in for our template of that name, if there is one."""
        parts = name.split("/")
        if not all(re.fullmatch(r"[a-z][a-z0-9_-]*", part) for part in parts):
            raise jinja2.TemplateNotFound(name)
        relative = Path(*parts).with_suffix(_ENDING)
        for folder in self._brought:
            file = folder / relative
            if file.is_file() and file.resolve().is_relative_to(folder.resolve()):
                return file
        file = (self._own or Path()) / relative
        return file if self._own is not None and file.is_file() else None


class _Environment(ImmutableSandboxedEnvironment):
    """Conditions, loops, includes, attributes and a few filters, with limits on all of it.

    Every node of a template is one of ``_ALLOWED``. Whatever can make a text longer is done by
    a function here that looks at its length first, and each turn of a loop looks at the clock.
    """

    intercepted_binops = frozenset(["+", "*", "%"])

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(
            loader=loader,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._deadline = 0.0
        self.globals.clear()
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.filters |= {"fenced": fenced, "indent": _indent, "join": _join}
        self.tests = {name: self.tests[name] for name in _TESTS}

    def begin(self) -> None:
        """Starts the clock for one rendering."""
        self._deadline = time.monotonic() + LONGEST_RENDERING

    def tick(self, *_: Any) -> str:
        """Called by templates themselves, each turn of a loop: ends one that takes too long."""
        if time.monotonic() > self._deadline:
            raise _TooMuch(f"it takes longer than {LONGEST_RENDERING:g} s")
        return ""

    def text_of(self, template: jinja2.Template, values: Mapping[str, Any]) -> str:
        """What a template renders to. Raises _TooMuch."""
        pieces: list[str] = []
        size = 0
        for piece in template.generate(**values):
            self.tick()
            size += len(piece)
            if size > LARGEST_TEXT:
                raise _TooMuch(f"its text is longer than {LARGEST_TEXT} characters")
            pieces.append(piece)
        return "".join(pieces)

    def concat_bounded(self, *values: Any) -> str:
        """The ``~`` of templates."""
        return _bounded("".join(map(str, values)))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return _bounded(left + right)
        if not all(isinstance(each, int | float) for each in (left, right)):
            raise _TooMuch(f"{operator} is for numbers")
        if operator == "*" and abs(left) * abs(right) > _LARGEST_NUMBER:
            raise _TooMuch("a number is too large")
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> None:
        """No ``format``, which the sandbox would let through: it can make a text longer."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Fields of data, and the few methods of dicts and loops that make nothing longer."""
        if not super().is_safe_attribute(obj, attr, value):
            return False
        return attr in _METHODS if callable(value) else not isinstance(obj, str)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for node in tree.find_all(nodes.Node):
            if not isinstance(node, _ALLOWED) or getattr(node, "recursive", False):
                raise jinja2.TemplateSyntaxError(
                    f"{type(node).__name__} is not allowed here", node.lineno, name, filename
                )
        for loop in list(tree.find_all(nodes.For)):
            loop.body.insert(0, _tick_node())
        tree.body.insert(0, _tick_node())
        _BoundedConcat().visit(tree)
        tree.set_environment(self)
        return tree


class _BoundedConcat(NodeTransformer):
    """``a ~ b`` by ``concat_bounded``: the sandbox does not look at that operator."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        operands = [self.visit(each) for each in node.nodes]
        joined = nodes.EnvironmentAttribute("concat_bounded")
        return nodes.Call(joined, operands, [], None, None).set_lineno(node.lineno)


def _tick_node() -> nodes.Node:
    call = nodes.Call(nodes.EnvironmentAttribute("tick"), [], [], None, None)
    return nodes.ExprStmt(call).set_lineno(1, override=True)


class _TooMuch(Exception):
    """A template goes beyond a limit; the message says which."""


def _bounded(text: str) -> str:
    if len(text) > LARGEST_TEXT:
        raise _TooMuch(f"a text in it is longer than {LARGEST_TEXT} characters")
    return text


def _indent(text: str, width: int = 4, first: bool = False) -> str:
    """Jinja's ``indent``, bounded: empty lines stay empty."""
    if not 0 <= width <= _WIDEST_INDENT:
        raise _TooMuch(f"indent takes a width up to {_WIDEST_INDENT}")
    lines = text.split("\n")
    if len(text) + width * len(lines) > LARGEST_TEXT:
        raise _TooMuch(f"a text in it is longer than {LARGEST_TEXT} characters")
    margin = " " * width
    return "\n".join(
        margin + line if line and (first or place) else line for place, line in enumerate(lines)
    )


def _join(values: Iterable[Any], separator: str = "") -> str:
    """Jinja's ``join``, bounded."""
    texts = [str(value) for value in values]
    if sum(map(len, texts)) + len(separator) * len(texts) > LARGEST_TEXT:
        raise _TooMuch(f"a text in it is longer than {LARGEST_TEXT} characters")
    return separator.join(texts)


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        data = stream.read(LARGEST_TEMPLATE + 1)
    if len(data) > LARGEST_TEMPLATE:
        raise _TooMuch(f"it is larger than {LARGEST_TEMPLATE // 1024} KiB")
    return data.decode("utf-8")


def _trusted_folders(file: Path) -> set[Path]:
    """The folders that the user's file lists, one a line; ``#`` begins a comment."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    paths = [line.strip() for line in lines]
    return {Path(path).expanduser().resolve() for path in paths if path and path[0] != "#"}


def _failed(where: str, error: Exception) -> TemplateFailed:
    line = getattr(error, "lineno", None)
    at = f", line {line}" if line else ""
    return TemplateFailed(
        f"The template {where}{at} cannot be used: "
        f"{str(error).rstrip('.') or type(error).__name__}.",
        next_step="Correct it, or remove your own template to use the one that comes with fimble.",
    )
