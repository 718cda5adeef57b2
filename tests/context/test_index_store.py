"""The index on disk: what is put is found, what is damaged is made anew, nobody waits long."""

from __future__ import annotations

import sqlite3
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble_context.index import Facts, store_layout
from fimble_context.index.facts import extract, term, terms_of
from fimble_context.index.similarity import Similarity
from fimble_context.index.store import Known, Store, StoreError, open_store
from fimble_context.index.store_layout import import_keys, path_keys, store_path

CODE = '''from pkg.util import helper as h

class Shape(Base):
    """A shape."""

    def area(self, scale: int) -> float:
        return h(scale)
'''
ONE = Known("/w/a.py", 10, 5, b"digest")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return store_path(tmp_path / "cache", [tmp_path])


def damaged(path: Path, at: int, content: bytes) -> None:
    with path.open("r+b") as stream:
        stream.seek(at)
        stream.write(content)


def test_facts_come_back_as_they_were_put(path: Path) -> None:
    facts = extract("a.py", CODE)
    store = open_store(path)
    store.put(ONE, facts)
    store.close()
    with_facts = Store(path, writable=False)
    assert with_facts.facts(ONE.path) == facts
    assert with_facts.known_file(ONE.path) == ONE
    assert [(p, fact.signature) for p, fact in with_facts.definitions("area", 9)] == [
        (ONE.path, "def area(self, scale: int) -> float:")
    ]
    assert with_facts.importing(["util"], 9) == [(ONE.path, "python")]
    assert list(with_facts.terms()) == [(ONE.path, b"".join(_bytes(facts)))]
    with_facts.close()


def test_definitions_by_how_their_names_begin(path: Path) -> None:
    store = open_store(path)
    store.put(ONE, extract("a.py", "class Shape: ...\nclass Shade: ...\ndef shape(): ...\n"))
    store.put(replace(ONE, path="/w/b.py"), extract("b.py", "class Shape: ...\nSh_ä🙂 = 1\n"))

    def found(prefix: str, limit: int = 9) -> list[tuple[str, str]]:
        return [(fact.name, path) for path, fact in store.beginning(prefix, limit)]

    assert found("Sha") == [("Shade", "/w/a.py"), ("Shape", "/w/a.py"), ("Shape", "/w/b.py")]
    assert found("Shape") == [("Shape", "/w/a.py"), ("Shape", "/w/b.py")]
    assert found("Sha", 1) == [("Shade", "/w/a.py")]
    assert found("shape") == [("shape", "/w/a.py")]
    assert found("Z") == found("%") == []
    store.close()


def _bytes(facts: Facts) -> list[bytes]:
    return [number.to_bytes(4, sys.byteorder) for number in facts.terms]


def test_putting_again_replaces(path: Path) -> None:
    store = open_store(path)
    store.put(ONE, extract("a.py", CODE))
    store.put(replace(ONE, size=11), extract("a.py", "import other\nclass Circle: pass\n"))
    assert store.definitions("Shape", 9) == []
    assert [fact.name for _, fact in store.definitions("Circle", 9)] == ["Circle"]
    assert store.importing(["util"], 9) == []
    assert store.count() == 1
    store.put_refused(ONE, "generated")
    assert store.definitions("Circle", 9) == []
    assert store.count() == 0
    assert store.known_file(ONE.path) == ONE
    store.close()


def test_removing_a_folder_removes_what_is_in_it_alone(path: Path) -> None:
    store = open_store(path)
    facts = extract("a.py", CODE)
    for name in ("/w/a_b/x.py", "/w/a_b/y/z.py", "/w/a_bc/x.py", "/w/aXb/x.py", "/w/a_b.py"):
        store.put(replace(ONE, path=name), facts)
    store.remove_below("/w/a_b")
    assert sorted(known.path for known in store.known().values()) == [
        "/w/aXb/x.py",
        "/w/a_b.py",
        "/w/a_bc/x.py",
    ]
    store.close()


def test_all_or_nothing(path: Path) -> None:
    store = open_store(path)
    with pytest.raises(KeyError), store:
        store.put(ONE, extract("a.py", CODE))
        raise KeyError
    assert store.count() == 0
    store.close()


