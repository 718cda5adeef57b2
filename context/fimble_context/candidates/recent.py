"""Where the user has been at work: a ring of edited and visited regions.

Fed with what happens to open documents. A region follows the edits of its document and is
widened to syntax (see ``chunks``) when it is asked for; when its document is closed, its text
is kept as it was. Knows no policy: whoever feeds it has asked that, and texts are masked here
since they are shown in prompts about other places.

Belongs to the thread that owns the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fimble_context.candidates.candidate import Place
from fimble_context.candidates.chunks import chunk_around, enclosing_headers, plain
from fimble_context.syntax.document import Document, Edit
from fimble_context.syntax.spans import Span
from fimble_context.workspace.secrets import mask_secrets

__all__ = ["Recent", "RecentWork"]

_CAPACITY = 32
_LONGEST_CHUNK = 2_400  # code points: about 40 lines
_LONGEST_EDIT = 4_000  # more at once is a formatter, a checkout or a paste, not writing
_NEAR = 400  # an edit so near to the last one goes on with it
_NEAR_VISIT = 1_200


@dataclass(frozen=True, slots=True)
class Recent:
    """A region with syntax around it. ``header`` are the header lines of its class."""

    place: Place
    text: str
    header: str
    edited: bool


@dataclass(slots=True, eq=False)
class _Region:
    file: Path
    start: int
    end: int
    edited: bool
    document: Document | None
    chunk: Recent | None = field(default=None)


class RecentWork:
    """The regions, the newest last; the oldest visited ones go first."""

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._regions: list[_Region] = []

    def edited(self, file: Path, document: Document, edits: Sequence[Edit]) -> None:
        """``edits`` have been applied to the document, in this order."""
        for edit in edits:
            self._shift(file, edit)
        for edit in edits:
            size = max(len(edit.text), edit.end - edit.start)
            if size <= _LONGEST_EDIT and (edit.text.strip() or edit.end > edit.start):
                self._note_edit(file, document, edit)

    def visited(self, file: Path, document: Document, offset: int) -> None:
        """The cursor is at ``offset``. Moving about near a known region changes nothing."""
        offset = min(max(offset, 0), len(document.text))
        for region in self._regions:
            near = region.start - _NEAR_VISIT <= offset <= region.end + _NEAR_VISIT
            if region.file == file and near:
                region.document = document
                return
        self._add(_Region(file, offset, offset, False, document))

    def closed(self, file: Path) -> None:
        """The document is no longer open; its regions stay as they are now."""
        for region in self._regions:
            if region.file == file and region.document is not None:
                region.chunk = _chunk(region)
                region.document = None

    def forget(self, file: Path) -> None:
        """Nothing of this file may be shown any more."""
        self._regions = [region for region in self._regions if region.file != file]

    def chunks(self) -> list[Recent]:
        """What there is, edited before visited and new before old; no two overlap."""
        found: list[Recent] = []
        texts: set[str] = set()
        for region in self._newest_first():
            if region.chunk is None:
                region.chunk = _chunk(region)
            chunk = region.chunk
            if chunk is None or chunk.text in texts:
                continue
            if any(chunk.place.overlaps(other.place) for other in found):
                continue
            texts.add(chunk.text)
            found.append(chunk)
        return found

    def _newest_first(self) -> list[_Region]:
        """Edited regions, then visited ones."""
        newest = list(reversed(self._regions))
        return sorted(newest, key=lambda region: not region.edited)

    def _note_edit(self, file: Path, document: Document, edit: Edit) -> None:
        start, end = edit.start, edit.start + len(edit.text)
        near = next((region for region in self._near(file, start, end)), None)
        if near is None:
            self._add(_Region(file, start, end, True, document))
            return
        near.start, near.end = min(near.start, start), max(near.end, end)
        if near.end - near.start > _LONGEST_CHUNK:
            near.start, near.end = start, end
        near.edited, near.document, near.chunk = True, document, None
        self._regions.remove(near)
        self._regions.append(near)

    def _near(self, file: Path, start: int, end: int) -> Iterator[_Region]:
        for region in reversed(self._regions):
            if region.file == file and start <= region.end + _NEAR and end >= region.start - _NEAR:
                yield region

    def _add(self, region: _Region) -> None:
        self._regions.append(region)
        if len(self._regions) > self._capacity:
            oldest = next((item for item in self._regions if not item.edited), self._regions[0])
            self._regions.remove(oldest)

    def _shift(self, file: Path, edit: Edit) -> None:
        """Let the regions of a file follow an edit."""
        difference = len(edit.text) - (edit.end - edit.start)
        kept = []
        for region in self._regions:
            if region.file == file:
                if edit.start <= region.start and region.end <= edit.end and edit.end > edit.start:
                    continue  # its text is gone
                region.chunk = None
                if edit.end <= region.start:
                    region.start += difference
                    region.end += difference
                elif edit.start < region.end:
                    region.start = min(region.start, edit.start)
                    region.end = max(region.end + difference, edit.start + len(edit.text))
            kept.append(region)
        self._regions = kept


def _chunk(region: _Region) -> Recent | None:
    document = region.document
    if document is None:
        return region.chunk
    length = len(document.text)
    start, end = min(region.start, length), min(region.end, length)
    around: Span = chunk_around(document, start, end, _LONGEST_CHUNK)
    text = plain(mask_secrets(document.text[around.start : around.end]))
    if not text:
        return None
    header = mask_secrets(enclosing_headers(document, around.start))
    place = Place(region.file, around.start, around.end)
    return Recent(place, text, header, region.edited)
