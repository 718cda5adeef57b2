"""Tests by their project's conventions: where they go, and into what is there already."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.assist.edit.destination import Destination, find_destination
from fimble.assist.edit.merging import merged
from fimble.assist.edit.problems import Problem
from fimble_context.syntax import Document
from tests.edit.places import OneFolder, fence, request_for, service_on
from tests.support.scripted_engine import ScriptedEngine


def tree(root: Path, *names: str, **texts: str) -> Path:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts.get(file.stem, ""), encoding="utf-8", newline="\n")
    (root / ".git").mkdir(exist_ok=True)
    return root


#: name: what there is, the file under test, where its tests go, whether that is new
PLACES = {
    "python, mirrored": (
        ["shop/cart.py", "tests/shop/test_other.py"], "shop/cart.py", "tests/shop/test_cart.py",
    ),
    "python, flat": (
        ["shop/cart.py", "tests/test_other.py"], "shop/cart.py", "tests/test_cart.py",
    ),
    "python, there already": (
        ["shop/cart.py", "tests/test_cart.py", "shop/test_x.py"], "shop/cart.py",
        "tests/test_cart.py",
    ),
    "python, beside": (["shop/cart.py", "shop/test_x.py"], "shop/cart.py", "shop/test_cart.py"),
    "typescript, beside": (["src/a.ts", "src/b.test.ts"], "src/a.ts", "src/a.test.ts"),
    "javascript, a folder": (["a.js", "__tests__/b.test.js"], "a.js", "__tests__/a.test.js"),
    "go": (["p/a.go"], "p/a.go", "p/a_test.go"),
    "rust": (["src/a.rs"], "src/a.rs", "src/a.rs"),
    "java": (
        ["src/main/java/p/A.java", "src/test/java/p/BTest.java"], "src/main/java/p/A.java",
        "src/test/java/p/ATest.java",
    ),
    "ruby": (["lib/a.rb", "spec/b_spec.rb"], "lib/a.rb", "spec/a_spec.rb"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
async def test_where_tests_go(name: str, tmp_path: Path) -> None:
    files, tested, expected = PLACES[name]
    root = tree(tmp_path, *files)
    document = Document("", path=str(root / tested))
    found = await find_destination(document, OneFolder(root))
    assert isinstance(found, Destination)
    assert found.path.relative_to(root).as_posix() == expected
    assert found.is_new == (expected not in files)


@pytest.mark.parametrize(
    ("other", "says"),
    [("import unittest\n", "unittest"), ("import pytest\n", "pytest"), ("", "pytest")],
)
async def test_the_framework_is_the_projects(tmp_path: Path, other: str, says: str) -> None:
    root = tree(tmp_path, "cart.py", "tests/test_other.py", test_other=other)
    found = await find_destination(Document("", path=str(root / "cart.py")), OneFolder(root))
    assert isinstance(found, Destination) and says in found.framework


async def test_what_has_no_convention(tmp_path: Path) -> None:
    found = await find_destination(Document("", path=str(tmp_path / "a.css")), OneFolder(tmp_path))
    assert isinstance(found, Problem) and found.name == "language"


def into(existing: str, code: str, name: str = "test_a.py", *, own: bool = False) -> str:
    found = Destination(
        Path(name), Document(existing, path=name), "", is_new=not existing, is_own=own
    )
    text = merged(found, code)
    return f"!{text.name}" if isinstance(text, Problem) else text


def test_a_new_file() -> None:
    assert into("", "from a import f\n\n\ndef test_f():\n    assert f() == 1\n\n") == (
        "from a import f\n\n\ndef test_f():\n    assert f() == 1\n"
    )
    assert into("", "print('hello')") == "!no-tests"


EXISTING = "import os\nfrom a import f\n\n\ndef test_f():\n    assert f()\n"


def test_imports_join_imports_and_the_rest_the_end() -> None:
    code = "from a import f\nfrom b import g\n\ndef test_g():\n    assert g()"
    assert into(EXISTING, code) == (
        "import os\nfrom a import f\nfrom b import g\n\n\ndef test_f():\n    assert f()\n\n\n"
        "def test_g():\n    assert g()\n"
    )


def test_what_is_there_is_not_defined_again() -> None:
    code = "def test_f():\n    assert 1\n\n\ndef test_h():\n    assert 2"
    assert into(EXISTING, code) == f"{EXISTING}\n\ndef test_h():\n    assert 2\n"
    assert into(EXISTING, "def test_f():\n    assert 1") == "!unchanged"


def test_methods_join_their_class() -> None:
    existing = "class TestF:\n    def test_a(self):\n        assert 1\n"
    code = existing.replace("1", "0") + "\n    def test_b(self):\n        assert 2"
    assert into(existing, code) == (
        "class TestF:\n    def test_a(self):\n        assert 1\n\n"
        "    def test_b(self):\n        assert 2\n"
    )


def test_line_ends_of_the_file_that_is_there() -> None:
    existing = EXISTING.replace("\n", "\r\n")
    found = into(existing, "def test_h():\n    assert 2")
    assert found == (EXISTING + "\n\ndef test_h():\n    assert 2\n").replace("\n", "\r\n")


def test_rust_has_its_tests_in_a_module() -> None:
    source = "fn f() -> i32 {\n    1\n}\n"
    code = "#[test]\nfn gives_one() {\n    assert_eq!(f(), 1);\n}"
    once = into(source, code, "a.rs", own=True)
    assert once == (
        source + "\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n"
        "    fn gives_one() {\n        assert_eq!(f(), 1);\n    }\n}\n"
    )
    twice = into(once, code.replace("gives_one", "again"), "a.rs", own=True)
    assert "fn gives_one()" in twice and "fn again()" in twice
    assert twice.count("mod tests") == 1 and twice.rstrip().endswith("}")


async def test_tests_for_a_symbol(tmp_path: Path) -> None:
    root = tree(tmp_path, "shop/__init__.py", "shop/cart.py", "tests/test_other.py")
    source = "def «»f(n):\n    return n\n"
    path = root / "shop" / "cart.py"
    code = "from shop.cart import f\n\n\ndef test_f():\n    assert f(1) == 1"
    engine = ScriptedEngine([fence(code)])
    service = service_on(engine, root)
    outcome = await service.edit(request_for(source, "tests", path=str(path), instruction=""))
    assert Path(outcome.path) == root / "tests" / "test_cart.py"
    assert (outcome.is_new, outcome.is_own, outcome.after) == (True, False, code + "\n")
    prompt = engine.requests[0].messages[-1].content
    assert "from shop.cart import f" in prompt and "tests/test_cart.py" in prompt
    assert not (root / "tests" / "test_cart.py").exists()  # whoever asked writes it
