"""Several texts as one document that is edited along with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from fimble_context.syntax import Document, Edit

__all__ = ["SEPARATOR", "Joined"]

#: What stands between two texts.
SEPARATOR = "\n\n"


class Joined:
    """Texts by name, in an order, with ``SEPARATOR`` between them.

    Offsets are code points. The document's tree is edited, not made anew, whatever happens.
    """

    def __init__(self, path: str, language: str | None) -> None:
        self._document = Document("", path=path, language=language)
        self._names: list[str] = []
        self._lengths: list[int] = []

    def snapshot(self) -> Document:
        """The document as it is now: a copy, which shares the tree."""
        _ = self._document.tree  # parsed before it is shared
        return self._document.copy()

    def start_of(self, name: str) -> int:
        """Where the text of that name begins; 0 for one that is not there."""
        if name not in self._names:
            return 0
        before = self._lengths[: self._names.index(name)]
        return sum(before) + len(before) * len(SEPARATOR)

    def edited(self, name: str, edits: Sequence[Edit]) -> None:
        """One of the texts was edited, by ``edits`` one after the other."""
        if name not in self._names:
            return
        at, start = self._names.index(name), self.start_of(name)
        for edit in edits:
            self._document.apply(Edit(start + edit.start, start + edit.end, edit.text))
            self._lengths[at] += len(edit.text) - (edit.end - edit.start)
        self._document.version += 1

    def arrange(self, texts: Sequence[tuple[str, str]]) -> None:
        """These are the texts now, by name: one edit of what is not the same before and after."""
        old = _pieces([(name, self._text_of(name)) for name in self._names])
        new = _pieces(texts)
        before = _common(old, new)
        after = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - before)
        gone, come = old[before : len(old) - after], new[before : len(new) - after]
        start = _length(old[:before])
        if gone or come:
            text = "".join(text for _, text in come)
            self._document.apply(Edit(start, start + _length(gone), text))
            self._document.version += 1
        self._names = [name for name, _ in texts]
        self._lengths = [len(text) for _, text in texts]

    def _text_of(self, name: str) -> str:
        start = self.start_of(name)
        return self._document.text[start : start + self._lengths[self._names.index(name)]]


def _pieces(texts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The texts with a piece for each separator."""
    pieces = [piece for text in texts for piece in (("", SEPARATOR), text)]
    return pieces[1:]


def _common(left: Sequence[tuple[str, str]], right: Sequence[tuple[str, str]]) -> int:
    """How many pieces are the same at the beginning of both."""
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _length(pieces: Sequence[tuple[str, str]]) -> int:
    return sum(len(text) for _, text in pieces)
