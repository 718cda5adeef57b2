"""From an answer to the text that may stand there, or the reason why it may not."""

from __future__ import annotations

import pytest

from fimble.assist.edit.problems import Problem
from fimble.assist.edit.tasks import CUSTOM, TASKS
from fimble.assist.edit.verdict import verdict_on
from fimble.engine.protocol import FinishReason
from tests.edit.places import fence, target_of

TICKS = "```"


def result(
    source: str,
    answer: str,
    task: str = CUSTOM,
    *,
    path: str = "a.py",
    newline: str = "\n",
    finish: FinishReason = "stop",
) -> str:
    """The whole new text, or ``!name`` of the problem."""
    target = target_of(source, task, path, newline)
    verdict = verdict_on(target, TASKS[task], answer, finish)
    if isinstance(verdict, Problem):
        return f"!{verdict.name}"
    text = target.document.text
    return text[: target.span.start] + verdict.text + text[target.span.end :]


SOURCE = """class A:
    def f(self, n):
        «return n + 1»


tail = 1
"""


@pytest.mark.parametrize(
    "answer",
    [
        fence("return n + 2"),
        fence("return n + 2", ""),
        fence("return n + 2", "py"),
        fence("    return n + 2"),
        fence("        return n + 2"),
        "Sure, here it is:\n\n" + fence("return n + 2") + "\n\nIt adds two now.",
        fence("return n + 1") + "\nbecomes\n" + fence("return n + 2"),
        "~~~python\nreturn n + 2\n~~~",
        "1. this:\n   ```python\n   return n + 2\n   ```",
        f"{TICKS}python\nreturn n + 2",  # never closed, but whole
        f"{TICKS}python\r\nreturn n + 2\r\n{TICKS}",
    ],
)
def test_the_code_is_found_and_indented(answer: str) -> None:
    assert result(SOURCE, answer) == SOURCE.replace("«return n + 1»", "return n + 2")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("I cannot do that.", "prose"),
        ("", "prose"),
        (fence("return n + 1"), "unchanged"),
        (fence("return (n + 2"), "syntax"),
        (fence("function f(n) { return n }", "javascript"), "language"),
        (f"{TICKS}python\nreturn foo(", "unterminated"),
        (fence(""), "empty"),
        (fence("x = 1\n# ... rest of the code ...\nreturn x"), "elision"),
        (fence("n += 1\n# existing code here\nreturn n"), "elision"),
        (fence("\n".join(["print('again and again')"] * 40)), "repetition"),
    ],
)
def test_what_cannot_be_used_is_named(answer: str, problem: str) -> None:
    assert result(SOURCE, answer) == f"!{problem}"


def test_an_answer_that_was_cut_is_not_used() -> None:
    assert result(SOURCE, f"{TICKS}python\nreturn n", finish="length") == "!cut"


FENCED = '''«def f():
    """Shows:

```
f()
```
    """
    return 1»
'''


def test_fences_within_the_code_do_not_end_it() -> None:
    code = FENCED.replace("«", "").replace("»\n", "").replace("return 1", "return 2")
    assert result(FENCED, fence(code) + "\nDone.\n```\nother\n```") == code + "\n"


def test_fences_within_markdown() -> None:
    source = "# Title\n\n«Run:\n\n```\nmake\n```»\n"
    code = "Run this:\n\n```\nmake all\n```"
    assert result(source, fence(code, "markdown"), path="a.md") == f"# Title\n\n{code}\n"


def test_line_ends_tabs_and_trailing_blanks_stay() -> None:
    source = "def f(n):\n\tx = 1   \n«\tif n:\n\t\treturn 1 \n\treturn 2»\n"
    answer = fence("if n:\n    return 1\nelse:\n    return 2")
    expected = source.replace("«", "").replace("»", "").replace("\n", "\r\n")
    expected = expected.replace("\treturn 2", "\telse:\r\n\t\treturn 2")
    assert result(source, answer, newline="\r\n") == expected.replace("return 1 \r", "return 1\r")


