"""A workspace as an editor has it open: its index, its open documents and recent work.

What a language server holds. It is told what happens to documents and files, and asked for
contexts. Where a prompt was made before, the next one of the same place shows the same pieces
of other files, in the same order and byte for byte, so that a model's state for them holds:
they change when the cursor comes to another scope, when a line is begun after a new name was
used that leads elsewhere, when a file that is shown changes, or when the budget does.

All methods belong to the thread that owns the documents, except ``close`` and ``status``. The
index works in a process of its own, and nothing here waits for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fimble_context.assembly.around import Begin
from fimble_context.assembly.assemble import Others, assemble_with
from fimble_context.assembly.sections import Context
from fimble_context.assembly.selection import Selection
from fimble_context.assembly.window import TokenCounter
from fimble_context.candidates.candidate import Candidate, Place
from fimble_context.candidates.definition_forms import FileFacts
from fimble_context.candidates.definitions import (
    Asked,
    definition_candidates,
    file_facts,
    own_definitions,
    own_facts,
)
from fimble_context.candidates.near import Near, look_around, look_inside, words_of
from fimble_context.candidates.ranking import ranked_candidates
from fimble_context.candidates.recent import RecentWork
from fimble_context.candidates.similar import SimilarCode
from fimble_context.candidates.usage import callers_in
from fimble_context.index.answers import IndexStatus
from fimble_context.index.lookup import Lookup
from fimble_context.index.workspace_index import WorkspaceIndex
from fimble_context.syntax.document import Document, Edit
from fimble_context.syntax.languages import detect
from fimble_context.syntax.names import Import, imports
from fimble_context.syntax.spans import Span
from fimble_context.syntax.symbols import outline
from fimble_context.workspace.file_texts import FileTexts
from fimble_context.workspace.files import Limits
from fimble_context.workspace.ignore import IGNORE_FILES
from fimble_context.workspace.paths import path_key

__all__ = ["Workspace"]

_MOST_KEPT = 8
_MOST_SHOWN = 4_000
_LONGEST_PARSED = 60_000  # code points, up to which imports are read from the document itself
_MOST_LINES = 30  # how far a prompt's pieces go with the cursor within a scope


@dataclass(slots=True)
class _Kept:
    """An earlier assembly of a document.

    ``names`` are those whose definitions have been looked for, ``wanted`` the candidates that
    matter most.
    """

    text: str
    line: int
    line_start: int
    scope: tuple[str, ...]
    budget: int
    candidates: list[Candidate]
    names: frozenset[str]
    wanted: frozenset[tuple[Path, str]]
    selection: Selection
    begin: Begin
    growing_at: int | None = None
    stale: bool = False


class Workspace:
    """Folders that are open together. Without any, documents still have their own text."""

    def __init__(
        self, index: WorkspaceIndex, *, limits: Limits | None = None, share: int | None = None
    ) -> None:
        """``share``: see ``assemble.Others``. The index is closed with the workspace."""
        self.index = index
        self._share = share
        self._lookup = Lookup(self.index)
        self._texts = FileTexts(limits)
        self._shown: dict[Path, str] = {}
        self._similar = SimilarCode(self._lookup, self._text_of, self.shown_path)
        self._recent = RecentWork()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    @classmethod
    def of_folders(
        cls,
        folders: Sequence[Path],
        cache_folder: Path,
        *,
        exclude_globs: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> Workspace:
        """The workspace of these folders; its index is kept in ``cache_folder``."""
        index = WorkspaceIndex(folders, cache_folder, exclude_globs=exclude_globs, limits=limits)
        return cls(index, limits=limits)

    # --- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to index in the background."""
        self.index.start()

    def close(self) -> None:
        """Stop, promptly."""
        self.index.close()

    @property
    def status(self) -> IndexStatus:
        """What the index is doing."""
        return self.index.status

    # --- what happens ---------------------------------------------------------------------

    def opened(self, path: Path, document: Document) -> None:
        """A document is open in the editor; its text counts, not the file's."""
        if not self.index.allowed(path):
            return
        self._texts.opened(path, document)
        self._follow(path, document)

    def changed(self, path: Path, document: Document, edits: Sequence[Edit]) -> None:
        """``edits`` have been applied to an open document, in this order. Cheap."""
        if not self.index.allowed(path):
            return
        self._recent.edited(path, document, edits)
        self._follow(path, document)

    def visited(self, path: Path, document: Document, offset: int) -> None:
        """The user looks at ``offset`` (code points) of an open document."""
        if self.index.allowed(path):
            self._recent.visited(path, document, offset)

    def saved(self, path: Path) -> None:
        """A document was written to disk, as any file change."""
        self.file_changed(path)

    def closed(self, path: Path) -> None:
        """A document is no longer open; what is on disk counts again."""
        self._recent.closed(path)
        self._texts.closed(path)
        self._kept.pop(path_key(path), None)
        self.index.release(path)
        self._touch(path)

    def file_changed(self, path: Path) -> None:
        """A file or folder was made, changed, moved or deleted outside of the editor."""
        self.index.update(path)
        self._touch(path)

    def _follow(self, path: Path, document: Document) -> None:
        self.index.update(path, document.text, language=document.language)
        self._touch(path)

    def _touch(self, path: Path) -> None:
        self._lookup.forget_file(path)
        if path.name in IGNORE_FILES:
            self._lookup.forget()
        key = path_key(path)
        for document, kept in self._kept.items():
            if document != key and any(path_key(file) == key for file in kept.selection.files()):
                kept.stale = True

    # --- contexts -------------------------------------------------------------------------

    def assemble(
        self,
        document: Document,
        offset: int,
        *,
        path: Path | None,
        budget: int,
        count_tokens: TokenCounter,
    ) -> Context:
        """The sections for a prompt at ``offset`` (code points), within ``budget`` tokens.

        ``path`` is None for a document without a file. ``count_tokens`` is called once in the
        usual case. Sections of other files are from what is indexed so far.
        """
        key = path_key(path) if path is not None else f"\0{document.path}"
        kept = self._kept.get(key)
        settled = self.status.phase == "idle" and not self.index.is_behind(path)
        growing_at = None if settled else self.index.generation
        line = document.line_of(min(max(offset, 0), len(document.text)))
        line_start = document.line_start(line)
        holds = True
        if kept is not None and self._is_same_line(kept, document, line_start, budget):
            scope, names = kept.scope, kept.names
            candidates, wanted = kept.candidates, kept.wanted
        else:
            near = look_around(document, offset)
            scope, names = near.scope, frozenset(name.name for name in near.names)
            if kept is not None and self._is_same_scope(kept, scope, line, budget):
                news = not names <= kept.names
                names |= kept.names
            else:
                holds, news = False, True
            if kept is not None and not news:
                candidates, wanted = kept.candidates, kept.wanted
            else:
                candidates, wanted = self._candidates(document, offset, path, near, budget)
                holds = holds and kept is not None and wanted <= kept.wanted
        others = Others(
            candidates=candidates,
            repository=self._repository(path),
            here=Place(path, 0, 0) if path is not None else None,
            path=self.shown_path(path) if path is not None else "",
            earlier=kept.selection if kept is not None and holds else None,
            begin=kept.begin if kept is not None and holds else None,
            order=tuple(item.candidate.path for item in kept.selection.chosen) if kept else (),
            share=self._share,
        )
        made = assemble_with(document, offset, others, budget=budget, count_tokens=count_tokens)
        wanted |= {item.candidate.key for item in made.selection.chosen}
        if kept is not None and made.selection.chosen is kept.selection.chosen:
            wanted |= kept.wanted
            line = kept.line
        self._kept[key] = _Kept(
            document.text, line, line_start, scope, budget, candidates, names, wanted,
            made.selection, made.begin,
            growing_at,
        )  # fmt: skip
        self._kept.move_to_end(key)
        if len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return made.context

    def used_and_using(
        self, document: Document, path: Path, span: Span, name: str
    ) -> list[Candidate]:
        """Definitions of what a piece of code uses, then who uses ``name``, which it defines.

        Also those in the document itself, outside of ``span``.
        """
        if not self.index.allowed(path):
            return []
        self._lookup.refresh()
        near = look_inside(document, span.start, span.end)
        used, _ = definition_candidates(
            self._asked(document, path), near, self._lookup, self.shown_path
        )
        here = Place(path, span.start, span.end)
        own = own_facts(path, document)
        if own is not None:
            used = [*own_definitions(own, near, here, self.shown_path), *used]
        callers: list[Candidate] = []
        for file in self._files_using(path, own) if name else ():
            text = document.text if file is own else self._text_of(file.path)
            if text is not None:
                callers += callers_in(file, text, name, here, self.shown_path)
        return [*used, *callers]

    def _files_using(self, path: Path, own: FileFacts | None) -> Iterator[FileFacts]:
        if own is not None:
            yield own
        for importer in self._lookup.importers(path):
            file = file_facts(self._lookup, importer)
            if file is not None:
                yield file

    def shown_path(self, path: Path) -> str:
        """The path that sections name: relative to its workspace folder, forward slashes."""
        shown = self._shown.get(path)
        if shown is None:
            if len(self._shown) >= _MOST_SHOWN:
                self._shown.clear()
            shown = self._shown[path] = self._path_to_show(path)
        return shown

    def _path_to_show(self, path: Path) -> str:
        folder = self.index.policy.folder_of(path)
        if folder is None:
            return path.name
        relative = path.relative_to(folder).as_posix()
        return f"{folder.name}/{relative}" if len(self.index.policy.folders) > 1 else relative

    @property
    def _folder(self) -> Path:
        return next(iter(self.index.policy.folders), Path())

    def _repository(self, path: Path | None) -> str:
        folder = self.index.policy.folder_of(path) if path is not None else None
        return (folder or self._folder).name

    def _is_current(self, kept: _Kept) -> bool:
        """Whether nothing that it shows has changed, and the index has not grown up since."""
        return (
            not kept.stale
            and kept.growing_at in (None, self.index.generation)
            and all(self.index.allowed(file) for file in kept.selection.files())
        )

    def _is_same_line(self, kept: _Kept, document: Document, line_start: int, budget: int) -> bool:
        """Whether all that changed since is in the cursor's line or below it."""
        return (
            self._is_current(kept)
            and kept.budget == budget
            and kept.line_start == line_start
            and document.text.startswith(kept.text[:line_start])
        )

    def _is_same_scope(self, kept: _Kept, scope: tuple[str, ...], line: int, budget: int) -> bool:
        """Whether the cursor is inside of the same things, not far from where it was."""
        return (
            self._is_current(kept)
            and kept.budget == budget
            and kept.scope == scope
            and abs(kept.line - line) <= _MOST_LINES
        )

    def _candidates(
        self, document: Document, offset: int, path: Path | None, near: Near, budget: int
    ) -> tuple[list[Candidate], frozenset[tuple[Path, str]]]:
        """What there is for a place, and the most wanted of it."""
        self._lookup.refresh()
        # What the window around the cursor is sure to show is no news.
        window = budget * 4
        recent = [
            item
            for item in self._recent.chunks()
            if self.index.allowed(item.place.file)
            and (
                item.place.file != path
                or item.place.end < offset - window
                or item.place.start > offset + window
            )
        ]
        asked = self._asked(document, path)
        if path is not None and not self.index.allowed(path):
            return [], frozenset()
        with self.index.project.looking_once():
            found = ranked_candidates(
                asked, near, recent, self._lookup, self._similar, self.shown_path
            )
        return found, frozenset(item.key for item in found if item.wanted)

    def _asked(self, document: Document, path: Path | None) -> Asked:
        language = detect(document.language, str(path or document.path), document.text)
        facts = self._lookup.facts(path) if path is not None else None
        short = len(document.text) <= _LONGEST_PARSED
        brought = facts.imports if facts is not None and not short else tuple(imports(document))
        if facts is not None:
            defined = frozenset(item.name for item in facts.definitions)
        else:
            defined = frozenset(item.name for item in outline(document)) if short else frozenset()
        file = path or self._folder / document.path
        unused = _unused(document, brought) if short else frozenset()
        return Asked(file, language.id if language is not None else "", brought, defined, unused)

    def _text_of(self, path: Path) -> str | None:
        return self._texts.text(path) if self.index.allowed(path) else None


def _unused(document: Document, brought: Sequence[Import]) -> frozenset[str]:
    """The names that imports bring and that are nowhere else in the text."""
    words: set[str] = set()
    start = 0
    for item in sorted(brought, key=lambda item: item.start):
        words.update(words_of(document.text[start : item.start]))
        start = max(start, item.end)
    words.update(words_of(document.text[start:]))
    return frozenset(here for item in brought for _, here in item.names if here not in words)
