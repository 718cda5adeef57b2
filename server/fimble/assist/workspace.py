"""Contexts with other files in them: ``fimble_context``'s workspace as prompts use it.

For the language server, which keeps one open, and for the command line, which opens one for
the project that a file is in. Knows no editor.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fimble import system
from fimble.assist.prompt import Assemble
from fimble_context.assembly import Context, TokenCounter, Workspace
from fimble_context.syntax import Document

__all__ = ["assemble_in", "index_folder", "is_too_wide", "open_workspace", "project_root"]

#: A folder with one of these is the root of a project; a repository's counts before others.
_MARKERS = (
    "pyproject.toml",
    "setup.py",
    "package.json",
    "go.mod",
    "Cargo.toml",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "CMakeLists.txt",
    "Gemfile",
    "composer.json",
)


def index_folder() -> Path:
    """Where the indexes of all workspaces are kept."""
    return system.home() / "index"


def open_workspace(folders: Sequence[Path], exclude_globs: Sequence[str] = ()) -> Workspace:
    """A workspace that has not begun to index (see ``Workspace.start``)."""
    folder = index_folder()
    system.make_private_dir(folder)
    return Workspace.of_folders(folders, folder, exclude_globs=exclude_globs)


def assemble_in(workspace: Workspace) -> Assemble:
    """The ``assemble`` that takes other files of ``workspace`` into account."""

    def assemble(document: Document, offset: int, budget: int, count: TokenCounter) -> Context:
        path = Path(document.path) if document.path else None
        context = workspace.assemble(document, offset, path=path, budget=budget, count_tokens=count)
        if path is None:
            return context
        # A prompt has paths as the project has them; what is above it is nobody's business.
        shown = workspace.shown_path(path)
        sections = tuple(
            replace(section, path=shown) if section.path == document.path else section
            for section in context.sections
        )
        return replace(context, sections=sections)

    return assemble


def is_too_wide(folder: Path) -> bool:
    """Whether a folder holds more than work: the user's own folder, or one above it.

    An editor names it where it knows no project, and a repository of settings lies in it.
    """
    home = system.user_folder()
    if home is None:
        return False
    folder, home = (Path(os.path.realpath(path)) for path in (folder, home))
    return folder in (home, *home.parents)


def project_root(path: Path) -> Path | None:
    """The folder of the project that a file is in; None where nothing says that it is in one."""
    folders = [folder for folder in path.absolute().parents if not is_too_wide(folder)]
    repository = next((folder for folder in folders if (folder / ".git").exists()), None)
    if repository is not None:
        return repository
    return next(
        (folder for folder in folders if any((folder / name).exists() for name in _MARKERS)), None
    )
