"""Places to edit in tests: a source with ``«…»`` around the selection, and a service on it."""

from __future__ import annotations

from pathlib import Path

from fimble.assist.chat.folder import FolderSources
from fimble.assist.edit.place import place_of
from fimble.assist.edit.service import EditRequest, EditService
from fimble.assist.edit.target import Target
from fimble.assist.edit.tasks import CUSTOM, TASKS
from fimble.assist.settings import EditSettings
from fimble.assist.templates import Templates
from fimble.engine.base import Engine
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document

__all__ = ["OneFolder", "fence", "request_for", "selected", "service_on", "target_of"]


class OneFolder(FolderSources):
    """A folder without an index."""

    def workspace(self) -> None:
        return None


def selected(source: str, path: str = "a.py", newline: str = "\n") -> tuple[Document, int, int]:
    """The document without its marks, and the selection between them."""
    source = source.replace("\n", newline)
    before, _, rest = source.partition("«")
    inside, _, after = rest.partition("»")
    document = Document(before + inside + after, path=path)
    return document, len(before), len(before) + len(inside)


def target_of(source: str, task: str = CUSTOM, path: str = "a.py", newline: str = "\n") -> Target:
    """What the task is about at the selection."""
    document, start, end = selected(source, path, newline)
    found = place_of(document, start, end, TASKS[task], None)
    assert isinstance(found, Target), found
    return found


def request_for(
    source: str,
    task: str = CUSTOM,
    *,
    path: str = "a.py",
    instruction: str = "do it",
    newline: str = "\n",
    problem: str = "",
) -> EditRequest:
    document, start, end = selected(source, path, newline)
    diagnostics = (Diagnostic(start, end, problem),) if problem else ()
    return EditRequest(document, start, end, task, instruction, diagnostics)


def service_on(engine: Engine, folder: Path) -> EditService:
    return EditService(lambda: engine, OneFolder(folder), Templates, EditSettings)


def fence(code: str, language: str = "python") -> str:
    return f"```{language}\n{code}\n```"
