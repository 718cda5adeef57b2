"""What we say about real Python files is what Python's own parser says about them."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from fimble_context.syntax import Document, imports, outline, walk

MODULES = (
    "argparse", "ast", "asyncio/tasks", "collections/__init__", "contextlib", "ctypes/__init__",
    "dataclasses", "datetime", "email/message", "enum", "functools", "http/server", "inspect",
    "json/decoder", "logging/__init__", "multiprocessing/pool", "os", "pathlib", "pickle",
    "subprocess", "tarfile", "textwrap", "threading", "typing", "unittest/mock", "zipfile",
)  # fmt: skip
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def find(module: str) -> Path | None:
    library = Path(sysconfig.get_path("stdlib"))
    candidates = (library / f"{module}.py", library / module / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


@pytest.mark.parametrize("module", MODULES)
def test_definitions_and_imports(module: str) -> None:
    path = find(module)
    if path is None:
        pytest.skip("not in this version of Python")
    source = path.read_text(encoding="utf-8")
    document = Document(source, path=str(path))
    nodes = list(ast.walk(ast.parse(source)))

    definitions = {node.name for node in nodes if isinstance(node, DEFINITIONS)}
    kinds = {"function", "method", "class"}
    found = [symbol for symbol in walk(outline(document)) if symbol.kind in kinds]
    assert {symbol.name for symbol in found} == definitions
    assert len(found) == sum(isinstance(node, DEFINITIONS) for node in nodes)

    sources = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    sources |= {
        "." * node.level + (node.module or "") for node in nodes if isinstance(node, ast.ImportFrom)
    }
    assert {item.source for item in imports(document)} == sources - {"__future__"}
