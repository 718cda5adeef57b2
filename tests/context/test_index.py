"""The index of a workspace, with its real process: what it answers, restarts, open documents."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from fimble_context.index import Facts, WorkspaceIndex, supervisor
from fimble_context.syntax import Import

SECONDS = 60
TREE = {
    ".gitignore": "build/\n",
    "shop/__init__.py": "from shop.cart import Cart\n",
    "shop/cart.py": '"""Carts."""\n\nclass Cart:\n    def total(self, tax: float) -> float:\n'
    "        return self.price_of_all_items * tax\n",
    "shop/order.py": "from shop import Cart\n\ndef place_order(cart: Cart) -> None:\n"
    "    print(cart.price_of_all_items)\n",
    "shop/other.py": "import json\n\ndef unrelated() -> None: ...\n",
    "web/app.ts": 'import { api } from "./lib";\nexport class App {}\n',
    "web/lib/index.ts": 'export * from "./api";\n',
    "web/lib/api.ts": "export function api(): void {}\n",
    "build/made.py": "class Made: pass\n",
    ".env": "TOKEN=hunter2hunter2\n",
    "notes.py": 'key = "ghp_' + "a1B2c3D4" * 5 + '"\ndef noted(): ...\n',
}


def tree(root: Path, content: Mapping[str, str]) -> Path:
    for name, text in content.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        # Older than any index: a file just written could change again within its time stamp.
        os.utime(path, ns=(10**18, 10**18))
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "w", TREE)


@contextmanager
def running(root: Path, *, wait: bool = True) -> Iterator[WorkspaceIndex]:
    index = WorkspaceIndex([root], root.parent / "cache")
    index.start()
    try:
        if wait:
            assert index.wait(SECONDS)
            assert index.status.phase == "idle", index.status
        yield index
    finally:
        index.close()


def become(index: WorkspaceIndex, condition: Callable[[], bool]) -> bool:
    return index.wait(SECONDS, condition)


def names(index: WorkspaceIndex, name: str) -> list[str]:
    return [item.path.name for item in index.definitions(name)]


def test_what_an_index_answers(root: Path) -> None:
    with running(root) as index:
        (cart,) = index.definitions("Cart")
        assert (cart.path, cart.kind, cart.line) == (root / "shop" / "cart.py", "class", 2)
        (total,) = index.definitions("total")
        assert total.container == "Cart"
        assert total.signature == "def total(self, tax: float) -> float:"
        found = index.definitions_in(root / "shop" / "cart.py")
        assert [item.name for item in found] == ["Cart", "total"]
        assert index.importers(root / "shop" / "cart.py") == [root / "shop" / "__init__.py"]
        assert index.importers(root / "web" / "lib" / "index.ts") == [root / "web" / "app.ts"]
        similar = index.files_similar(["price_of_all_items", "self"], 5)
        assert {Path(item.path).name for item in similar} == {"cart.py", "order.py"}
        assert index.status.refused == {"ignored": 1, "secret": 1}


@pytest.mark.parametrize(
    ("file", "name", "defined_in"),
    [("shop/order.py", "Cart", "cart.py"), ("web/app.ts", "api", "api.ts")],
)
def test_a_name_is_followed_through_files_that_pass_it_on(
    root: Path, file: str, name: str, defined_in: str
) -> None:
    with running(root) as index:
        facts = index.facts(root / file)
        assert isinstance(facts, Facts)
        (import_,) = facts.imports
        found = index.defining(name, import_, facts.language, root / file)
        assert [(item.path.name, item.name) for item in found] == [(defined_in, name)]


def test_imports_in_a_circle_end(root: Path) -> None:
    tree(root, {"a.py": "from b import x\n", "b.py": "from a import x\n"})
    with running(root) as index:
        import_ = Import("b", 0, 0, (("x", "x"),), "", False)
        assert index.defining("x", import_, "python", root / "a.py") == []


def test_ignored_and_secret_files_are_in_no_answer_and_on_no_disk(root: Path) -> None:
    with running(root) as index:
        assert index.definitions("Made") == []
        assert index.facts(root / "build" / "made.py") is None
        assert index.facts(root / ".env") is None
        assert names(index, "noted") == ["notes.py"]
    cached = b"".join(file.read_bytes() for file in (root.parent / "cache").iterdir())
    assert b"place_order" in cached
    for secret in (b"hunter2", b"a1B2c3D4", b"Made", b".env"):
        assert secret not in cached


def test_a_restart_reads_what_has_changed_and_nothing_else(root: Path) -> None:
    with running(root) as index:
        assert index.status.read == index.status.files == 9
    with running(root) as index:
        assert index.status.read == 0
        assert names(index, "Cart") == ["cart.py"]
    tree(root, {"shop/cart.py": "class Basket: ...\n", "shop/new.py": "class New: ...\n"})
    (root / "shop" / "other.py").unlink()
    os.utime(root / "shop" / "order.py", ns=(10**18 + 1, 10**18 + 1))
    with running(root) as index:
        assert index.status.read == 3
        assert names(index, "Cart") == []
        assert names(index, "Basket") == ["cart.py"]
        assert names(index, "New") == ["new.py"]
        assert names(index, "unrelated") == []
        assert names(index, "place_order") == ["order.py"]


def test_what_an_earlier_run_knew_is_there_before_the_scan(root: Path) -> None:
    with running(root):
        pass
    with running(root, wait=False) as index:
        index.pause()
        assert become(index, lambda: names(index, "Cart") == ["cart.py"])


def test_an_open_document_counts_as_it_is_in_the_editor(root: Path) -> None:
    path = root / "shop" / "cart.py"
    with running(root) as index:
        index.update(path, "class Basket:\n    price_of_all_items_now = 1\n")
        assert become(index, lambda: names(index, "Basket") == ["cart.py"])
        assert names(index, "Cart") == []
        assert index.definitions_in(path)[0].name == "Basket"
        similar = index.files_similar(["price_of_all_items_now"], 5)
        assert [item.path for item in similar] == [str(path)]
        cached = b"".join(file.read_bytes() for file in (root.parent / "cache").iterdir())
        assert b"Basket" not in cached
        index.release(path)
        assert become(index, lambda: names(index, "Cart") == ["cart.py"])
        assert names(index, "Basket") == []


def test_of_many_changes_in_a_row_the_last_one_counts(root: Path) -> None:
    path = root / "draft.py"
    with running(root) as index:
        for number in range(200):
            index.update(path, f"class Draft{number}: ...\n")
        assert become(index, lambda: names(index, "Draft199") == ["draft.py"])
        assert names(index, "Draft0") == []


def test_names_that_begin_alike_with_open_documents_first(root: Path) -> None:
    with running(root) as index:
        found = index.definitions_beginning("C")
        assert [(item.name, item.path.name) for item in found] == [("Cart", "cart.py")]
        index.update(root / "shop/other.py", "class Case: ...\nclass Cart: ...\n")
        assert become(index, lambda: len(index.definitions_beginning("C")) == 3)
        found = index.definitions_beginning("C")
        assert [item.name for item in found] == ["Case", "Cart", "Cart"]
        assert [item.path.name for item in found] == ["other.py", "other.py", "cart.py"]
        assert index.definitions_beginning("M") == []


def test_an_open_document_that_is_refused_is_not_indexed(root: Path) -> None:
    with running(root) as index:
        index.update(root / ".env", "class Secret: ...", language="python")
        index.update(root / "build" / "made.py", "class Made: ...")
        index.update(root / "key.py", "-----BEGIN PRIVATE KEY-----\nclass Key: ...\n")
        index.update(root / "fine.py", "class Fine: ...")
        assert become(index, lambda: names(index, "Fine") == ["fine.py"])
        assert names(index, "Secret") == names(index, "Made") == names(index, "Key") == []


def test_changes_on_disk_are_followed_when_told(root: Path) -> None:
    with running(root) as index:
        tree(root, {"shop/late.py": "class Late: ...\n"})
        index.update(root / "shop" / "late.py")
        assert become(index, lambda: names(index, "Late") == ["late.py"])
        (root / "shop" / "late.py").unlink()
        index.remove(root / "shop" / "late.py")
        assert become(index, lambda: names(index, "Late") == [])


def test_folders_that_go_and_come(root: Path) -> None:
    with running(root) as index:
        (root / "web").rename(root / "site")
        index.remove(root / "web")
        assert become(index, lambda: names(index, "App") == [])
        index.update(root / "site")
        assert become(index, lambda: names(index, "App") == ["app.ts"])
        assert index.definitions("App")[0].path == root / "site" / "app.ts"


def test_an_ignore_file_counts_as_soon_as_it_is_saved(root: Path) -> None:
    with running(root) as index:
        assert names(index, "Cart") == ["cart.py"]
        tree(root, {".gitignore": "shop/\n"})
        index.update(root / ".gitignore")
        assert names(index, "Cart") == []
        assert become(index, lambda: names(index, "Made") == ["made.py"])


def test_the_users_globs_hold(root: Path) -> None:
    index = WorkspaceIndex([root], root.parent / "cache", exclude_globs=["shop/"])
    index.start()
    try:
        assert index.wait(SECONDS)
        assert names(index, "Cart") == []
        assert names(index, "App") == ["app.ts"]
    finally:
        index.close()


# --- processes ----------------------------------------------------------------------------


def test_closing_ends_the_process_in_the_middle_of_its_work(root: Path) -> None:
    tree(root, {f"many/{number}.py": "def f(): ...\n" * 300 for number in range(40)})
    with running(root, wait=False) as index:
        assert become(index, lambda: index.status.phase == "scanning")
        process = index.process_id
        assert process is not None
        index.close()
        assert not psutil.pid_exists(process)
        assert index.status.phase == "closed"
        assert index.definitions("Cart") == []
    with running(root) as again:
        assert names(again, "Cart") == ["cart.py"]


def test_a_paused_index_rests_and_answers(root: Path) -> None:
    with running(root) as index:
        index.pause()
        index.rescan()
        index.update(root / "draft.py", "class Draft: ...\n")
        assert become(index, lambda: names(index, "Draft") == ["draft.py"])
        index.resume()
        assert index.wait(SECONDS)


def test_a_process_that_dies_is_started_again(root: Path) -> None:
    with running(root) as index:
        process = index.process_id
        assert process is not None
        psutil.Process(process).kill()
        assert become(index, lambda: index.process_id not in (process, None))
        index.update(root / "draft.py", "class Draft: ...\n")
        assert become(index, lambda: names(index, "Draft") == ["draft.py"])


def test_a_process_that_has_grown_is_exchanged_for_another(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The binding never frees what it reads; see index.worker.
    tree(root, {f"many/{number}.py": "def f(): ...\n" * 300 for number in range(60)})
    monkeypatch.setattr(supervisor, "GROWTH_BYTES", 2_000_000)
    with running(root, wait=False) as index:
        assert become(index, lambda: index.process_id is not None)
        first = index.process_id
        assert become(index, lambda: index.process_id not in (first, None))
        index.update(root / "draft.py", "class Draft: ...\n")
        monkeypatch.undo()
        assert become(index, lambda: names(index, "Draft") == ["draft.py"])
        assert become(index, lambda: index.status.phase == "idle")
        assert names(index, "Cart") == ["cart.py"]
        assert index.status.files == 69


def test_two_windows_share_the_work(root: Path) -> None:
    one = WorkspaceIndex([root], root.parent / "cache")
    two = WorkspaceIndex([root], root.parent / "cache")
    for index in (one, two):
        index.start()
    try:
        for index in (one, two):
            assert index.wait(SECONDS)
            assert names(index, "Cart") == ["cart.py"]
        assert one.status.read + two.status.read == 9
        # What is open in one window is no affair of the other.
        one.update(root / "shop" / "cart.py", "class Basket: ...\n")
        assert become(one, lambda: names(one, "Basket") == ["cart.py"])
        assert names(two, "Cart") == ["cart.py"]
    finally:
        one.close()
        two.close()


@pytest.mark.parametrize("content", [b"garbage", b"\xff" * 20_000])
def test_a_damaged_cache_is_made_anew(root: Path, content: bytes) -> None:
    with running(root):
        pass
    (cache,) = (root.parent / "cache").glob("*.sqlite")
    with cache.open("r+b") as stream:
        stream.write(content)
    with running(root) as index:
        assert names(index, "Cart") == ["cart.py"]
        assert index.status.read == 9


def test_a_cache_folder_that_cannot_be_made_leaves_an_empty_index(root: Path) -> None:
    (root.parent / "cache").write_text("", encoding="utf-8")
    index = WorkspaceIndex([root], root.parent / "cache")
    index.start()
    assert index.status.phase == "unavailable"
    assert index.definitions("Cart") == []
    assert index.files_similar(["Cart"]) == []
    index.update(root / "a.py", "x = 1")
    index.close()


def test_nothing_is_imported_from_the_workspace(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker = root / "executed"
    code = f"open({str(marker)!r}, 'w').close()\n"
    tree(root, dict.fromkeys(("json.py", "sqlite3.py", "psutil.py", "sitecustomize.py"), code))
    monkeypatch.chdir(root)
    with running(root) as index:
        assert names(index, "Cart") == ["cart.py"]
    assert not marker.exists()


def test_questions_from_many_threads(root: Path) -> None:
    with running(root, wait=False) as index:
        answers: list[list[str]] = []

        def ask() -> None:
            for number in range(50):
                index.files_similar(["price_of_all_items"], 3)
                index.update(root / f"{threading.get_ident()}.py", f"class T{number}: ...\n")
                names(index, "Cart")
            index.wait(SECONDS)
            answers.append(names(index, "Cart"))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert answers == [["cart.py"]] * 4
