"""Imports resolved to files by each language's own rules. A table row a language.

Looks at which files exist and at project settings; parses no code. What is found is in the
workspace; whether it may be used is the policy's affair.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve import c, ecma, go, java, python, rust
from fimble_context.workspace.resolve.project import Project

__all__ = ["Project", "related", "resolve"]

_Resolve: TypeAlias = Callable[[Import, Path, Project], list[Path]]
_Related: TypeAlias = Callable[[Path, Project], list[Path]]


@dataclass(frozen=True, slots=True)
class _Rules:
    resolve: _Resolve
    related: _Related


_PYTHON = _Rules(python.resolve, python.related)
_ECMA = _Rules(ecma.resolve, ecma.related)
_JAVA = _Rules(java.resolve, java.related)
_C = _Rules(c.resolve, c.related)
_BY_LANGUAGE = {
    "python": _PYTHON,
    "javascript": _ECMA,
    "typescript": _ECMA,
    "tsx": _ECMA,
    "go": _Rules(go.resolve, go.related),
    "java": _JAVA,
    "kotlin": _JAVA,
    "scala": _JAVA,
    "rust": _Rules(rust.resolve, rust.related),
    "c": _C,
    "cpp": _C,
}


def resolve(import_: Import, language: str, from_path: Path, project: Project) -> list[Path]:
    """The files that an import of ``from_path`` leads to, the likeliest first.

    ``language`` is our id. Empty for languages without rules here, and for what lies outside
    the workspace or does not exist. Never raises for what is on disk.
    """
    rules = _BY_LANGUAGE.get(language)
    if rules is None or "\0" in import_.source:
        return []
    found = dict.fromkeys(_normal(path) for path in rules.resolve(import_, from_path, project))
    # A path in an import may climb out, on purpose of whoever wrote the file.
    places = (*project.folders, project.root_of(from_path))
    return [path for path in found if any(path.is_relative_to(place) for place in places)]


def related(language: str, path: Path, project: Project) -> list[Path]:
    """Files whose names ``path`` sees, or that belong to it, without an import.

    The rest of the package for Go, Java, Kotlin and Scala; header or source for C and C++; the
    package's own file for Python; the module around for Rust.
    """
    rules = _BY_LANGUAGE.get(language)
    return rules.related(path, project) if rules is not None else []


def _normal(path: Path) -> Path:
    return Path(os.path.normpath(path))
