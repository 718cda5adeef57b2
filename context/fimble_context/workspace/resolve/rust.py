"""Rust's ``use``, ``mod`` and ``extern crate``: a crate's modules are files by their place.

A crate's root is ``src/lib.rs``, ``src/main.rs``, a file of ``src/bin``, ``tests``,
``examples`` or ``benches``, or what Cargo.toml names. Paths that a ``#[path]`` attribute
gives and modules inside inline ``mod`` blocks are looked for where the file alone puts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve.project import Project

__all__ = ["related", "resolve", "use_paths"]

_ROOTS = ("lib.rs", "main.rs")
_TARGET_FOLDERS = ("bin", "tests", "examples", "benches")
_MOST_PATHS = 200


@dataclass(frozen=True, slots=True)
class _Module:
    """A module: its file and the folder that its child modules are in."""

    file: Path
    children: Path


def resolve(import_: Import, from_path: Path, project: Project) -> list[Path]:
    """The file of the module that each path leads to, as deep as files go."""
    found: dict[Path, None] = {}
    for path in use_paths(import_.source):
        module = _walk(path, from_path, project)
        if module is not None and module.file != from_path:
            found[module.file] = None
    return list(found)


def related(path: Path, project: Project) -> list[Path]:
    """The module around this one: its file says what is in scope by ``super``."""
    module = _of_file(path)
    above = _parent(module, project)
    return [above.file] if above is not None else []


def use_paths(tree: str) -> list[list[str]]:
    """``a::{b, c::{d, self}} as x`` → the paths ``a b``, ``a c d``, ``a c``.

    A ``*`` and ``self`` at the end stand for the module before them. At most 200 paths.
    """
    paths: list[list[str]] = []
    stack: list[list[str]] = [[]]
    current: list[str] = []

    def close() -> None:
        nonlocal current
        if current and len(paths) < _MOST_PATHS:
            path = stack[-1] + current
            paths.append(path[:-1] if len(path) > 1 and path[-1] in ("*", "self") else path)
        current = []

    for token in _tokens(tree):
        if token == "{":
            stack.append(stack[-1] + current)
            current = []
        elif token == "}":
            close()
            if len(stack) > 1:
                stack.pop()
        elif token == ",":
            close()
        elif token != "::":
            current.append(token)
    close()
    return paths


def _tokens(tree: str) -> Iterator[str]:
    """Names and punctuation, without aliases."""
    for sign in ("{", "}", ",", "::", "*"):
        tree = tree.replace(sign, f" {sign} ")
    words = iter(tree.split())
    for word in words:
        if word == "as":
            next(words, None)
        else:
            yield word.removeprefix("r#")


def _walk(path: list[str], from_path: Path, project: Project) -> _Module | None:
    first, rest = path[0], path[1:]
    here = _of_file(from_path)
    module: _Module | None
    if first == "crate":
        module = _crate_root(from_path, project)
    elif first == "self":
        module = here
    elif first == "super":
        module = _parent(here, project)
        while rest and rest[0] == "super" and module is not None:
            module, rest = _parent(module, project), rest[1:]
    else:
        # A module declared here wins over a crate of the same name.
        module = _child(here, first, project) or _crate(first, from_path, project)
    while module is not None and rest:
        child = _child(module, rest[0], project)
        if child is None:
            break
        module, rest = child, rest[1:]
    return module


def _of_file(path: Path) -> _Module:
    owns_folder = (
        path.name in ("mod.rs", *_ROOTS) or path.parent.name in _TARGET_FOLDERS
    )  # fmt: skip
    return _Module(path, path.parent if owns_folder else path.with_suffix(""))


def _child(module: _Module, name: str, project: Project) -> _Module | None:
    file = project.first_file(
        iter((module.children / f"{name}.rs", module.children / name / "mod.rs"))
    )
    return _Module(file, module.children / name) if file is not None else None


def _parent(module: _Module, project: Project) -> _Module | None:
    if module.file.name in _ROOTS:
        return None
    folder = module.file.parent.parent if module.file.name == "mod.rs" else module.file.parent
    own = (folder / "mod.rs", *(folder / name for name in _ROOTS), folder.with_suffix(".rs"))
    file = project.first_file(iter(own))
    return _Module(file, folder) if file is not None else None


# --- crates -------------------------------------------------------------------------------


def _crate_root(path: Path, project: Project) -> _Module | None:
    manifest = project.nearest(path, "Cargo.toml")
    if manifest is None:
        # Without Cargo: the uppermost module around the file.
        module: _Module | None = _of_file(path)
        top = module
        while module is not None:
            top, module = module, _parent(module, project)
        return top
    folder = manifest.parent
    inside = path.relative_to(folder).parts
    if inside[0] in _TARGET_FOLDERS or inside[:2] == ("src", "bin"):
        start = 1 if inside[0] in _TARGET_FOLDERS else 2
        root = folder.joinpath(*inside[: start + 1])
        if len(inside) == start + 1:
            return _Module(root, root.parent)
        file = project.first_file(iter((root / "main.rs", root.with_suffix(".rs"))))
        return _Module(file, file.parent) if file is not None else None
    if path.name == "main.rs":
        return _of_file(path)
    return _library(folder, project, ("lib", "bin"))


def _library(folder: Path, project: Project, kinds: tuple[str, ...] = ("lib",)) -> _Module | None:
    """The root of a package's library, or of its program."""
    content = project.toml(folder / "Cargo.toml")
    named = []
    for kind in kinds:
        table = content.get(kind)
        for entry in table if isinstance(table, list) else [table]:
            if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                named.append(folder / entry["path"])
    default = (folder / "src" / name for name in _ROOTS)
    file = project.first_file(iter((*named, *default)))
    return _Module(file, file.parent) if file is not None else None


def _crate(name: str, from_path: Path, project: Project) -> _Module | None:
    """A crate of the workspace by the name that code uses for it."""
    for crate, folder in _crates(from_path, project):
        if crate.replace("-", "_") == name:
            return _library(folder, project)
    return None


def _crates(from_path: Path, project: Project) -> Iterator[tuple[str, Path]]:
    """(name in code, folder): the own package, path dependencies, members of workspaces."""
    seen: set[Path] = set()
    for folder in (*project.upwards(from_path), *project.folders):
        content = project.toml(folder / "Cargo.toml")
        if not content or folder in seen:
            continue
        seen.add(folder)
        yield from _named(content, folder)
        workspace = content.get("workspace")
        workspace = workspace if isinstance(workspace, dict) else {}
        for tables in (content, workspace):
            for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
                yield from _path_dependencies(tables.get(kind), folder)
        members = workspace.get("members")
        patterns = [m for m in members if isinstance(m, str)] if isinstance(members, list) else []
        for member in project.members(folder, patterns):
            yield from _named(project.toml(member / "Cargo.toml"), member)


def _named(content: dict[str, object], folder: Path) -> Iterator[tuple[str, Path]]:
    for kind in ("lib", "package"):
        table = content.get(kind)
        name = table.get("name") if isinstance(table, dict) else None
        if isinstance(name, str):
            yield name, folder


def _path_dependencies(table: object, folder: Path) -> Iterator[tuple[str, Path]]:
    for name, value in table.items() if isinstance(table, dict) else ():
        path = value.get("path") if isinstance(value, dict) else None
        if isinstance(path, str):
            yield name, folder / path
