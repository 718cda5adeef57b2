"""Text, lines and positions of a document, before and after edits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.syntax import Document, Edit, Encoding, Position
from fimble_context.syntax.positions import LineIndex, encode_utf8

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
TEXT = st.lists(
    st.sampled_from(
        ["a", "\n", "\r", "\r\n", "\t", "µ", "漢", "😀", "\0", "\ud83d", "\ude00", "\ufeff"]
    )
).map("".join)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("", [0]),
        ("a", [0]),
        ("a\n", [0, 2]),
        ("a\r\nb", [0, 3]),
        ("a\rb", [0, 2]),
        ("a\r\r\nb\n\r", [0, 2, 4, 6, 7]),
        ("\x0b\x0c\x85\u2028", [0]),
    ],
)
def test_what_ends_a_line(text: str, starts: list[int]) -> None:
    document = Document(text)
    assert [document.line_start(line) for line in range(document.line_count)] == starts


@pytest.mark.parametrize(
    ("encoding", "column"), [("utf-8", 2 + 3 + 4), ("utf-16", 1 + 1 + 2), ("utf-32", 3)]
)
def test_columns_count_units_of_the_encoding(encoding: Encoding, column: int) -> None:
    document = Document("first\nµ漢😀x")
    assert document.position_at(len("first\nµ漢😀"), encoding) == Position(1, column)
    assert document.offset_at(1, column, encoding) == len("first\nµ漢😀")


@pytest.mark.parametrize(
    ("line", "column", "offset"),
    [
        (0, 99, 2),  # past the line end: before its terminator
        (1, 99, 6),
        (9, 0, 6),  # past the file end
        (-1, 5, 0),
        (0, -5, 0),
        (1, 1, 4),  # in the middle of the surrogate pair: the character's start
        (1, 2, 5),
    ],
)
def test_positions_are_clamped(line: int, column: int, offset: int) -> None:
    assert Document("ab\r\n😀b").offset_at(line, column) == offset


def test_the_emoji_is_deleted_incrementally() -> None:
    document = Document('x = "µ漢😀"\n')
    start, end = document.offset_at(0, 7), document.offset_at(0, 9)
    document.apply(Edit(start, end, ""))
    assert document.text == 'x = "µ漢"\n'


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\rc\n", "\r"), ("a\nb\r\n", "\n")],
)
def test_the_dominant_line_end(text: str, newline: str) -> None:
    assert Document(text).newline == newline


def test_the_dominant_line_end_follows_edits() -> None:
    document = Document("a\nb\n")
    assert document.newline == "\n"
    document.apply(Edit(0, 4, "a\r\n"))
    assert document.newline == "\r\n"


def test_lines_outside_the_text_are_clamped() -> None:
    document = Document("a\nb")
    assert (document.line_text(5), document.line_text(-1)) == ("", "")
    assert (document.line_start(5), document.line_end(5)) == (3, 3)
    assert (document.line_start(-1), document.line_end(-1)) == (0, 1)


@given(TEXT)
def test_positions_round_trip(text: str) -> None:
    document = Document(text)
    for encoding in ENCODINGS:
        for offset in range(len(text) + 1):
            position = document.position_at(offset, encoding)
            inside_terminator = text[offset - 1 : offset + 1] == "\r\n"
            assert document.offset_at(position.line, position.column, encoding) == (
                offset - 1 if inside_terminator else offset
            )


@settings(max_examples=300)
@given(TEXT, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6), TEXT), max_size=8))
def test_the_line_index_equals_a_fresh_one(text: str, edits: list[tuple[int, int, str]]) -> None:
    document = Document(text)
    for start, length, inserted in edits:
        start = min(start, len(document.text))
        end = min(start + length, len(document.text))
        expected = document.text[:start] + inserted + document.text[end:]
        document.apply(Edit(start, end, inserted))
        assert document.text == expected
        assert lines_of(document._lines) == lines_of(LineIndex(expected))
        assert document.newline == Document(expected).newline
        data = encode_utf8(expected)
        for line in range(document.line_count):
            byte_start = document._lines.byte_start(line)
            assert data[:byte_start] == encode_utf8(expected[: document.line_start(line)])


def lines_of(index: LineIndex) -> list[tuple[int, int]]:
    return [(index.start(line), index.byte_start(line)) for line in range(index.line_count)]


@given(TEXT, st.integers(-3, 50), st.integers(-3, 50), TEXT)
def test_edits_outside_the_text_are_clamped(text: str, start: int, end: int, new: str) -> None:
    document = Document(text)
    document.apply(Edit(start, end, new))
    first = min(max(start, 0), len(text))
    assert document.text == text[:first] + new + text[min(max(end, first), len(text)) :]
