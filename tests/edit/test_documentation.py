"""Documentation: taken out of the answer, put into code that stays as it is."""

from __future__ import annotations

import pytest

from tests.edit.places import fence
from tests.edit.test_answers import result

#: name: path, source, answer, whole new text
CASES = {
    "a docstring; the code that the model changed is not taken": (
        "a.py",
        "class A:\n    def f(self, n):\n        «»x = n\n        return x  \n",
        'def f(self, n):\n    """Gives n.\n\n    Always.\n    """\n    return n + 1',
        'class A:\n    def f(self, n):\n        """Gives n.\n\n        Always.\n        """\n'
        "        x = n\n        return x  \n",
    ),
    "another docstring in place of the old one": (
        "a.py",
        'def f(n):\n    """Old."""\n    «»return n\n',
        'def f(n):\n    """New."""\n    return n',
        'def f(n):\n    """New."""\n    return n\n',
    ),
    "a comment above": (
        "a.go",
        "package p\n\nfunc Add(a int) int {\n\treturn «»a\n}\n",
        "// Add gives a.\nfunc Add(a int) int {\n\treturn 5\n}",
        "package p\n\n// Add gives a.\nfunc Add(a int) int {\n\treturn a\n}\n",
    ),
    "another comment in place of the old one": (
        "a.js",
        "/** Old. */\nfunction f(n) {\n  return «»n;\n}\n",
        "/**\n * New.\n */\nfunction f(n) {\n  return n;\n}",
        "/**\n * New.\n */\nfunction f(n) {\n  return n;\n}\n",
    ),
    "none": ("a.py", "def f(n):\n    «»return n\n", "def f(n):\n    return n", "!undocumented"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_documentation(name: str, newline: str) -> None:
    path, source, answer, expected = CASES[name]
    found = result(source, fence(answer, ""), "document", path=path, newline=newline)
    assert found == expected.replace("\n", newline)


def test_what_is_cut_behind_the_documentation_is_whole_enough() -> None:
    answer = '```python\ndef f(n):\n    """Gives n."""\n    retu'
    source = "def f(n):\n    «»return n\n"
    expected = 'def f(n):\n    """Gives n."""\n    return n\n'
    assert result(source, answer, "document", finish="length") == expected
