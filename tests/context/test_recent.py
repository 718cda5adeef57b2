"""Recent work: what is remembered, in what order, and how it follows edits."""

from __future__ import annotations

from pathlib import Path

from fimble_context.candidates.recent import RecentWork
from fimble_context.syntax import Document, Edit

HERE, THERE = Path("/w/here.py"), Path("/w/there.py")


def functions(count: int) -> str:
    return "".join(
        f"def function_{number}(value: int) -> int:\n"
        + "".join(f"    step_{line} = value + {line}\n" for line in range(12))
        + f"    return {number}\n\n\n"
        for number in range(count)
    )


def document(count: int = 8) -> Document:
    return Document(functions(count), path="here.py")


def names(recent: RecentWork) -> list[str]:
    return [chunk.text.split("(")[0].removeprefix("def ") for chunk in recent.chunks()]


def insert(recent: RecentWork, file: Path, to: Document, before: str, text: str) -> None:
    place = to.text.index(before)
    edit = Edit(place, place, text)
    to.apply(edit)
    recent.edited(file, to, [edit])


def test_a_region_is_the_whole_function_around_it() -> None:
    recent, text = RecentWork(), document()
    insert(recent, HERE, text, "step_5", "new = 1\n    ")
    (chunk,) = recent.chunks()
    assert chunk.text.startswith("def function_0(")
    assert chunk.text.endswith("    return 0\n")
    assert "    new = 1\n" in chunk.text


def test_edits_come_before_visits_and_new_before_old() -> None:
    recent, text = RecentWork(), document()
    recent.visited(HERE, text, text.text.index("function_7"))
    insert(recent, HERE, text, "return 0", "a = 1\n    ")
    insert(recent, HERE, text, "return 4", "a = 1\n    ")
    assert names(recent) == ["function_4", "function_0", "function_7"]


def test_typing_in_one_place_is_one_region() -> None:
    recent, text = RecentWork(), document()
    for _ in range(50):
        insert(recent, HERE, text, "return 3", "x")
    assert names(recent) == ["function_3"]


def test_regions_follow_edits_above_them() -> None:
    recent, text = RecentWork(), document()
    insert(recent, HERE, text, "return 5", "mark = 1\n    ")
    insert(recent, HERE, text, "def function_0", "# a line\n" * 20)
    assert "function_5" in names(recent)
    chunk = next(item for item in recent.chunks() if "function_5" in item.text)
    assert text.text[chunk.place.start : chunk.place.end].startswith("def function_5")


def test_deleted_text_is_forgotten() -> None:
    recent, text = RecentWork(), document()
    insert(recent, HERE, text, "return 5", "mark = 1\n    ")
    start, end = text.text.index("def function_4"), text.text.index("def function_6")
    edit = Edit(start, end, "")
    text.apply(edit)
    recent.edited(HERE, text, [edit])
    assert not any("mark" in chunk.text for chunk in recent.chunks())


def test_a_closed_document_stays_as_it_was() -> None:
    recent, text = RecentWork(), document()
    insert(recent, HERE, text, "return 2", "mark = 1\n    ")
    recent.closed(HERE)
    text.apply(Edit(0, len(text.text), "gone\n"))
    assert "mark = 1" in recent.chunks()[0].text


def test_the_ring_is_bounded_and_loses_visits_first() -> None:
    recent, text = RecentWork(capacity=4), document(30)
    insert(recent, HERE, text, "return 0", "a = 1\n    ")
    for number in range(3, 30, 4):
        recent.visited(HERE, text, text.text.index(f"def function_{number}("))
    assert len(recent.chunks()) == 4
    assert "function_0" in names(recent)


def test_no_two_chunks_overlap_or_are_alike() -> None:
    recent, text = RecentWork(), document()
    twin = Document(text.text, path="there.py")
    for number in range(8):
        recent.visited(HERE, text, text.text.index(f"return {number}"))
        recent.visited(THERE, twin, text.text.index(f"return {number}"))
    chunks = recent.chunks()
    assert len({chunk.text for chunk in chunks}) == len(chunks)
    pairs = [(a, b) for a in chunks for b in chunks if a is not b]
    assert not any(a.place.overlaps(b.place) for a, b in pairs)


def test_a_formatter_is_not_the_users_own_work() -> None:
    recent, text = RecentWork(), document(40)
    edit = Edit(0, len(text.text), functions(40).replace("value", "amount"))
    text.apply(edit)
    recent.edited(HERE, text, [edit])
    assert recent.chunks() == []


def test_secrets_are_masked() -> None:
    recent = RecentWork()
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    text = Document(f"def connect() -> None:\n    use('{token}')\n", path="here.py")
    recent.visited(HERE, text, 5)
    (chunk,) = recent.chunks()
    assert token not in chunk.text
    assert "<github-token>" in chunk.text


def test_a_method_brings_its_class_header() -> None:
    recent = RecentWork()
    body = "".join(
        f"    def m_{n}(self) -> int:\n        return {n} * {n} + 1\n" for n in range(90)
    )
    text = Document(f"class Large:\n{body}", path="here.py")
    insert(recent, HERE, text, "return 50", "x = 1\n        ")
    (chunk,) = recent.chunks()
    assert chunk.header == "class Large:\n"
    assert chunk.text.startswith("    def m_50")


def test_line_ends_are_normalised() -> None:
    recent = RecentWork()
    text = Document(functions(2).replace("\n", "\r\n"), path="here.py")
    recent.visited(HERE, text, 3)
    assert "\r" not in recent.chunks()[0].text
