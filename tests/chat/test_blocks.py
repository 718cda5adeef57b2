"""Code blocks of answers, and what they are meant for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fimble.assist.chat.blocks import code_blocks
from fimble.assist.chat.pieces import Piece, Target
from fimble.assist.fences import fenced


def piece(path: str, kind: str = "file", language: str = "python") -> Piece:
    target = Target(path, f"/w/{path}", f"uri:{path}", 5, 9, 1)
    return Piece(kind, path, "", "x = 1\n", language, target=target)


#: answer, blocks as language, path and text
ANSWERS: dict[str, list[tuple[str, str, str]]] = {
    "prose only": [],
    "a\n```python\nx = 1\n```\nb\n```\ny\n```": [("python", "", "x = 1"), ("", "", "y")],
    "```python src/app.py\nx = 1\n```": [("python", "src/app.py", "x = 1")],
    "```python:src/app.py\nx = 1\n```": [("python", "src/app.py", "x = 1")],
    '```ts title="a.ts"\nx\n```': [("ts", "a.ts", "x")],
    "````md\n```python\nx\n```\n````": [("md", "", "```python\nx\n```")],
    "~~~sh\n```\n~~~": [("sh", "", "```")],
    "   ```c\n   int x;\n   ```": [("c", "", "int x;")],
    "    ```c\nno block": [],
    "```a`b\nno block": [],
    "```python\r\nx = 1\r\n```\r\n": [("python", "", "x = 1")],
    "```c++\nint x;\n```": [("c++", "", "int x;")],
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_blocks(answer: str) -> None:
    found = code_blocks(answer)
    assert [(block.language, block.path, block.text) for block in found] == ANSWERS[answer]
    assert all(block.complete for block in found)


def test_a_block_that_is_never_closed_reaches_to_the_end() -> None:
    (block,) = code_blocks("so:\n```python\nx = 1\ny =")
    assert (block.text, block.complete) == ("x = 1\ny =", False)


@given(st.text(alphabet="`~ab\n 🙂\r", max_size=60))
def test_a_fenced_text_comes_back(text: str) -> None:
    text = text.replace("\r", "")
    (block,) = code_blocks(f"before\n{fenced(text, 'x')}\nafter")
    assert (block.text, block.language) == (text.removesuffix("\n"), "x")


@given(st.text(alphabet="`~a\n \r", max_size=60))
def test_places_are_those_of_the_answer(answer: str) -> None:
    for block in code_blocks(answer):
        assert answer[block.start : block.end].lstrip(" ")[:3] in ("```", "~~~")


def test_a_block_is_for_the_file_that_it_names() -> None:
    pieces = [piece("src/app.py"), piece("src/other.py")]
    (block,) = code_blocks("```python app.py\nx\n```", pieces)
    assert block.target == pieces[0].target and block.path == "app.py"
    (block,) = code_blocks("```python ./src/other.py\nx\n```", pieces)
    assert block.target == pieces[1].target
    (block,) = code_blocks("```python pp.py\nx\n```", pieces)
    assert block.target is None


def test_without_a_name_it_is_for_the_only_place_of_its_language() -> None:
    around, script = piece("a.py", "around"), piece("a.sh", language="bash")
    answer = "```py\nx\n```\n```sh\ny\n```\n```js\nz\n```\n```\nany\n```"
    targets = [block.target for block in code_blocks(answer, [around, script])]
    assert targets == [around.target, script.target, None, around.target]
    two = [piece("a.py"), piece("b.py")]
    assert code_blocks("```python\nx\n```", two)[0].target is None
