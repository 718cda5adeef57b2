"""Edit tasks on real code: stripped or broken with a seed, and how to tell that one is solved.

Drawn from the standard library and installed packages, so that two runs on one machine see the
same tasks. Each says where its code is, so that nothing else may have changed. Some files get
CRLF line ends, a byte order mark, or lose their last line end: an edit has to keep those.
"""

from __future__ import annotations

import ast
import importlib.util
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Literal

from fimble.bench.edit_scripts import SCRIPTED, Scripted

__all__ = ["EditCase", "draw_edit_cases"]

#: How a solution is told: by a script that runs, or by syntax trees.
Check = Literal["script", "documented", "typed", "restored"]

_STDLIB = (
    "textwrap", "shlex", "fnmatch", "colorsys", "difflib", "calendar", "base64", "graphlib",
    "fractions", "ipaddress", "mimetypes", "pprint", "sched", "statistics", "string", "reprlib",
    "quopri", "posixpath", "genericpath", "netrc", "zipfile", "tarfile", "argparse", "configparser",
)  # fmt: skip
_TYPED = ("click", "httpx", "rich", "starlette", "platformdirs", "h11", "pygls", "jinja2")
_LEAST_LINES, _MOST_LINES = 4, 18


@dataclass(frozen=True, slots=True)
class EditCase:
    """``text`` is the whole file, ``start`` to ``end`` (code points) what may change.

    ``task`` and ``instruction`` as ``fimble edit`` takes them; ``problem`` is a diagnostic's
    message at ``problem_at``. ``original`` is the code before it was stripped or broken, and
    ``script`` what has to run without failing.
    """

    name: str
    kind: str
    task: str
    text: str
    start: int
    end: int
    check: Check
    original: str
    instruction: str = ""
    problem: str = ""
    problem_at: int = 0
    script: str = ""
    newline: str = "\n"
    mark: bytes = b""


@dataclass(frozen=True, slots=True)
class _Function:
    """A function of a real file; offsets are code points of ``text``."""

    module: str
    text: str
    start: int
    end: int
    node: ast.FunctionDef
    qualified: str

    @property
    def code(self) -> str:
        return self.text[self.start : self.end]


@dataclass
class _Source:
    """Functions of modules in a random order, each once."""

    modules: tuple[str, ...]
    random: Random
    fits: Callable[[_Function], bool]
    seen: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[_Function]:
        waiting = [list(_functions(name)) for name in self.modules]
        for functions in waiting:
            self.random.shuffle(functions)
        while any(waiting):
            for functions in waiting:
                while functions:
                    function = functions.pop()
                    if self.fits(function):
                        yield function
                        break


def draw_edit_cases(count: int, seed: int = 1) -> list[EditCase]:
    """``count`` tasks (fewer where there are no more), the kinds in turn."""
    kinds = [
        map(_undocumented, _Source(_STDLIB, Random(f"{seed} document"), _is_documented)),
        map(_untyped, _Source(_TYPED, Random(f"{seed} types"), _is_typed)),
        filter(None, map(_misspelled, _Source(_STDLIB, Random(f"{seed} name"), _is_plain))),
        *(
            filter(None, map(_scripted, [each for each in SCRIPTED if each.kind == kind]))
            for kind in dict.fromkeys(each.kind for each in SCRIPTED)
        ),
    ]
    drawn: list[EditCase] = []
    while kinds and len(drawn) < count:
        for kind in list(kinds):
            case = next(kind, None)
            if case is None:
                kinds.remove(kind)
            elif len(drawn) < count:
                drawn.append(_dressed(case, len(drawn)))
    return drawn


def _dressed(case: EditCase, number: int) -> EditCase:
    """The same task in a file as others write it."""
    newline = "\r\n" if number % 4 == 1 else "\n"
    mark = b"\xef\xbb\xbf" if number % 4 == 2 else b""
    text = case.text.rstrip("\n") if number % 4 == 3 else case.text

    def moved(offset: int) -> int:
        return offset + case.text.count("\n", 0, offset) * (len(newline) - 1)

    values = {name: getattr(case, name) for name in EditCase.__slots__}
    return EditCase(
        **values
        | {
            "text": text.replace("\n", newline),
            "start": moved(case.start),
            "end": min(moved(case.end), len(text.replace("\n", newline))),
            "problem_at": moved(case.problem_at),
            "newline": newline,
            "mark": mark,
        }
    )


# --- real code -----------------------------------------------------------------------------


def _functions(name: str) -> Iterator[_Function]:
    for path in _files(name):
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        starts = _line_starts(text)
        for node, around in _nested(tree, ()):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            start = starts[first] + node.col_offset - (1 if node.decorator_list else 0)
            start = (
                starts[first] + len(text[starts[first] :]) - len(text[starts[first] :].lstrip(" "))
            )
            assert node.end_lineno is not None and node.end_col_offset is not None
            line = text[starts[node.end_lineno - 1] :].encode()[: node.end_col_offset].decode()
            end = starts[node.end_lineno - 1] + len(line)
            lines = node.end_lineno - first
            if _LEAST_LINES <= lines <= _MOST_LINES:
                qualified = ".".join((*around, node.name))
                yield _Function(f"{name}/{path.stem}", text, start, end, node, qualified)


