"""Our text is the editor's text, whatever it edits and however it counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from fimble.lsp.text_sync import DocumentListener, OpenDocuments
from fimble_context.syntax import Document, Edit, Encoding

URI = "file:///a.py"
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
Change: TypeAlias = types.TextDocumentContentChangeEvent
TEXT = st.text(st.sampled_from("ab \tµ漢😀\r\n"), max_size=12)


def opened(text: str, encoding: Encoding = "utf-16") -> OpenDocuments:
    documents = OpenDocuments(encoding)
    documents.open(types.TextDocumentItem(URI, "python", 1, text))
    return documents


def text_of(documents: OpenDocuments) -> str:
    document = documents.get(URI)
    assert document is not None
    return document.text


def edit(start: tuple[int, int], end: tuple[int, int], text: str) -> Change:
    span = types.Range(types.Position(*start), types.Position(*end))
    return types.TextDocumentContentChangePartial(range=span, text=text)


def change(documents: OpenDocuments, version: int, *changes: Change) -> None:
    documents.change(types.VersionedTextDocumentIdentifier(version, URI), changes)


def units(text: str, encoding: Encoding) -> int:
    """Length in the units of ``encoding``, by the codec rather than by our own code."""
    width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    name = encoding if encoding == "utf-8" else f"{encoding}-le"
    return len(text.encode(name)) // width


@st.composite
def edited(draw: st.DrawFn, text: str, encoding: Encoding) -> tuple[str, Change]:
    """A random edit of ``text`` as an editor sends it, and the text the editor then has."""
    ends: list[tuple[int, tuple[int, int]]] = []
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    for _ in range(2):
        line = draw(st.integers(0, len(starts) - 1))
        content = re.split(r"\r\n|\r|\n", text)[line]
        column = draw(st.integers(0, len(content)))
        ends.append((starts[line] + column, (line, units(content[:column], encoding))))
    (first, start), (last, end) = sorted(ends)
    inserted = draw(TEXT)
    return text[:first] + inserted + text[last:], edit(start, end, inserted)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_incremental_edits_give_the_editors_text(encoding: Encoding, data: st.DataObject) -> None:
    text = data.draw(TEXT)
    documents = opened(text, encoding)
    for version in range(2, 2 + data.draw(st.integers(1, 5))):
        changes = []
        for _ in range(data.draw(st.integers(1, 3))):
            text, event = data.draw(edited(text, encoding))
            changes.append(event)
        change(documents, version, *changes)
        assert text_of(documents) == text


@pytest.mark.parametrize(
    ("encoding", "start", "end"), [("utf-8", 5, 9), ("utf-16", 2, 4), ("utf-32", 2, 3)]
)
def test_deleting_an_emoji(encoding: Encoding, start: int, end: int) -> None:
    documents = opened("µ漢😀!\n", encoding)
    change(documents, 2, edit((0, start), (0, end), ""))
    assert text_of(documents) == "µ漢!\n"


@pytest.mark.parametrize(
    ("text", "start", "end", "result"),
    [
        ("", (0, 0), (9, 9), "X"),
        ("ab", (0, 9), (0, 9), "abX"),
        ("ab\ncd", (0, 9), (0, 9), "abX\ncd"),
        ("ab\n", (7, 7), (8, 0), "ab\nX"),
        ("ab\r\ncd", (0, 3), (1, 0), "abXcd"),
        ("abcd", (0, 3), (0, 1), "aXd"),
    ],
)
def test_positions_outside_the_text_are_clamped(
    text: str, start: tuple[int, int], end: tuple[int, int], result: str
) -> None:
    documents = opened(text)
    change(documents, 2, edit(start, end, "X"))
    assert text_of(documents) == result


def test_a_change_without_a_range_replaces_everything() -> None:
    documents = opened("old")
    change(documents, 2, types.TextDocumentContentChangeWholeDocument(text="new\n"))
    assert text_of(documents) == "new\n"


def test_versions_out_of_order_are_logged_and_the_text_stays_the_editors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    documents = opened("a")
    change(documents, 7, edit((0, 1), (0, 1), "b"))
    change(documents, 5, edit((0, 2), (0, 2), "c"))
    assert text_of(documents) == "abc"
    assert "version 5 of a document came after version 7" in caplog.text


def test_what_is_not_open_stays_closed(caplog: pytest.LogCaptureFixture) -> None:
    documents = OpenDocuments()
    change(documents, 2, edit((0, 0), (0, 0), "x"))
    documents.close(types.TextDocumentIdentifier(URI))
    assert documents.get(URI) is None
    assert "not open" in caplog.text


def test_opening_twice_takes_the_newer_text() -> None:
    documents = opened("old")
    documents.open(types.TextDocumentItem(URI, "python", 9, "new"))
    assert text_of(documents) == "new"


def test_one_file_has_one_text_however_its_uri_is_written() -> None:
    documents = OpenDocuments()
    documents.open(types.TextDocumentItem("file:///a%20b/%C3%A9.py", "python", 1, "x"))
    for uri in ("file:///a b/é.py", "file:///a%20b/é.py"):
        assert documents.get(uri) is documents.get("file:///a%20b/%C3%A9.py") is not None


class Listener(DocumentListener):
    """Notes what it hears."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def opened(self, uri: str, document: Document) -> None:
        self.told.append((uri, document.text))

    def changed(self, uri: str, document: Document, edits: Sequence[Edit]) -> None:
        self.told.append((uri, document.text, list(edits)))

    def closed(self, uri: str) -> None:
        self.told.append(uri)


def test_every_change_is_told() -> None:
    listener = Listener()
    documents = OpenDocuments(listeners=[listener])
    documents.open(types.TextDocumentItem(URI, "python", 1, "x"))
    change(documents, 2, edit((0, 0), (0, 0), "a"), edit((0, 1), (0, 2), "b"))
    documents.close(types.TextDocumentIdentifier(URI))
    edits = [Edit(0, 0, "a"), Edit(1, 2, "b")]
    assert listener.told == [(URI, "x"), (URI, "ab", edits), URI]
