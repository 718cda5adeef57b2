"""Includes of C and C++: beside the file, then the include folders.

Include folders come from compile_commands.json where there is one (the entry of the file, or
of all files for a header), and from the names that projects usually give them.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve.project import Project

__all__ = ["related", "resolve"]

HEADERS = (".h", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp", ".cuh")
SOURCES = (".c", ".cc", ".cpp", ".cxx", ".c++", ".cu", ".m", ".mm")

_DATABASES = (
    "compile_commands.json",
    "build/compile_commands.json",
    "out/compile_commands.json",
    "out/build/compile_commands.json",
    "builddir/compile_commands.json",
    "cmake-build-debug/compile_commands.json",
    "cmake-build-release/compile_commands.json",
)
_OPTIONS = ("-I", "-isystem", "-iquote", "-idirafter", "/I", "--include-directory=")
_FOLDERS = ("include", "inc", "src", "lib", "source", "Sources", "headers")
_MOST_ENTRIES = 20_000


def resolve(import_: Import, from_path: Path, project: Project) -> list[Path]:
    """The included file, if it is in the workspace."""
    name = import_.source.replace("\\", "/").strip()
    if not name or name.startswith("/"):
        return []
    folders = project.once(
        "includes", from_path, lambda: list(_include_folders(from_path, project))
    )
    for folder in (from_path.parent, *folders):
        if project.is_file(folder / name):
            return [folder / name]
    return []


def related(path: Path, project: Project) -> list[Path]:
    """The header of a source file, or the source files of a header."""
    endings = SOURCES if path.suffix.lower() in HEADERS else HEADERS
    found: dict[Path, None] = {}
    for folder in _counterparts(path, project):
        for ending in endings:
            candidate = folder / f"{path.stem}{ending}"
            if project.is_file(candidate):
                found[candidate] = None
    return list(found)


def _counterparts(path: Path, project: Project) -> Iterator[Path]:
    """Folders that may hold the other half: the same, or the same path in src and include."""
    yield path.parent
    root = project.root_of(path)
    for folder in project.upwards(path):
        if folder.name in _FOLDERS and folder != root:
            inside = path.parent.relative_to(folder)
            for name in _FOLDERS:
                yield folder.parent / name / inside
                # include/NAME/x.h beside src/x.c
                yield folder.parent / name / Path(*inside.parts[1:])
                yield folder.parent / name / folder.parent.name / inside


def _include_folders(from_path: Path, project: Project) -> Iterator[Path]:
    found: dict[Path, None] = {}
    upwards = list(project.upwards(from_path))
    for folder in upwards:
        for name in _DATABASES:
            found.update(dict.fromkeys(_from_database(folder / name, from_path, project)))
    for folder in (*upwards, *project.folders):
        found[folder] = None
        found.update((folder / name, None) for name in _FOLDERS)
    yield from (folder for folder in found if project.is_folder(folder))


def _from_database(path: Path, from_path: Path, project: Project) -> list[Path]:
    flags = project.parsed("compile_commands", path, _Database)
    return flags.folders_for(from_path) if flags is not None else []


class _Database:
    """Include folders by source file, from the text of a compile_commands.json."""

    def __init__(self, text: str) -> None:
        self._by_file: dict[Path, list[Path]] = {}
        self._all: dict[Path, None] = {}
        content = json.loads(text)
        for entry in content[:_MOST_ENTRIES] if isinstance(content, list) else ():
            if isinstance(entry, dict):
                self._add(entry)

    def _add(self, entry: dict[str, object]) -> None:
        directory, file = entry.get("directory"), entry.get("file")
        if not isinstance(directory, str) or not isinstance(file, str):
            return
        base = Path(directory)
        folders = [base / name for name in _options(_arguments(entry))]
        self._by_file[Path(os.path.normpath(base / file))] = folders
        self._all.update(dict.fromkeys(folders))

    def folders_for(self, path: Path) -> list[Path]:
        """Of this file's own entry; a header has none, so of all."""
        return self._by_file.get(path, list(self._all))


def _arguments(entry: dict[str, object]) -> list[str]:
    arguments = entry.get("arguments")
    if isinstance(arguments, list):
        return [str(argument) for argument in arguments]
    command = str(entry.get("command", ""))
    try:
        # Without POSIX rules a backslash is a path separator, as in commands for Windows.
        parts = shlex.split(command, posix="\\" not in command)
    except ValueError:
        parts = command.split()
    return [part.strip('"') for part in parts]


def _options(arguments: list[str]) -> Iterator[str]:
    following = False
    for argument in arguments:
        if following:
            following = False
            yield argument
        elif argument in _OPTIONS:
            following = True
        else:
            option = next((o for o in _OPTIONS if argument.startswith(o)), None)
            if option is not None:
                yield argument[len(option) :].strip('"')
