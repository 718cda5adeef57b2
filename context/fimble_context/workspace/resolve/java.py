"""Java's imports, and those of Kotlin and Scala, which follow the same rule: a package is a path.

Source roots are found by the file's own package line, and by the layout that Maven and Gradle
share (``MODULE/src/main/java``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve.project import Project

__all__ = ["related", "resolve"]

_ENDINGS = (".java", ".kt", ".scala")
_SETS = ("main", "test", "testFixtures", "commonMain", "jvmMain", "androidTest")
_PACKAGE = re.compile(r"^\s*package\s+([\w.]+)", re.MULTILINE)


def resolve(import_: Import, from_path: Path, project: Project) -> list[Path]:
    """The file of a class; all files of a package for a wildcard.

    A nested class and a static member are in the file of the outermost class.
    """
    parts = import_.source.split(".")
    roots = list(_roots(from_path, project))
    if import_.names:
        found = [
            path
            for name, _ in import_.names
            for path in _class(roots, [*parts, name], project)
        ]  # fmt: skip
        return list(dict.fromkeys(found))
    if import_.wildcard:
        for root in roots:
            files = project.files_in(root.joinpath(*parts), *_ENDINGS)
            if files:
                return files
    return _class(roots, parts, project)


def related(path: Path, project: Project) -> list[Path]:
    """The other files of the same package in the same folder."""
    return [file for file in project.files_in(path.parent, *_ENDINGS) if file != path]


def _class(roots: list[Path], parts: list[str], project: Project) -> list[Path]:
    for length in range(len(parts), 1, -1):
        for root in roots:
            target = root.joinpath(*parts[:length])
            file = project.first_file(
                target.parent / f"{target.name}{ending}" for ending in _ENDINGS
            )
            if file is not None:
                return [file]
        # Kotlin and Scala need not name a file after what is in it.
        if length == len(parts):
            continue
        for root in roots:
            others = project.files_in(root.joinpath(*parts[:length]), ".kt", ".scala")
            if others:
                return others
    return []


def _roots(path: Path, project: Project) -> Iterator[Path]:
    found: dict[Path, None] = {}
    own = _PACKAGE.search(project.text(path))
    if own is not None:
        parts = own[1].split(".")
        if list(path.parent.parts[-len(parts) :]) == parts:
            found[path.parents[len(parts)]] = None
    for folder in (*project.upwards(path), *project.folders):
        for module in (folder, *project.folders_in(folder)):
            if project.is_folder(module / "src"):
                found.update(dict.fromkeys(_source_roots(module / "src", project)))
    yield from found


def _source_roots(src: Path, project: Project) -> Iterator[Path]:
    for name in _SETS:
        for language in ("java", "kotlin", "scala"):
            if project.is_folder(src / name / language):
                yield src / name / language
    yield src
