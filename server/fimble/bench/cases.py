"""Infill cases: places in real code with some of it masked, and what was there.

Drawn with a seed, so that two runs and two versions see the same places. A *cross-file* case
masks a use of something that another file of the package defines, and the only one in this
file besides its import: nothing else in the file shows how it is used. An *in-file* case masks
no such use. Also draws what a user would have visited before: a prompt may show it. Cases by
where the cursor stands are drawn by ``cursor_cases``.

What is masked has one of three shapes: the *rest* of a line from a name on, where a user who
types stops and looks (in a cross-file case, the name from the other file); a *line*, whole or
from a word in its first half on; a *block* of two to six lines of whole statements.
"""

from __future__ import annotations

import builtins
import re
import typing
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import (
    Document,
    detect,
    enclosing_statements,
    imports,
    references,
    text_kind,
)

__all__ = [
    "SHAPES",
    "Case",
    "Kind",
    "Shape",
    "Visit",
    "code_files",
    "draw_cases",
    "draw_visits",
    "is_code_to_its_end",
    "open_document",
]

Kind = Literal["cross-file", "in-file", "cursor"]
Shape = Literal["rest", "line", "block"]
#: The shapes as they take turns: half of the cases are the rest of a line.
SHAPES: tuple[Shape, ...] = ("rest", "line", "rest", "block")
_SHORTEST, _LONGEST = 8, 120  # code points of a masked line
_SHORTEST_REST = 4  # code points of a masked rest of a line
_LONGEST_BLOCK = 500
_MOST_LINES = 6
_LEAST_ABOVE = 10  # lines above a case: with fewer there is nothing to cut or to look at
_MOST_HOMONYMS = 3
_EVERYWHERE = frozenset(dir(builtins)) | frozenset(typing.__all__)
# Comments, texts, imports, and definitions: nothing says what comes there.
_NOT_MASKED = ("#", "import ", "from ", "@", '"', "'", "def ", "class ", "async def ")
_NOT_MASKED_IN_BRACES = (
    "//", "/*", "*", "import ", "export ", "@", '"', "'", "`", "function ", "class ", "interface ",
    "type ", "async function ", "}", ")", "]",
)  # fmt: skip
#: Data and prose: there is nothing to complete in them.
_NO_CODE = frozenset({"json", "markdown", "toml", "yaml", "html", "css"})
_MOST_OF_A_FILE = 3
_VISITS_OF_IMPORTED, _VISITS_OF_OTHERS, _VISITS_HERE = 3, 3, 2


@dataclass(frozen=True, slots=True)
class Visit:
    """A place that the user looked at before, oldest first in a list."""

    file: Path
    offset: int


@dataclass(frozen=True, slots=True)
class Case:
    """``text`` is the file with ``expected`` taken out at ``offset`` (code points).

    ``lines`` is how many lines ``expected`` has; ``names`` are those that make it cross-file.
    ``position`` says where the cursor is, of cases that are about that.
    """

    file: Path
    text: str
    offset: int
    expected: str
    kind: Kind
    shape: Shape
    names: tuple[str, ...]
    visits: tuple[Visit, ...]
    position: str = ""

    @property
    def language(self) -> str:
        """The id of the language that the file is in."""
        found = detect(None, self.file.name)
        return "" if found is None else found.id

    @property
    def lines(self) -> int:
        """The number of lines that were masked."""
        return self.expected.count("\n") + 1


def draw_cases(
    folders: Sequence[Path],
    index: WorkspaceIndex,
    kind: Kind,
    count: int,
    seed: int,
    shapes: Sequence[Shape] = SHAPES,
) -> list[Case]:
    """``count`` cases (fewer where there are no more), whose ``shapes`` take turns.

    ``index`` has read the folders; it tells what is defined where.
    """
    random = Random(f"{seed} {kind}")
    files = code_files(folders)
    random.shuffle(files)
    drawn: list[Case] = []
    taken: set[tuple[Path, int]] = set()
    for round_ in range(1, _MOST_OF_A_FILE + 1):
        for file in files:
            if len(drawn) == count:
                return drawn
            shape = shapes[len(drawn) % len(shapes)]
            chance = Random(f"{seed} {kind} {file.name} {round_}")
            case = _draw(file, folders, index, kind, shape, chance)
            if case is not None and (file, case.offset) not in taken:
                taken.add((file, case.offset))
                drawn.append(case)
    return drawn