@pytest.mark.parametrize("at", [0, 100, 4096, 8192])
def test_a_damaged_store_is_made_anew(path: Path, at: int) -> None:
    store = open_store(path)
    for number in range(50):
        store.put(replace(ONE, path=f"/w/{number}.py"), extract("a.py", CODE))
    store.checkpoint()
    store.close()
    damaged(path, at, b"\xff" * 3000)
    again = open_store(path)
    assert again.is_new
    again.put(ONE, extract("a.py", CODE))
    assert again.count() == 1
    again.close()


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\0", b"x" * 100_000])
def test_something_else_in_its_place_is_no_store(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    store = open_store(path)
    assert store.count() == 0
    store.close()


def test_another_version_has_another_file_and_the_old_one_goes(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(path).close()
    store_layout.fingerprint.cache_clear()
    monkeypatch.setattr(store_layout, "EXTRACTION", 999)
    newer = store_path(tmp_path / "cache", [tmp_path])
    assert newer != path
    open_store(newer).close()
    assert not path.exists()
    monkeypatch.undo()
    store_layout.fingerprint.cache_clear()
    assert store_path(tmp_path / "cache", [tmp_path]) == path


def test_a_store_of_another_version_is_not_read(path: Path) -> None:
    open_store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = 'older'")
    connection.close()
    with pytest.raises(StoreError):
        Store(path, writable=False)
    store = open_store(path)
    assert store.is_new
    store.close()


def test_the_same_folders_have_the_same_store_in_any_order(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert store_path(tmp_path, [one, two]) == store_path(tmp_path, [two, one])
    assert store_path(tmp_path, [one]) != store_path(tmp_path, [two])


def test_a_folder_that_cannot_be_made_is_an_error_with_a_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError):
        open_store(tmp_path / "file" / "x.sqlite")


def test_reading_while_another_writes(path: Path) -> None:
    writer = open_store(path)
    writer.put(ONE, extract("a.py", CODE))
    reader = Store(path, writable=False)
    with writer:
        writer.put(replace(ONE, path="/w/b.py"), extract("a.py", CODE))
        assert len(reader.definitions("Shape", 9)) == 1
    assert len(reader.definitions("Shape", 9)) == 2
    reader.close()
    writer.close()


def test_two_writers_take_turns(path: Path) -> None:
    facts = extract("a.py", CODE)
    failures: list[Exception] = []

    def write(name: str) -> None:
        try:
            store = open_store(path)
            for number in range(40):
                with store:
                    store.put(replace(ONE, path=f"/w/{name}{number}.py"), facts)
            store.close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    store = open_store(path)
    assert store.count() == 80
    store.close()


def test_text_that_is_no_unicode_is_stored_all_the_same(path: Path) -> None:
    facts = extract("a.py", "class A\ud800b: pass\nimport \udfff\nx = '\ud83d'\n")
    store = open_store(path)
    store.put(ONE, facts)
    assert store.count() == 1
    store.close()


# --- facts --------------------------------------------------------------------------------


def test_facts_of_a_file() -> None:
    facts = extract("a.py", CODE)
    assert [(f.kind, f.container, f.name, f.line) for f in facts.definitions] == [
        ("class", "", "Shape", 2),
        ("method", "Shape", "area", 5),
    ]
    assert [(i.source, i.names) for i in facts.imports] == [("pkg.util", (("helper", "h"),))]
    assert {term("Shape"), term("scale"), term("helper")} <= set(facts.terms)
    assert Facts.from_json(facts.to_json()) == facts


def test_secrets_are_in_no_fact() -> None:
    token = "ghp_" + "a1B2c3D4" * 5
    facts = extract("a.py", f'TOKEN = "{token}"\ndef f(key="{token}"): pass\n{token} = 1\n')
    assert token not in str(facts.to_json())
    assert term(token) not in facts.terms


def test_a_grammar_that_fails_to_load_leaves_the_identifiers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fimble_context.syntax import languages

    languages.grammar.cache_clear()
    languages.query.cache_clear()
    monkeypatch.setattr(
        languages.LANGUAGES[0].__class__, "function", property(lambda self: "no_such_function")
    )
    try:
        facts = extract("a.py", CODE)
    finally:
        monkeypatch.undo()
        languages.grammar.cache_clear()
        languages.query.cache_clear()
    assert facts.definitions == ()
    assert term("Shape") in facts.terms


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("from pkg.util import helper", "pkg/util.py"),
        ("from pkg import util", "pkg/util.py"),
        ("from . import util", "pkg/util.py"),
        ("import pkg", "pkg/__init__.py"),
    ],
)
def test_an_import_is_found_from_the_file_it_leads_to(line: str, file: str) -> None:
    (import_,) = extract("a.py", line).imports
    assert import_keys(import_) & path_keys(Path("/w") / file)


# --- similarity ---------------------------------------------------------------------------

TERMS = st.lists(st.sampled_from(["alpha", "beta", "gamma", "delta", "zeta"]), max_size=6)
FILES = st.dictionaries(st.sampled_from(list("abcdefgh")), TERMS, max_size=8)


def packed(names: list[str]) -> bytes:
    return b"".join(number.to_bytes(4, sys.byteorder) for number in terms_of(names))


@given(FILES, FILES, TERMS)
def test_changes_count_as_if_all_had_been_there(
    before: dict[str, list[str]], after: dict[str, list[str]], query: list[str]
) -> None:
    changed = Similarity((path, packed(names)) for path, names in before.items())
    for path in before.keys() - after.keys():
        changed.remove(path)
    for path, names in after.items():
        changed.put(path, terms_of(names))
    fresh = Similarity((path, packed(names)) for path, names in after.items())
    assert len(changed) == len(fresh) == len(after)
    wanted = set(terms_of(query))
    found = {item.path for item in changed.query(terms_of(query), 20)}
    assert found <= {path for path, names in after.items() if wanted & set(terms_of(names))}


def test_rare_identifiers_count_more_than_common_ones() -> None:
    files = {f"{number}.py": ["common", "other"] for number in range(20)}
    files["rare.py"] = ["special", "words", "here", "and", "more"]
    similarity = Similarity((path, packed(names)) for path, names in files.items())
    found = similarity.query(terms_of(["common", "special"]), 3)
    assert [item.path for item in found] == ["rare.py"]
    assert similarity.query(terms_of(["nothing"]), 3) == []
    assert similarity.query((), 3) == []
