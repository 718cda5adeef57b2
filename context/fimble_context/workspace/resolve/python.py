"""Python's imports: packages, relative imports, source layouts, namespace packages.

Where a program would be started is not known, so an absolute import is looked for where it
can start: in the folder that holds the file's outermost package, in every folder further up
and their ``src`` folders, in what pyproject.toml names, and in the other workspace folders.
A regular package or module anywhere wins over a namespace package, as in Python itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve.project import Project

__all__ = ["related", "resolve"]

_ENDINGS = (".py", ".pyi")
_SOURCE_FOLDERS = ("src", "lib", "python")


def resolve(import_: Import, from_path: Path, project: Project) -> list[Path]:
    """The files of the submodules named, and the module's own file where it has the rest."""
    dots = len(import_.source) - len(import_.source.lstrip("."))
    parts = [part for part in import_.source.lstrip(".").split(".") if part]
    if dots:
        base = _above(from_path, dots)
        places = [base] if base is not None else []
    else:
        # A folder's files start from the same places.
        places = project.once("places", from_path.parent, lambda: list(_places(from_path, project)))
    module = _module(places, parts, project)
    if module is None:
        return []
    return _files(module, import_, project)


def related(path: Path, project: Project) -> list[Path]:
    """The package's own file."""
    init = path.parent / "__init__.py"
    return [init] if path.name != init.name and project.is_file(init) else []


def _above(path: Path, dots: int) -> Path | None:
    """The folder that a relative import with so many dots starts from."""
    parents = list(path.parents)
    return parents[dots - 1] if dots <= len(parents) else None


def _places(path: Path, project: Project) -> Iterator[Path]:
    """Folders that an absolute import may start from, the likeliest first."""
    found: dict[Path, None] = {}
    outermost = path.parent
    while project.is_file(outermost / "__init__.py") and outermost.parent != outermost:
        outermost = outermost.parent
    found[outermost] = None
    around = [*project.upwards(path), *project.folders]
    for folder in around:
        found.update(dict.fromkeys(_named_by_project(folder, project)))
        found[folder] = None
        for name in _SOURCE_FOLDERS:
            if project.is_folder(folder / name):
                found[folder / name] = None
    yield from found


def _named_by_project(folder: Path, project: Project) -> Iterator[Path]:
    """What a pyproject.toml says about where packages are."""
    tool = project.toml(folder / "pyproject.toml").get("tool")
    if not isinstance(tool, dict):
        return
    names: list[object] = []
    for keys in (
        ("setuptools", "packages", "find", "where"),
        ("setuptools", "package-dir"),
        ("pytest", "ini_options", "pythonpath"),
        ("pyright", "extraPaths"),
        ("ty", "environment", "root"),
    ):
        value: object = tool
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            names += [value[key] for key in value if key == ""]
        else:
            names += value if isinstance(value, list) else [value]
    for package in _list(tool.get("poetry"), "packages"):
        names.append(package.get("from") if isinstance(package, dict) else None)
    for name in names:
        if isinstance(name, str) and project.is_folder(folder / name):
            yield folder / name


def _list(table: object, key: str) -> list[object]:
    value = table.get(key) if isinstance(table, dict) else None
    return value if isinstance(value, list) else []


def _module(places: list[Path], parts: list[str], project: Project) -> Path | None:
    """A module's file, or the folder of a namespace package."""
    if not parts:
        return places[0] if places else None
    namespaces = []
    for place in places:
        # Text, not paths: this is asked for each import of each file on the way.
        target = os.path.join(place, *parts)  # noqa: PTH118
        file = _module_file(target, project)
        if file is not None:
            return file
        if project.is_folder(target):
            namespaces.append(Path(target))
    return namespaces[0] if namespaces else None


def _module_file(target: str, project: Project) -> Path | None:
    """``a/b`` → ``a/b/__init__.py`` or ``a/b.py``; stubs where there is no code."""
    return project.once("module", target, lambda: _look_for_module(target, project))


def _look_for_module(target: str, project: Project) -> Path | None:
    if project.is_folder(target):
        for ending in _ENDINGS:
            if project.is_file(file := os.path.join(target, f"__init__{ending}")):  # noqa: PTH118
                return Path(file)
    for ending in _ENDINGS:
        if project.is_file(file := target + ending):
            return Path(file)
    return None


def _files(module: Path, import_: Import, project: Project) -> list[Path]:
    init = project.is_folder(module)
    own = _module_file(str(module), project) if init else module
    folder = module if init else (module.parent if module.stem == "__init__" else None)
    found: dict[Path, None] = {}
    rest = import_.wildcard or not import_.names
    for name, _ in import_.names:
        target = os.path.join(folder, name) if folder is not None else None  # noqa: PTH118
        submodule = _module_file(target, project) if target is not None else None
        if submodule is not None and submodule != own:
            found[submodule] = None
        else:
            rest = True
    if rest and own is not None:
        found[own] = None
    return list(found)