def code_files(folders: Sequence[Path]) -> list[Path]:
    """The files with code in them, of all languages that we know, in order."""
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    languages = ((file, detect(None, file.name)) for file in files)
    return sorted(file for file, found in languages if found and found.id not in _NO_CODE)


def open_document(file: Path) -> Document:
    """The document of a file, with ``\\n`` line ends."""
    text = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    return Document(text, path=str(file))


def is_code_to_its_end(document: Document, line: int) -> bool:
    """Whether a line is code from its first to its last character, no comment and no string."""
    start = document.line_start(line)
    content = document.text[start : document.line_end(line)]
    first = start + len(content) - len(content.lstrip())
    last = start + len(content.rstrip())
    return text_kind(document, first) == text_kind(document, last) == "code"


def _draw(
    file: Path,
    folders: Sequence[Path],
    index: WorkspaceIndex,
    kind: Kind,
    shape: Shape,
    random: Random,
) -> Case | None:
    document = open_document(file)
    text = document.text
    if document.line_count < 2 * _LEAST_ABOVE or document.tree is None:
        return None
    crossing = _Crossing(document, file, folders, index)
    lines = list(range(_LEAST_ABOVE, document.line_count - 1))
    random.shuffle(lines)
    for line in lines[:200]:
        span = _masked(document, line, shape, random)
        if span is not None and shape == "rest":
            span = _rest(document, *span, kind, crossing, random)
        if span is None or crossing.is_import(*span):
            continue
        start, end = span
        names = crossing.names(start, end, first_use=kind == "cross-file")
        if bool(names) == (kind == "cross-file"):
            return Case(
                file,
                text[:start] + text[end:],
                start,
                text[start:end],
                kind,
                shape,
                names,
                tuple(draw_visits(document, file, line, folders, index, random)),
            )
    return None


class _Crossing:
    """Which names in a file lead to another file of the workspace."""

    def __init__(
        self, document: Document, file: Path, folders: Sequence[Path], index: WorkspaceIndex
    ) -> None:
        self._document = document
        self._elsewhere = _Elsewhere(document, file, folders, index)
        self._imports = {(item.start, item.end) for item in imports(document)}
        self._uses = _uses(document, self._imports)

    def is_import(self, start: int, end: int) -> bool:
        """Whether some of an import is there."""
        return any(start < last and first < end for first, last in self._imports)

    def names(self, start: int, end: int, *, first_use: bool) -> tuple[str, ...]:
        """Those in a span; with ``first_use``, those that the file uses nowhere else."""
        found = {reference.name for reference in references(self._document, start, end)}
        names = sorted(name for name in found if self._elsewhere(name))
        if first_use:
            here = Counter(_WORD.findall(self._document.text[start:end]))
            names = [name for name in names if self._uses[name] == here[name]]
        return tuple(names)


