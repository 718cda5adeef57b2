"""The tree follows edits: it equals that of a fresh parse, or there is none."""

from __future__ import annotations

import gc
import re
import tracemalloc
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tree_sitter
from hypothesis import given, settings
from hypothesis import strategies as st

from fimble_context.syntax import Document, Edit, languages
from fimble_context.syntax import tree as syntax_tree
from fimble_context.syntax.positions import encode_utf8

SOURCES = {
    "python": """\
import os

class A:
    def f(self, x):
        if x:
            return [x, 'µ😀']
        return f'{x}'
""",
    "javascript": "import a from 'b';\nclass A { f(x) { return `${x}`; } }\ng = x => ({ x });\n",
    "rust": "use a::b;\nimpl A { fn f(&self) -> u8 { match self { A => 1, _ => 2 } } }\n",
    "c": "#include <a.h>\nstruct s { int a; };\nint f(int x) { /* µ */ return x ? 1 : 0; }\n",
    "go": 'package a\n\nimport "fmt"\n\nfunc (a *A) F(x int) error {\n\tg("漢")\n\treturn nil\n}\n',
    "yaml": "a:\n  - b: 1\n    c: |\n      text\n  - d\n",
    "markdown": "# A\n\ntext\n\n## B\n\n- x\n- y\n\n```py\ncode\n```\n",
    "ruby": 'class A\n  def f(x)\n    x.map { |y| "#{y}" }\n  end\nend\n',
    "bash": 'f() {\n  cat <<EOF\n$x\nEOF\n}\nif [ -n "$1" ]; then f; fi\n',
    "html": "<div class='a'><p>x</p><script>f()</script></div>\n",
}
PIECES = [
    "", "x", "(", ")", "{", "}", '"', "'", ":", "\n", "\r", "\r\n", "    ", "\t", "#", "/*",
    "*/", "µ", "😀", "\0", "\ud83d", "def f():\n    pass\n", "if (x) { y }\n", "# h\n", "`", "<b>",
]  # fmt: skip
EDIT = st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(PIECES), st.booleans())


def tree_text(document: Document) -> str:
    assert document.tree is not None
    return str(document.tree.root_node)


class Reference:
    """tree-sitter's own incremental parse, with every position counted from the start."""

    def __init__(self, language: str, text: str) -> None:
        known = languages.language_named(language)
        assert known is not None
        self.parser = tree_sitter.Parser(languages.grammar(known))
        self.text = text
        self.tree = self.parser.parse(self.source)
        self.edited = False

    @property
    def source(self) -> bytes:
        return re.sub(rb"\r(?!\n)", b"\n", encode_utf8(self.text))

    def apply(self, edit: Edit) -> None:
        end = min(edit.end, len(self.text))
        start = edit.start - self.text[: edit.start].endswith("\r")
        places = [self.place(start), self.place(end)]
        self.text = self.text[: edit.start] + edit.text + self.text[end:]
        places.append(self.place(edit.start + len(edit.text)))
        (a, b, c), (pa, pb, pc) = zip(*places, strict=True)
        self.tree.edit(a, b, c, pa, pb, pc)
        self.edited = True

    def place(self, offset: int) -> tuple[int, tuple[int, int]]:
        byte = len(encode_utf8(self.text[:offset]))
        before = self.source[:byte]
        return byte, (before.count(b"\n"), byte - (before.rfind(b"\n") + 1))

    def parse(self) -> str:
        if self.edited:
            self.tree = self.parser.parse(self.source, self.tree)
            self.edited = False
        return str(self.tree.root_node)


