"""Python's type annotations: whether two pieces of code are the same without them.

Reads code, runs none. Code that is no Python by itself (part of a statement) is not judged.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings

__all__ = ["python_imports", "same_but_annotations", "used_imports", "with_annotations"]

_IMPORT = re.compile(r"(?:import|from)\s[^\n(]*$")


def same_but_annotations(before: str, after: str) -> bool | None:
    """Whether ``after`` is ``before`` with other annotations; None where nobody can tell."""
    trees = _parsed(before), _parsed(after)
    if trees[0] is None or trees[1] is None:
        return None
    return ast.dump(_Untyped().visit(trees[0])) == ast.dump(_Untyped().visit(trees[1]))


def with_annotations(before: str, after: str, name: str, known: str) -> str | None:
    """``before`` with the annotations of parameters that ``after`` gives its function ``name``.

    For an answer that changes more than it should: what the function gives back may be another
    thing there, so that annotation stays behind, and so do those with names that ``known`` (the
    file) does not have. None where there is nothing to take.
    """
    mine, other = _function(before, name), _function(after, name)
    if mine is None or other is None:
        return None
    parameters, theirs = _parameters(mine), _parameters(other)
    if [each.arg for each in parameters] != [each.arg for each in theirs]:
        return None
    words = set(dir(builtins)) | set(re.findall(r"\w+", known))
    lines = before.split("\n")
    taken = 0
    for parameter, annotated in reversed(list(zip(parameters, theirs, strict=True))):
        if parameter.annotation is not None or annotated.annotation is None:
            continue
        annotation = ast.unparse(annotated.annotation)
        if not set(re.findall(r"[^\W\d]\w*", annotation)) <= words:
            continue
        # Columns count the bytes of UTF-8.
        line = lines[parameter.lineno - 1].encode()
        start, rest = line[: parameter.end_col_offset].decode(), line[parameter.end_col_offset :]
        default = rest.decode()
        default = f" = {default[1:]}" if default.startswith("=") else default
        lines[parameter.lineno - 1] = f"{start}: {annotation}{default}"
        taken += 1
    return "\n".join(lines) if taken else None


def python_imports(code: str) -> tuple[list[str], str]:
    """The imports of one line each with which code begins, and the rest of it."""
    lines = code.split("\n")
    found: list[str] = []
    place = 0
    while place < len(lines) and (not lines[place].strip() or _IMPORT.match(lines[place])):
        if lines[place].strip():
            found.append(lines[place].strip())
        place += 1
    return found, "\n".join(lines[place:])


def used_imports(imports: list[str], code: str) -> list[str]:
    """Those of the imports (a line each) that bring a name which ``code`` uses."""
    words = set(re.findall(r"\w+", code))
    used = []
    for line in imports:
        names = re.sub(r"^.*\bimport\b|\w+(?:\.\w+)*\s+as\b", " ", line)
        if "*" in names or words & set(re.findall(r"\w+", names)):
            used.append(line)
    return used


class _Untyped(ast.NodeTransformer):
    """Takes annotations and imports out."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = node.type_comment = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = node.type_comment = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = node.type_comment = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        return ast.Assign(targets=[node.target], value=node.value, type_comment=None)

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None


def _function(code: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    tree = _parsed(code)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return node
    return None


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """In the order of the text."""
    listed = function.args
    more = (listed.vararg, listed.kwarg)
    found = [*listed.posonlyargs, *listed.args, *listed.kwonlyargs, *filter(None, more)]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _parsed(code: str) -> ast.AST | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