def _files(name: str) -> list[Path]:
    if name in _STDLIB:
        root = Path(sysconfig.get_path("stdlib"))
        found = [root / f"{name}.py", *sorted((root / name).glob("*.py"))]
        return [path for path in found if path.is_file()]
    spec = importlib.util.find_spec(name)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return sorted(Path(places[0]).glob("*.py")) if places else []


def _nested(
    tree: ast.AST, around: tuple[str, ...]
) -> Iterator[tuple[ast.FunctionDef, tuple[str, ...]]]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            yield child, around
        elif isinstance(child, ast.ClassDef):
            yield from _nested(child, (*around, child.name))


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for place, character in enumerate(text):
        if character == "\n":
            starts.append(place + 1)
    return starts


def _is_documented(function: _Function) -> bool:
    return ast.get_docstring(function.node) is not None and len(function.node.body) > 1


def _is_plain(function: _Function) -> bool:
    return len(function.node.body) > 1 and not function.node.decorator_list


def _is_typed(function: _Function) -> bool:
    arguments = _arguments(function.node)
    body = [each for each in function.node.body if not isinstance(each, ast.Pass)]
    return (
        1 <= len(arguments) <= 3
        and all(each.annotation is not None for each in arguments)
        and function.node.returns is not None
        and not function.node.decorator_list
        and len(body) > 0
        and not any(isinstance(each, ast.AnnAssign) for each in ast.walk(function.node))
    )


def _arguments(node: ast.FunctionDef) -> list[ast.arg]:
    listed = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [each for each in listed if each.arg not in ("self", "cls")]


# --- stripped and broken -------------------------------------------------------------------


def _replaced(function: _Function, code: str) -> tuple[str, int]:
    """The file with other code for the function, and where that ends."""
    text = function.text[: function.start] + code + function.text[function.end :]
    return text, function.start + len(code)


def _undocumented(function: _Function) -> EditCase:
    docstring, following = function.node.body[0], function.node.body[1]
    assert docstring.end_lineno is not None
    starts = _line_starts(function.text)
    first = starts[docstring.lineno - 1] - function.start
    last = starts[following.lineno - 1] - function.start
    code = function.code[:first] + function.code[last:]
    text, end = _replaced(function, code)
    return EditCase(
        f"{function.module}: {function.qualified}",
        "document", "document", text, function.start, end, "documented", code,
    )  # fmt: skip


def _untyped(function: _Function) -> EditCase:
    code = _without_annotations(function)
    text, end = _replaced(function, code)
    return EditCase(
        f"{function.module}: {function.qualified}",
        "types", "types", text, function.start, end, "typed", code,
    )  # fmt: skip


def _without_annotations(function: _Function) -> str:
    node, text = function.node, function.text
    starts = _line_starts(text)

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(text[starts[line - 1] :].encode()[:column].decode())

    cuts: list[tuple[int, int]] = []
    everything = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    everything += [each for each in (node.args.vararg, node.args.kwarg) if each is not None]
    for each in everything:
        if each.annotation is not None:
            end = each.annotation
            assert end.end_lineno is not None and end.end_col_offset is not None
            start = place(each.lineno, each.col_offset) + len(each.arg)
            cuts.append((start, place(end.end_lineno, end.end_col_offset)))
    if node.returns is not None:
        end = node.returns
        assert end.end_lineno is not None and end.end_col_offset is not None
        last = place(end.end_lineno, end.end_col_offset)
        cuts.append((text.rindex("->", 0, last), last))
        if text[cuts[-1][0] - 1] == " ":
            cuts[-1] = cuts[-1][0] - 1, last
    code = text
    for start, stop in sorted(cuts, reverse=True):
        code = code[:start] + code[stop:]
    return code[function.start : function.end - sum(stop - start for start, stop in cuts)]


def _misspelled(function: _Function) -> EditCase | None:
    """A local name that is written wrongly where it is used, as a linter would tell."""
    stored = {each.arg for each in _arguments(function.node)}
    loads = [
        node
        for node in ast.walk(function.node)
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Load)
        and node.id in stored
        and len(node.id) >= 3
        and node.lineno > function.node.body[0].lineno
    ]
    if not loads:
        return None
    chosen = loads[len(loads) // 2]
    wrong = chosen.id[:-2] + chosen.id[-1] + chosen.id[-2]
    wrong = f"{chosen.id}x" if wrong == chosen.id else wrong
    starts = _line_starts(function.text)
    line = function.text[starts[chosen.lineno - 1] :].encode()[: chosen.col_offset].decode()
    place = starts[chosen.lineno - 1] + len(line)
    code = (
        function.text[function.start : place]
        + wrong
        + function.text[place + len(chosen.id) : function.end]
    )
    text, end = _replaced(function, code)
    return EditCase(
        f"{function.module}: {function.qualified}", "fix a name", "fix", text, function.start,
        end, "restored", function.code, problem=f'undefined name "{wrong}"', problem_at=place,
    )  # fmt: skip


def _scripted(item: Scripted) -> EditCase | None:
    """A function with a bug, or to be changed; None where this Python has another one."""
    for function in _functions(item.module):
        if function.qualified != item.function:
            continue
        if item.old not in function.code:
            return None
        code = function.code.replace(item.old, item.new, 1) if item.old else function.code
        text, end = _replaced(function, code)
        place = function.start + (code.index(item.new) if item.old and item.new else 0)
        return EditCase(
            f"{function.module}: {function.qualified}", item.kind, item.task, text,
            function.start, end, "script", code, item.instruction, item.problem, place,
            item.script,
        )  # fmt: skip
    return None
