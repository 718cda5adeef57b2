"""URIs and encodings at the edge."""

from __future__ import annotations

import pytest
from lsprotocol import types

from fimble.lsp.convert import document_key, document_path, encoding_of


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c%3A/Users/a%20b/x.py", "C:\\Users\\a b\\x.py"),
        ("file:///C:/Users/a b/x.py", "C:\\Users\\a b\\x.py"),
        ("file:///c:/100%2520.py", "C:\\100%20.py"),
        ("file://server/share/x.py", "\\\\server\\share\\x.py"),
        ("untitled:Untitled-1", ""),
    ],
)
def test_paths_on_windows(uri: str, path: str) -> None:
    assert document_path(uri, "win32") == path


def test_one_file_on_windows_has_one_key() -> None:
    spellings = ["file:///c%3A/a%20b.py", "file:///C:/a b.py", "file:///c:/a%20b.py"]
    assert len({document_key(uri, "win32") for uri in spellings}) == 1


def test_documents_without_a_file_are_told_apart_by_their_uri() -> None:
    assert document_key("untitled:Untitled-1") != document_key("untitled:Untitled-2")


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        (types.PositionEncodingKind.Utf8, "utf-8"),
        (types.PositionEncodingKind.Utf16, "utf-16"),
        (types.PositionEncodingKind.Utf32, "utf-32"),
        ("utf-8", "utf-8"),
        (None, "utf-16"),
        ("ebcdic", "utf-16"),
    ],
)
def test_encodings(kind: types.PositionEncodingKind | str | None, encoding: str) -> None:
    assert encoding_of(kind) == encoding