def test_a_line_that_comes_back_goes_back_as_it_was() -> None:
    source = "def f():\n    «x = '''\n  a\n\tb  \n'''\n    return  x + 'é😀'»\n"
    answer = fence("x = '''\n  a\n\tb  \n'''\nreturn  x + 'é😀!'")
    assert result(source, answer) == (source.replace("«", "").replace("»", "").replace("😀", "😀!"))


def test_no_final_line_end_is_added() -> None:
    assert result("«x = 1»", fence("x = 2\n")) == "x = 2"


def test_two_spaces_become_four() -> None:
    source = "def f(n):\n    if n:\n        return 1\n\n\n«def g(n):\n    return n»\n"
    answer = fence("def g(n):\n  if n:\n    return n\n  return 0")
    assert result(source, answer).endswith("def g(n):\n    if n:\n        return n\n    return 0\n")


CLASS = """LIMIT = 3


def other():
    return LIMIT


class Cart:
    def add(self, n):
        «return n»

    def rest(self):
        return 1
"""


@pytest.mark.parametrize(
    "answer",
    [
        "def add(self, n):\n    return n + 0",
        "class Cart:\n    def add(self, n):\n        return n + 0",
        "class Cart:\n    def add(self, n):\n        return n + 0\n\n    def rest(self): ...",
        "LIMIT = 3\n\n\ndef other():\n    return LIMIT\n\n\ndef add(self, n):\n    return n + 0",
    ],
)
def test_what_the_file_has_elsewhere_is_not_repeated(answer: str) -> None:
    source = CLASS.replace("«", "").replace("»", "").replace("def add", "«»def add")
    expected = CLASS.replace("«return n»", "return n + 0")
    target = target_of(source, "errors")
    verdict = verdict_on(target, TASKS["errors"], fence(answer))
    assert not isinstance(verdict, Problem), verdict
    text = target.document.text
    assert text[: target.span.start] + verdict.text + text[target.span.end :] == expected


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def plus(self, n):\n    return n", "lost"),
        ("def add(self, n, m=0):\n    return n + m", "signature"),
    ],
)
def test_what_others_rely_on_stays(code: str, problem: str) -> None:
    source = CLASS.replace("«", "").replace("»", "").replace("def add", "«»def add")
    assert result(source, fence(code), "errors") == f"!{problem}"


@pytest.mark.parametrize(
    ("source", "code", "problem"),
    [
        ("«def f(n):\n    return n\n\n\ndef g():\n    f(1)»\n", "def f(n):\n    return n", "lost"),
        (
            "«def f(n):\n    return n\n\n\ndef g():\n    f(1)»\n",
            "def f():\n    return 1\n\n\ndef g():\n    f()",
            "signature",
        ),
        ("«# adds\ndef f(n):\n    return n + 1»\n", "# adds\ndef h(n):\n    return 1 + n", "lost"),
        (
            "«class A:\n    def f(self):\n        return 1\n\n    def g(self): ...»\n",
            "class A:\n    def f(self):\n        return 1",
            "lost",
        ),
    ],
)
def test_of_several_definitions_each_stays(source: str, code: str, problem: str) -> None:
    assert result(source, fence(code), "simplify") == f"!{problem}"