class _Elsewhere:
    """Whether a name leads to another file of the workspace."""

    def __init__(
        self, document: Document, file: Path, folders: Sequence[Path], index: WorkspaceIndex
    ) -> None:
        self._file = file
        self._folders = folders
        self._language = _language_of(document)
        self._index = index
        self._own = {item.name for item in index.definitions_in(file)}
        self._brought = {here: item for item in imports(document) for _, here in item.names}
        self._known: dict[str, bool] = {}

    def __call__(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> bool:
        if name in self._brought:
            found = self._index.defining(name, self._brought[name], self._language, self._file)
            return any(item.path != self._file for item in found)
        if name in self._own or name in _EVERYWHERE or len(name) < 4:
            return False
        found = self._index.definitions(name)
        # What is defined in many places may be anything.
        return 0 < len(found) <= _MOST_HOMONYMS and any(
            item.path.parts[: len(self._file.parts) - 1] == self._file.parts[:-1]
            or _package(item.path, self._folders) == _package(self._file, self._folders)
            for item in found
        )


def _language_of(document: Document) -> str:
    language = document.syntax_language
    return "" if language is None else language.id


def _package(path: Path, folders: Sequence[Path]) -> Path:
    """The outermost folder around a file that is a package; one of ``folders`` outside Python."""
    if path.suffix != ".py":
        return next((folder for folder in folders if folder in path.parents), path.parent)
    folder = path.parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _uses(document: Document, brought: set[tuple[int, int]]) -> Counter[str]:
    """How often each word is in the file, its imports not counted."""
    uses = Counter(_WORD.findall(document.text))
    for start, end in brought:
        uses -= Counter(_WORD.findall(document.text[start:end]))
    return uses


_WORD = re.compile(r"\w+")
_WORD_START = re.compile(r"(?<!\w)\w|(?<=[(\[{,=.] )\S|(?<=[(\[{.])\w")


def _masked(document: Document, line: int, shape: Shape, random: Random) -> tuple[int, int] | None:
    """What to mask at a line: all of it, the rest of it from some word on, whole statements."""
    start, end = document.line_start(line), document.line_end(line)
    content = document.text[start:end]
    indent = len(content) - len(content.lstrip())
    stripped = content.strip()
    unmasked = _NOT_MASKED if _language_of(document) == "python" else _NOT_MASKED_IN_BRACES
    if not stripped or stripped.startswith(unmasked):
        return None
    if text_kind(document, start + indent) != "code":
        return None
    if shape == "block":
        return _block(document, start + indent)
    if not _SHORTEST <= len(stripped) <= _LONGEST or not is_code_to_its_end(document, line):
        return None
    if shape == "rest":
        return start + indent, end
    # Half of the lines are masked whole, the others from a word in their first half on.
    if random.random() < 0.5:
        return start + indent, end
    words = [match.start() for match in _WORD_START.finditer(content, indent)]
    early = [place for place in words if place - indent <= len(stripped) // 2]
    place = random.choice(early) if early else indent
    return (start + place, end) if end - start - place >= _SHORTEST else None


def _rest(
    document: Document, start: int, end: int, kind: Kind, crossing: _Crossing, random: Random
) -> tuple[int, int] | None:
    """The rest of a line from some name on that does not begin it."""
    places = [
        item.start
        for item in references(document, start, end)
        if start < item.start <= end - _SHORTEST_REST
        and (kind != "cross-file" or item.name in crossing.names(item.start, end, first_use=True))
    ]
    return (random.choice(places), end) if places else None


def _block(document: Document, offset: int) -> tuple[int, int] | None:
    """Two to six lines of whole statements from ``offset`` on."""
    end = offset
    line = document.line_of(offset)
    for last in range(line + 1, min(line + _MOST_LINES, document.line_count - 1)):
        span = enclosing_statements(document, offset, document.line_end(last))
        if span.start != offset or span.end - offset > _LONGEST_BLOCK:
            break
        if document.line_of(span.end) - line < _MOST_LINES:
            end = span.end
    text = document.text[offset:end]
    return (offset, end) if "\n" in text else None


def draw_visits(
    document: Document,
    file: Path,
    line: int,
    folders: Sequence[Path],
    index: WorkspaceIndex,
    random: Random,
) -> Iterator[Visit]:
    """Where the user was before: half of it in files that this one imports."""
    language = _language_of(document)
    imported = {
        path
        for item in imports(document)
        for path in index.resolve(item, language, file)
        if path != file
    }
    package = code_files([_package(file, folders)])
    others = [path for path in package if path != file and path not in imported]
    chosen = random.sample(sorted(imported), min(_VISITS_OF_IMPORTED, len(imported)))
    chosen += random.sample(others, min(_VISITS_OF_OTHERS, len(others)))
    random.shuffle(chosen)
    for path in chosen:
        size = len(path.read_text(encoding="utf-8", errors="replace"))
        if size > 200:
            yield Visit(path, random.randrange(size))
    far = [place for place in range(document.line_count) if abs(place - line) > 300]
    for place in sorted(random.sample(far, min(_VISITS_HERE, len(far)))):
        # Above the mask, offsets are the same with and without it.
        if place < line:
            yield Visit(file, document.line_start(place))
