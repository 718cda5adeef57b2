"""Prompt templates: ours, the user's own in their place, and a workspace's if the user says so.

A template is named ``chat/system``; ours is ``prompts/chat/system.jinja`` beside this module,
the user's ``FIMBLE_HOME/templates/chat/system.jinja``, a workspace's
``.fimble/templates/chat/system.jinja``. What a workspace brings is used only if the file
``FIMBLE_HOME/templates/workspaces.txt`` lists its folder: editor settings could come from the
same workspace, that file cannot.

Someone else's template is a program, so it gets a small language with limits
(``fimble.template_bounds``). What a prompt says is not known here; what is rendered is text, in
which nothing is a control token.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import nodes

from fimble import system
from fimble.assist.fences import fenced
from fimble.errors import TemplateFailed
from fimble.template_bounds import BoundedEnvironment, TooMuch, require_room

__all__ = ["Templates", "find_templates"]

#: The largest template, in bytes.
LARGEST_TEMPLATE = 64 * 1024

_ENDING = ".jinja"
_WORKSPACE_FOLDER = Path(".fimble", "templates")
_TRUSTED = "workspaces.txt"
_WIDEST_INDENT = 64


def find_templates(workspace_folders: Iterable[Path] = ()) -> Templates:
    """The templates for a session whose workspace has these folders.

    Those of a workspace take precedence over the user's, and the user's over ours.
    """
    own = system.templates_dir()
    trusted = _trusted_folders(own / _TRUSTED)
    brought = [
        folder / _WORKSPACE_FOLDER for folder in workspace_folders if folder.resolve() in trusted
    ]
    return Templates(own=own, brought=brought)


class Templates:
    """Renders templates by name, in any thread.

    ``own`` is the user's folder of overriding templates; those of the ``brought`` folders win
    over them, and cannot be links to elsewhere.
    """

    def __init__(self, own: Path | None = None, brought: Sequence[Path] = ()) -> None:
        self._loader = _Loader(own, brought)
        self._environment = _Environment(self._loader)
        self._rendering = threading.Lock()

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The text of the template ``name`` for these values, without white space at its ends.

        Values are plain data: texts, numbers, lists, dicts and frozen dataclasses of them.
        Raises TemplateFailed, which names the file and the line where that is known.
        """
        with self._rendering:
            try:
                self._environment.begin()
                template = self._environment.get_template(name)
                return self._environment.text_of(template, values).strip()
            except TemplateFailed:
                raise
            except Exception as error:
                # A template is a program of someone else's and may fail in any way.
                raise _failed(self._loader.where(name), error) from error


class _Loader(jinja2.BaseLoader):
    """Finds a template in the first of the folders that has it, else among ours."""

    def __init__(self, own: Path | None, brought: Sequence[Path]) -> None:
        self._own = own
        self._brought = tuple(brought)

    def where(self, name: str) -> str:
        """The template for a person: its file, or its name if it is ours or none."""
        try:
            file = self._override(name)
        except jinja2.TemplateNotFound:
            file = None
        return name if file is None else str(file)

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        file = self._override(template)
        if file is not None:
            # Read again each time: whoever works on a template sees what it does.
            return _read(file), str(file), lambda: False
        ours = resources.files("fimble.assist").joinpath("prompts")
        try:
            text = ours.joinpath(*f"{template}{_ENDING}".split("/")).read_text(encoding="utf-8")
        except OSError as error:
            raise jinja2.TemplateNotFound(template) from error
        # An override may appear at any time, so one is looked for again.
        return text, None, lambda: self._override(template) is None

    def _override(self, name: str) -> Path | None:
        """The file that stands in for our template of that name, if there is one."""
        parts = name.split("/")
        if not all(re.fullmatch(r"[a-z][a-z0-9_-]*", part) for part in parts):
            raise jinja2.TemplateNotFound(name)
        relative = Path(*parts).with_suffix(_ENDING)
        for folder in self._brought:
            file = folder / relative
            if file.is_file() and file.resolve().is_relative_to(folder.resolve()):
                return file
        file = (self._own or Path()) / relative
        return file if self._own is not None and file.is_file() else None


class _Environment(BoundedEnvironment):
    """With includes, and what prompts need: fences and indentation."""

    more_nodes = (nodes.Include,)

    def __init__(self, loader: jinja2.BaseLoader) -> None:
        super().__init__(loader=loader)
        self.filters |= {"fenced": fenced, "indent": _indent}


def _indent(text: str, width: int = 4, first: bool = False) -> str:
    """Jinja's ``indent``, bounded: empty lines stay empty."""
    if not 0 <= width <= _WIDEST_INDENT:
        raise TooMuch(f"indent takes a width up to {_WIDEST_INDENT}")
    lines = text.split("\n")
    require_room(len(text) + width * len(lines))
    margin = " " * width
    return "\n".join(
        margin + line if line and (first or place) else line for place, line in enumerate(lines)
    )


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        data = stream.read(LARGEST_TEMPLATE + 1)
    if len(data) > LARGEST_TEMPLATE:
        raise TooMuch(f"it is larger than {LARGEST_TEMPLATE // 1024} KiB")
    return data.decode("utf-8")


def _trusted_folders(file: Path) -> set[Path]:
    """The folders that the user's file lists, one a line; ``#`` begins a comment."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    paths = [line.strip() for line in lines]
    return {Path(path).expanduser().resolve() for path in paths if path and path[0] != "#"}


def _failed(where: str, error: Exception) -> TemplateFailed:
    line = getattr(error, "lineno", None)
    at = f", line {line}" if line else ""
    return TemplateFailed(
        f"The template {where}{at} cannot be used: "
        f"{str(error).rstrip('.') or type(error).__name__}.",
        next_step="Correct it, or remove your own template to use the one that comes with fimble.",
    )