@pytest.mark.parametrize(
    ("source", "code", "problem"),
    [
        ("«def f(n):\n    return n»\n\n\ndef g():\n    f(1)\n", "def g():\n    f(1)", "!copied"),
        ("«def f(n):\n    return n»\n\n\ndef g():\n    f(1)\n", "def g():\n    f(2)", "!copied"),
        (
            "class A:\n    «def f(self): ...»\n\n    def g(self):\n        pass\n",
            "def g(self):\n    pass",
            "!copied",
        ),
        # Another name, and the name of something else's part, may be meant.
        ("«def f(n):\n    return n»\n", "def h(n):\n    return n", "def h(n):\n    return n\n"),
        (
            "class A:\n    «def f(self): ...»\n\n\nclass B:\n    def g(self): ...\n",
            "def g(self): ...",
            "class A:\n    def g(self): ...\n\n\nclass B:\n    def g(self): ...\n",
        ),
    ],
)
def test_what_stands_beside_it_does_not_take_its_place(
    source: str, code: str, problem: str
) -> None:
    assert result(source, fence(code)) == problem


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("a.py", "class A:\n    «@property\n    def f(self):\n        return 1»\n", "A.f"),
        ("a.py", "class A:\n    @prop«»erty\n    def f(self):\n        return 1\n", "A.f"),
        ("a.py", "«# of it\n\n# more\ndef f():\n    return 1\n»", "f"),
        ("a.ts", "«export function f(x) {\n  return x;\n}»\n", "f"),
        ("a.ts", "«/**\n * It.\n */\nexport function f(x) {\n  return x;\n}»\n", "f"),
        ("a.rs", "«#[inline]\nfn f() -> i32 {\n    1\n}»\n", "f"),
        ("a.java", "class A {\n  «// It.\n  @Override\n  int f() { return 1; }»\n}\n", "A.f"),
        ("a.cpp", "«template <class T>\nT f(T x) {\n  return x;\n}»\n", "f"),
    ],
)
def test_a_definition_is_selected_with_what_stands_in_front(
    path: str, source: str, name: str
) -> None:
    assert target_of(source, "document", path).name == name


def test_types_change_nothing_else() -> None:
    source = "«»def f(a, b=1):\n    return a * b\n"
    typed = "def f(a: int, b: int = 1) -> int:\n    return a * b"
    assert result(source, fence(typed), "types") == typed + "\n"
    assert result(source, fence(typed.replace("f(a", "f(z")), "types") == "!changed"


@pytest.mark.parametrize(
    ("answer", "typed"),
    [
        # What it gives back is another thing in the answer.
        (
            "def f(self, a: int, é=1, *rest: str) -> int:\n    return a",
            "self, a: int, é=1, *rest: str",
        ),
        (
            "class A:\n    def f(self, a, é: int = 1, *rest):\n        return 2",
            "self, a, é: int = 1, *rest",
        ),
        (
            "def f(self, a: Unknown, é: list[int] = 1, *rest): ...",
            "self, a, é: list[int] = 1, *rest",
        ),
        ("def f(self, a: Unknown, é=1, *rest): ...", ""),
        ("def f(self, b: int, é=1, *rest): ...", ""),
    ],
)
def test_of_an_answer_that_changes_more_the_annotations_are_taken(answer: str, typed: str) -> None:
    code = "def f(self, a, é=1, *rest):\n        return a * é\n"
    source = f"class B:\n    «»{code}"
    expected = source.replace("«»", "").replace("self, a, é=1, *rest", typed)
    assert result(source, fence(answer), "types") == (expected if typed else "!changed")


def test_an_import_that_is_not_needed_is_left_out() -> None:
    source = "import re\n\n\n«»def f(a):\n    return a\n"
    code = "import re\nfrom typing import List, Any\n\ndef f(a: str) -> str:\n    return a"
    assert "typing" not in result(source, fence(code), "types")
    used = result(source, fence(code.replace(": str", ": Any")), "types")
    assert used.startswith("import re\n\n\nfrom typing import List, Any\n\n\ndef f(a: Any)")


def test_a_masked_key_never_gets_into_the_file() -> None:
    key = "ghp_" + "Zx9Q2mW4eR7tY1uI3oP5aS8dF6gH0jKlZxCv"
    source = f"«token = '{key}'\nx = 1»\n"
    target = target_of(source)
    assert key not in target.shown and target.masked
    (mark,) = target.masked
    kept = fence(target.shown.replace("x = 1", "x = 2"))
    assert result(source, kept) == f"token = '{key}'\nx = 2\n"
    assert result(source, fence(f"token = str('{mark}')\nx = 2")) == "!secret"