def count_parses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list that gets the length of each text parsed from now on."""
    parses: list[int] = []
    parse = syntax_tree.SyntaxTree._parse

    def counted(
        tree: syntax_tree.SyntaxTree,
        parser: tree_sitter.Parser,
        old: tree_sitter.Tree | None,
        seconds: float,
    ) -> tree_sitter.Tree | None:
        parses.append(len(tree.source))
        return parse(tree, parser, old, seconds)

    monkeypatch.setattr(syntax_tree.SyntaxTree, "_parse", counted)
    return parses


@pytest.mark.parametrize("language", SOURCES)
@settings(max_examples=40, deadline=None)
@given(edits=st.lists(EDIT, max_size=10))
def test_the_tree_equals_a_fresh_parse(
    language: str, edits: list[tuple[float, int, str, bool]]
) -> None:
    document = Document(SOURCES[language], language=language)
    reference = Reference(language, document.text)
    tree_text(document)
    for place, length, text, look in edits:
        start = int(place * len(document.text))
        edit = Edit(start, start + length, text)
        document.apply(edit)
        reference.apply(edit)
        if look:
            assert tree_text(document) == reference.parse()
    ours = tree_text(document)
    assert ours == reference.parse()
    fresh = Document(document.text, language=language)
    if ours != tree_text(fresh):
        # In about one of 2,000 broken texts tree-sitter itself, given exact edits, recovers
        # or breaks a tie otherwise than from scratch. It must still cover the same text.
        assert document.tree is not None and fresh.tree is not None
        assert document.tree.root_node.end_byte == fresh.tree.root_node.end_byte


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("language", ["python", "javascript", "go", "bash"])
def test_line_ends_do_not_change_the_tree(language: str, end: str) -> None:
    source = SOURCES[language]
    document = Document(source.replace("\n", end), language=language)
    assert tree_text(document) == tree_text(Document(source, language=language))


def test_offsets_into_the_source_and_back() -> None:
    document = Document("a = 'µ漢😀'\rb = '\ud83d'\r\nc = 1\n", language="python")
    assert document.tree is not None
    for offset in range(len(document.text) + 1):
        assert document.offset_of_byte(document.byte_of(offset)) == offset
    last = document.tree.root_node.children[-1]
    assert document.text[document.offset_of_byte(last.start_byte) :] == "c = 1\n"


def test_a_copy_is_independent() -> None:
    document = Document("def f():\n    return 1\n", language="python")
    before = tree_text(document)
    other = document.copy()
    other.apply(Edit(0, 0, "x = (\n"))
    assert tree_text(other) != before
    assert (tree_text(document), document.line_count) == (before, 3)


def test_typing_parses_once_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    parses = count_parses(monkeypatch)
    document = Document("x = 1\n" * 100, language="python")
    for _ in range(5):
        document.apply(Edit(3, 3, "y"))
    assert not parses
    assert document.tree is not None and document.tree is document.tree
    assert len(parses) == 1


def test_plain_text_has_no_tree() -> None:
    document = Document("anything", path="notes.unknown")
    assert document.tree is None and document.syntax_language is None
    document.apply(Edit(0, 0, "x"))
    assert document.tree is None


def test_a_huge_text_has_no_tree_until_it_shrinks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax_tree, "MAX_PARSED_BYTES", 100)
    document = Document("x = 1\n", language="python")
    assert document.tree is not None
    document.apply(Edit(0, 0, "y = 22\n" * 20))
    assert document.tree is None
    document.apply(Edit(0, 140, ""))
    assert tree_text(document) == tree_text(Document("x = 1\n", language="python"))


def test_a_text_that_takes_too_long_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parses = count_parses(monkeypatch)
    monkeypatch.setattr(syntax_tree, "_SURELY_QUICK_BYTES", 1000)
    monkeypatch.setattr(syntax_tree, "PARSE_SECONDS", -1.0)
    document = Document("x = [" + "1, " * 50_000 + "]\n", language="python")
    assert document.tree is None
    document.apply(Edit(0, 0, "y"))
    assert document.tree is None
    assert len(parses) == 1
    monkeypatch.setattr(syntax_tree, "PARSE_SECONDS", 10.0)
    document.apply(Edit(0, 140_000, ""))
    assert document.tree is not None
    assert len(parses) == 2


def test_an_edit_that_is_slow_to_parse_leaves_the_older_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(syntax_tree, "_QUICK_SECONDS", -1.0)
    document = Document("y = 1\n" + "x = [1, 2]\n" * 3000 + "def last(): ...\n", language="python")
    assert document.tree is not None and document.tree_is_exact
    monkeypatch.setattr(syntax_tree, "REPARSE_SECONDS", -1.0)
    document.apply(Edit(4, 4, "f("))
    assert document.tree is not None and not document.tree_is_exact
    last = document.tree.root_node.named_children[-1]
    start = document.offset_of_byte(last.start_byte)
    assert document.text[start:] == "def last(): ...\n"
    document.settle()
    assert document.tree_is_exact
    monkeypatch.undo()
    document.apply(Edit(4, 6, ""))
    fresh = Document(document.text, language="python")
    document.settle()
    assert tree_text(document) == tree_text(fresh)


@pytest.fixture
def slow_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    """All parses are taken for slow ones, which read by call-back so that they can be stopped."""
    monkeypatch.setattr(syntax_tree, "_SURELY_QUICK_BYTES", -1)
    monkeypatch.setattr(syntax_tree, "_QUICK_SECONDS", -1.0)


@pytest.mark.parametrize("slow", [False, True])
def test_typing_for_long_does_not_take_more_and_more_memory(
    slow: bool, request: pytest.FixtureRequest
) -> None:
    if slow:
        request.getfixturevalue("slow_parses")
    source = Path(typing.__file__).read_text(encoding="utf-8")
    document = Document(source, language="python")

    def allocated_after(edits: int) -> int:
        for _ in range(edits):
            document.apply(Edit(0, 0, "y"))
            assert document.tree is not None
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = allocated_after(3)
        # A parse that left its text behind would leave 30 of them.
        assert allocated_after(30) - before < len(source)
    finally:
        tracemalloc.stop()


def test_a_parse_that_is_given_up_leaves_its_text_to_nobody(
    slow_parses: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syntax_tree, "PARSE_SECONDS", -1.0)
    source = "x = 1\n" * 20_000
    tracemalloc.start()
    try:
        for _ in range(10):
            assert Document(source, language="python").tree is None
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 3 * len(source)
    finally:
        tracemalloc.stop()


def test_a_node_has_its_text_long_after_the_parse(slow_parses: None) -> None:
    name = "n" * 1000
    document = Document(f"# é first\n{name} = 'ü'", language="python")
    node = document.tree.root_node.named_children[-1] if document.tree is not None else None
    assert Document("x = 1\n" * 1000, language="python").tree is not None
    assert node is not None and node.text == f"{name} = 'ü'".encode()


def test_parses_in_several_threads_read_their_own_texts(slow_parses: None) -> None:
    texts = {name: f"class {name}: ...\n" * 3000 for name in ("A", "B", "C")}

    def names(name: str) -> set[bytes | None]:
        document = Document(texts[name], language="python")
        assert document.tree is not None
        fields = (node.child_by_field_name("name") for node in document.tree.root_node.children)
        return {field.text if field is not None else None for field in fields}

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(names, texts)) == [{b"A"}, {b"B"}, {b"C"}]


@pytest.mark.parametrize("language", SOURCES)
def test_a_byte_order_mark_does_not_change_the_tree(language: str) -> None:
    document = Document("\ufeff" + SOURCES[language], language=language)
    assert tree_text(document) == tree_text(Document(SOURCES[language], language=language))
    document.apply(Edit(0, 1, ""))
    assert tree_text(document) == tree_text(Document(SOURCES[language], language=language))


@pytest.mark.parametrize("language", SOURCES)
def test_a_missing_final_newline_breaks_nothing(language: str) -> None:
    document = Document(SOURCES[language].rstrip("\n"), language=language)
    assert document.tree is not None
    assert not document.tree.root_node.has_error
