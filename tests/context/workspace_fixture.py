"""A small workspace in one text file: its files, what the user did in them, a cursor.

Sections begin with ``=== WHAT PATH``. WHAT is ``file``; ``edited`` or ``visited`` (a file with
marks around what was edited, or where the user was); ``open`` (a document that differs from
what is on disk or has no file at all); ``cursor`` (the file with the cursor). After them,
``=== context BUDGET`` has the sections that are expected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fimble_context.assembly import Context, Workspace
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import Document, Edit

MARK = "│"
_SECTION = re.compile(r"^=== (\w+) (\S+)\n", re.MULTILINE)
#: Cuts text as Qwen's pre-tokenizer does where it matters.
_TOKEN = re.compile(r"\s*\n+|[^\W\d]{1,6}|\d|[^\s\w]+\n*|[^\S\n]+|.", re.DOTALL)


class Counter:
    """Counts tokens of a toy tokenizer, and how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, texts: Sequence[str]) -> list[int]:
        self.calls += 1
        return [len(_TOKEN.findall(text)) for text in texts]


def as_prompt(context: Context) -> str:
    """What a prompt's layout makes of the sections, with a space for each control token."""
    others = [item for item in context.sections if item.kind not in OWN]
    own = [item for item in context.sections if item.kind in OWN]
    parts = [f" {context.repository}\n"] if others else []
    parts += [f" {item.path}\n{item.text}" for item in others]
    parts += [f" {own[0].path}\n"] if others else []
    return "".join([*parts, *(item.text for item in own)])


OWN = ("skeleton", "prefix", "suffix")


@dataclass
class Fixture:
    """What a text file says."""

    files: list[tuple[str, str, str]] = field(default_factory=list)
    expected: dict[int, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Fixture:
        fixture = cls()
        parts = _SECTION.split(text)[1:]
        for what, argument, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if what == "context":
                fixture.expected[int(argument)] = body
            else:
                fixture.files.append((what, argument, body))
        return fixture


@dataclass
class Opened:
    """A workspace with everything done that a fixture says, and the place of the cursor."""

    workspace: Workspace
    document: Document
    path: Path
    offset: int
    documents: dict[str, Document]

    def assemble(self, budget: int, counter: Counter | None = None) -> Context:
        """The context at the cursor."""
        return self.workspace.assemble(
            self.document,
            self.offset,
            path=self.path,
            budget=budget,
            count_tokens=counter or Counter(),
        )

    def type(self, text: str) -> None:
        """Type at the cursor, as one edit."""
        edit = Edit(self.offset, self.offset, text)
        self.document.apply(edit)
        self.offset += len(text)
        self.workspace.changed(self.path, self.document, [edit])


@contextmanager
def opened(fixture: Fixture, folder: Path, *, newline: str = "\n") -> Iterator[Opened]:
    """Write the files, index them, open and edit what was; closes the workspace at the end."""
    root = folder / "project"
    for what, name, body in fixture.files:
        if what != "open":
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body.replace(MARK, ""), encoding="utf-8", newline=newline)
    index = WorkspaceIndex([root], folder / "cache")
    workspace = Workspace(index)
    workspace.start()
    try:
        assert index.wait(60)
        assert index.status.phase == "idle"
        yield _replay(fixture, workspace, root, newline)
    finally:
        workspace.close()


def _replay(fixture: Fixture, workspace: Workspace, root: Path, newline: str) -> Opened:
    documents: dict[str, Document] = {}
    place: tuple[str, int] | None = None
    for what, name, body in fixture.files:
        if what == "file":
            continue
        before, *rest = body.replace("\n", newline).split(MARK)
        document = Document("".join([before, *rest]), path=name)
        documents[name] = document
        path = root / name
        workspace.opened(path, document)
        if what == "visited":
            workspace.visited(path, document, len(before))
        elif what == "edited":
            # The text was put there by one edit; before it, there was none.
            workspace.changed(path, document, [Edit(len(before), len(before), rest[0])])
        elif what == "cursor":
            place = name, len(before)
    assert place is not None
    name, offset = place
    # A document that is not on disk is known a moment after it was opened.
    index = workspace.index
    unsaved = [root / name for what, name, _ in fixture.files if what == "open"]
    assert index.wait(30, until=lambda: all(index.facts(path) for path in unsaved))
    return Opened(workspace, documents[name], root / name, offset, documents)


def show(context: Context) -> list[str]:
    """The sections of other places whole, those of the cursor's file by kind."""
    lines = []
    for section in context.sections:
        if section.kind in OWN:
            lines.append(f"--- {section.kind} {section.path}")
        else:
            lines.append(f"--- {section.kind} {section.path} ({section.reason})")
            lines += section.text.splitlines()
    return lines
