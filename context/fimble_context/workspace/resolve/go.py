"""Go's imports: a module's path from go.mod, a package is a folder; go.work and replace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve.project import Project

__all__ = ["related", "resolve"]

_MODULE = re.compile(r"^\s*module\s+\"?([^\s\"]+)", re.MULTILINE)
_REPLACE = re.compile(
    r"^\s*(?:replace\s+)?\"?([^\s\"()]+)\"?(?:\s+v\S+)?\s*=>\s*\"?(\.{1,2}[^\s\"]*)", re.MULTILINE
)
_USE_BLOCK = re.compile(r"^\s*use\s*\(([^)]*)\)|^\s*use\s+([^\s(]+)", re.MULTILINE)


def resolve(import_: Import, from_path: Path, project: Project) -> list[Path]:
    """The files of the imported package, without its tests."""
    wanted = import_.source
    if wanted.startswith("."):
        return _package(from_path.parent / wanted, project)
    # The longest module path that fits is the module, as with nested modules in Go.
    fitting = [
        (len(path), folder / wanted[len(path) :].strip("/"))
        for path, folder in _modules(from_path, project)
        if wanted == path or wanted.startswith(f"{path}/")
    ]
    for _, folder in sorted(fitting, key=lambda item: -item[0]):
        files = _package(folder, project)
        if files:
            return files
    return []


def related(path: Path, project: Project) -> list[Path]:
    """The other files of the same package; those of its tests only for a test."""
    test = path.name.endswith("_test.go")
    files = _package(path.parent, project, tests=test)
    return [file for file in files if file != path]


def _package(folder: Path, project: Project, *, tests: bool = False) -> list[Path]:
    files = project.files_in(folder, ".go")
    return [file for file in files if tests or not file.name.endswith("_test.go")]


def _modules(from_path: Path, project: Project) -> Iterator[tuple[str, Path]]:
    """(module path, folder) of all modules that the file can see in the workspace."""
    for folder in (*project.upwards(from_path), *project.folders):
        text = project.text(folder / "go.mod")
        yield from _module(folder, project)
        for path, target in _REPLACE.findall(text):
            yield path, folder / target
        for block, single in _USE_BLOCK.findall(project.text(folder / "go.work")):
            for name in (block or single).split():
                yield from _module(folder / name.strip('"'), project)


def _module(folder: Path, project: Project) -> Iterator[tuple[str, Path]]:
    found = _MODULE.search(project.text(folder / "go.mod"))
    if found is not None:
        yield found[1], folder
