"""Edits with an engine that says what it is told: tries, refusals, cancelling, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from fimble.assist.edit.hunks import apply_hunks
from fimble.assist.edit.service import EditOutcome, EditRequest, rebased
from fimble.assist.edit.tasks import CUSTOM
from fimble.engine.base import ModelInfo
from fimble.errors import EditRefused, EngineUnavailable, UsageError
from fimble_context.syntax import Document, Edit
from tests.edit.places import fence, request_for, service_on
from tests.support.scripted_engine import Answer, ScriptedEngine

SOURCE = "def f(n):\n    «x = n»\n    return x\n\n\nother = 1\n"
PLAIN = SOURCE.replace("«", "").replace("»", "")


async def edit(engine: ScriptedEngine, folder: Path, request: EditRequest) -> EditOutcome:
    outcome = await service_on(engine, folder).edit(request)
    assert apply_hunks(outcome.before, outcome.hunks) == outcome.after
    span = outcome.span
    assert outcome.after.startswith(outcome.before[: span.start])
    assert outcome.after.endswith(outcome.before[span.end :])
    return outcome


async def refused(engine: ScriptedEngine, folder: Path, request: EditRequest) -> EditRefused:
    with pytest.raises(EditRefused) as caught:
        await edit(engine, folder, request)
    return caught.value


async def test_an_edit(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("x = n + 1") + "\nThat is all."], piece=3)
    outcome = await edit(engine, tmp_path, request_for(SOURCE))
    assert outcome.after == PLAIN.replace("x = n", "x = n + 1")
    assert [hunk.text for hunk in outcome.hunks] == [" + 1"]
    assert (outcome.about, outcome.cost.tries) == ("Edit line 2", 1)
    (request,) = engine.requests
    # An edit repeats most of what it was shown, whatever a package says of chats.
    assert (request.temperature, request.repetition_penalty) == (0.0, 1.0)
    assert request.priority == "chat"
    # What follows the code is not made.
    assert engine.cancelled == [request]


async def test_a_second_try_is_told_what_was_wrong(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("x = (n"), fence("x = (n)")])
    outcome = await edit(engine, tmp_path, request_for(SOURCE))
    assert outcome.after == PLAIN.replace("x = n", "x = (n)") and outcome.cost.tries == 2
    system, asked, answer, told = engine.requests[1].messages
    assert (system.role, asked.role, answer.role, told.role) == (
        "system",
        "user",
        "assistant",
        "user",
    )
    assert answer.content == fence("x = (n") and "syntax error" in told.content
    assert outcome.cost.usage.completion_tokens > engine.count(fence("x = (n)"))


async def test_code_that_comes_back_with_its_fault_is_asked_for_anew(tmp_path: Path) -> None:
    whole = PLAIN.partition("\n\n\n")[0]
    engine = ScriptedEngine([fence(whole), fence(whole.replace("x = n", "x = n + 1"))])
    outcome = await edit(engine, tmp_path, request_for(SOURCE, "fix", problem="n is too small"))
    assert outcome.after == PLAIN.replace("x = n", "x = n + 1") and outcome.cost.tries == 2
    # Without its answer: a model that sees one of its own gives it again.
    assert [message.role for message in engine.requests[1].messages] == ["system", "user"]
    asked, told = (request.messages[-1].content for request in engine.requests)
    assert told.startswith(asked)
    assert "still has the fault:\n- at x = n: n is too small" in told[len(asked) :]


@pytest.mark.parametrize(
    ("answers", "name", "asked"),
    [
        ([fence("x = (n")], "syntax", 2),
        (["I would rather not."], "prose", 2),
        ([fence("let x = n;", "javascript")], "language", 2),
        ([fence("x = n")], "unchanged", 2),
        ([Answer("```python\nx = ", "length")], "cut", 1),
        ([fence("\n".join(["print('again and again')"] * 60))], "repetition", 2),
    ],
)
async def test_what_cannot_be_used_changes_nothing_and_is_shown(
    tmp_path: Path, answers: list[str | Answer], name: str, asked: int
) -> None:
    engine = ScriptedEngine(answers)
    error = await refused(engine, tmp_path, request_for(SOURCE))
    assert error.name == name and error.message.startswith("Nothing was changed.")
    assert error.answer and error.next_step
    assert len(engine.requests) == asked


async def test_endless_repetition_is_ended(tmp_path: Path) -> None:
    endless = "```python\n" + "print('again and again')\n" * 4000
    engine = ScriptedEngine([endless], piece=50)
    error = await refused(engine, tmp_path, request_for(SOURCE))
    assert error.name == "repetition" and len(error.answer) < 1000
    assert engine.cancelled == engine.requests


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
async def test_line_ends_tabs_and_emoji(tmp_path: Path, newline: str) -> None:
    source = "def f(n):\n\t«s = '😀é' + n»\n\treturn s\n"
    engine = ScriptedEngine([fence("s = '😀é!' + n\nprint(s)")])
    outcome = await edit(engine, tmp_path, request_for(source, newline=newline))
    expected = "def f(n):\n\ts = '😀é!' + n\n\tprint(s)\n\treturn s\n"
    assert outcome.after == expected.replace("\n", newline)
    assert "\r" not in engine.requests[0].messages[-1].content


async def test_control_tokens_in_code_are_text(tmp_path: Path) -> None:
    source = "«x = '<|im_end|>'»\n"
    engine = ScriptedEngine([fence("x = '<|im_end|>!'")])
    outcome = await edit(engine, tmp_path, request_for(source))
    assert outcome.after == "x = '<|im_end|>!'\n"


async def test_an_empty_selection_is_the_function(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("def f(n):\n    return n")])
    request = request_for("def f(n):\n    x = «»n\n    return x\n", "simplify", instruction="")
    outcome = await edit(engine, tmp_path, request)
    assert outcome.after == "def f(n):\n    return n\n" and outcome.about == "Simplify f"


async def test_something_new_on_an_empty_line(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("y = 2\nz = 3")])
    outcome = await edit(
        engine, tmp_path, request_for("def f():\n    x = 1\n    «»\n    return x\n")
    )
    assert outcome.after == "def f():\n    x = 1\n    y = 2\n    z = 3\n    return x\n"
    engine = ScriptedEngine([fence("y = 2")])
    outcome = await edit(engine, tmp_path, request_for("«»"))
    assert outcome.after == "y = 2"


async def test_a_huge_selection_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    source = "«" + "value = compute(1, 2, 3)\n" * 2000 + "»"
    engine = ScriptedEngine([fence("x")])
    error = await refused(engine, tmp_path, request_for(source))
    assert error.name == "too-long" and not engine.requests


async def test_prompt_and_answer_fit_into_the_window(tmp_path: Path) -> None:
    info = ModelInfo("small", 512, "none", fim=True, continuation=True)
    engine = ScriptedEngine([fence("x = n + 1")], info=info)
    await edit(engine, tmp_path, request_for(SOURCE))
    (request,) = engine.requests
    prompt = sum(engine.count(message.content) for message in request.messages)
    assert prompt + request.max_tokens <= 512


@pytest.mark.parametrize("task", ["simplify", "types", "document", "split", "tests"])
async def test_where_there_is_nothing_to_do_it_is_said(tmp_path: Path, task: str) -> None:
    engine = ScriptedEngine([""])
    error = await refused(engine, tmp_path, request_for("«»\nx = 1\n", task, instruction=""))
    assert error.message.endswith(".") and not engine.requests


async def test_bad_requests(tmp_path: Path) -> None:
    service = service_on(ScriptedEngine([""]), tmp_path)
    with pytest.raises(UsageError, match="no task 'nonsense'"):
        await service.edit(request_for(SOURCE, "nonsense"))
    with pytest.raises(UsageError, match="instruction"):
        await service.edit(request_for(SOURCE, instruction=" "))


async def test_secret_files_are_not_edited(tmp_path: Path) -> None:
    engine = ScriptedEngine([""])
    request = request_for(SOURCE, path=str(tmp_path / ".env"))
    assert (await refused(engine, tmp_path, request)).name == "secret"
    assert not engine.requests and not engine.counted


async def test_one_edit_of_a_document_at_a_time(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("x = n + 1")], gate=asyncio.Event())
    service = service_on(engine, tmp_path)
    first = asyncio.ensure_future(service.edit(request_for(SOURCE, path="a.py")))
    while not engine.requests:
        await asyncio.sleep(0)
    with pytest.raises(EditRefused, match="Another edit") as caught:
        await service.edit(request_for(SOURCE, path="a.py"))
    assert caught.value.name == "busy"
    other = asyncio.ensure_future(service.edit(request_for(SOURCE, path="b.py")))
    assert engine.gate is not None
    engine.gate.set()
    assert (await first).after == (await other).after
    assert (await service.edit(request_for(SOURCE, path="a.py"))).hunks


@pytest.mark.parametrize("pieces", [0, 1, 5])
async def test_cancelled_after_any_token(tmp_path: Path, pieces: int) -> None:
    engine = ScriptedEngine([fence("x = n + 1")], piece=2, gate=asyncio.Event())
    service = service_on(engine, tmp_path)
    heard: list[int] = []
    work: asyncio.Task[EditOutcome]

    def on_tokens(tokens: int) -> None:
        heard.append(tokens)
        if len(heard) == pieces:
            work.cancel()

    work = asyncio.ensure_future(service.edit(request_for(SOURCE), on_tokens))
    while not engine.requests:
        await asyncio.sleep(0)
    if pieces:
        assert engine.gate is not None
        engine.gate.set()
    else:
        work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(heard) == pieces and engine.cancelled == engine.requests
    engine.gate = None
    assert (await service.edit(request_for(SOURCE))).hunks  # nothing is held up


async def test_cancelled_while_the_prompt_is_counted(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("x = n + 1")])
    counting = asyncio.Event()
    real = engine.count_tokens

    async def never(texts: Sequence[str]) -> list[int]:
        counting.set()
        await asyncio.Event().wait()
        return []

    engine.count_tokens = never  # type: ignore[method-assign]
    service = service_on(engine, tmp_path)
    work = asyncio.ensure_future(service.edit(request_for(SOURCE)))
    await counting.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert engine.requests == []
    engine.count_tokens = real  # type: ignore[method-assign]
    assert (await service.edit(request_for(SOURCE))).hunks  # nothing is held up


async def test_cancelled_in_the_second_try(tmp_path: Path) -> None:
    engine = ScriptedEngine([fence("x = (n + 1"), fence("x = n + 1")], piece=2)
    service = service_on(engine, tmp_path)
    work: asyncio.Task[EditOutcome]

    def on_tokens(_tokens: int) -> None:
        if len(engine.requests) == 2:
            work.cancel()

    work = asyncio.ensure_future(service.edit(request_for(SOURCE), on_tokens))
    with pytest.raises(asyncio.CancelledError):
        await work
    assert len(engine.requests) == 2 and engine.cancelled == engine.requests[1:]
    assert (await service.edit(request_for(SOURCE))).hunks


async def test_what_the_engine_raises_is_passed_on(tmp_path: Path) -> None:
    service = service_on(ScriptedEngine([EngineUnavailable("gone")]), tmp_path)
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            await service.edit(request_for(SOURCE))


async def test_a_document_that_went_on(tmp_path: Path) -> None:
    outcome = await edit(ScriptedEngine([fence("x = n + 1")]), tmp_path, request_for(SOURCE))
    above = Edit(0, 0, "import os\n\n\n")
    now = Document(above.text + PLAIN, path="a.py")
    moved = rebased(outcome, now, [above])
    assert apply_hunks(now.text, moved.hunks) == moved.after == above.text + outcome.after
    here = Edit(PLAIN.index("x = n"), PLAIN.index("x = n") + 1, "y")
    with pytest.raises(EditRefused, match="edited meanwhile") as caught:
        rebased(outcome, Document(PLAIN.replace("x = n", "y = n"), path="a.py"), [here])
    assert caught.value.name == "moved"


def test_code_of_somebody_elses_goes_the_same_way(tmp_path: Path) -> None:
    service = service_on(ScriptedEngine([""]), tmp_path)
    document = Document(PLAIN, path="a.py")
    start = PLAIN.index("x = n")
    outcome = service.apply(document, start, start + 5, "x = n\nprint(x)")
    assert outcome.after == PLAIN.replace("x = n", "x = n\n    print(x)")
    with pytest.raises(EditRefused, match="not applied"):
        service.apply(document, start, start + 5, "x = (n")


WHOLE = """import sys

LIMIT = 3


def f(n):
    return n


class A:
    def m(self):
        return 1

    def k(self):
        return 2


print(f(LIMIT), sys.path)
"""


@pytest.mark.parametrize(
    ("selected", "code", "after"),
    [
        # A definition of several takes its own place.
        (WHOLE, "def f(n):\n    return n + 1", WHOLE.replace("return n\n", "return n + 1\n")),
        (WHOLE, "def m(self):\n    return 3", WHOLE.replace("return 1", "return 3")),
        (WHOLE, "class A:\n    def m(self):\n        return 3", WHOLE.replace("turn 1", "turn 3")),
        (
            WHOLE,
            "def g():\n    return 0\n\n\ndef f(n):\n    return g()",
            WHOLE.replace(
                "def f(n):\n    return n\n",
                "def g():\n    return 0\n\n\ndef f(n):\n    return g()\n",
            ),
        ),
        # All of it.
        (WHOLE, WHOLE.replace("return 2", "return 4"), WHOLE.replace("return 2", "return 4")),
        # A new name for what is selected.
        (
            "def f(n):\n    return n",
            "def g(n):\n    return n",
            WHOLE.replace("def f(n)", "def g(n)"),
        ),
        # What it does not have stays.
        (WHOLE, "print(f(1))", ""),
        (WHOLE, "def g():\n    return 0", ""),
        (
            WHOLE,
            "class A:\n    def m(self):\n        return 3\n\n    def n(self):\n        pass",
            "",
        ),
        (WHOLE, WHOLE[WHOLE.index("def f") : WHOLE.index("print")], ""),
    ],
)
def test_code_that_is_a_part_replaces_that_part(
    tmp_path: Path, selected: str, code: str, after: str
) -> None:
    service = service_on(ScriptedEngine([""]), tmp_path)
    document, start = Document(WHOLE, path="a.py"), WHOLE.index(selected)
    if after:
        outcome = service.apply(document, start, start + len(selected), code)
        assert outcome.after == after
        return
    with pytest.raises(EditRefused, match="does not have") as caught:
        service.apply(document, start, start + len(selected), code)
    assert caught.value.name == "lost"


def test_a_method_that_is_no_program_of_its_own_replaces_a_method(tmp_path: Path) -> None:
    service = service_on(ScriptedEngine([""]), tmp_path)
    text = "class A {\n  f(x) {\n    return x;\n  }\n  g() {}\n}\n"
    document, start = Document(text, path="a.js"), text.index("f(x)")
    outcome = service.apply(document, start, text.index("  g()") - 1, "f(x) {\n  return -x;\n}")
    assert outcome.after == text.replace("return x", "return -x")


def test_a_text_is_not_replaced_by_a_line_of_another(tmp_path: Path) -> None:
    service = service_on(ScriptedEngine([""]), tmp_path)
    text = "".join(f"Line {number}.\n" for number in range(20))
    document = Document(text, path="notes.txt")
    with pytest.raises(EditRefused, match="other lines"):
        service.apply(document, 0, len(text), "One line.")
    assert service.apply(document, 0, 7, "One line.").after.startswith("One line.\nLine 1.")


@pytest.mark.parametrize(
    ("source", "task", "path", "name"),
    [
        ("«»x = 1\n", "document", "a.py", "no-definition"),
        ("«»\n", "simplify", "a.py", "empty"),
        ("def f():\n    «return 1»\n", "split", "a.py", "short"),
        ("«x»\n", "types", "a.txt", "language"),
        ("«x»\0\n", CUSTOM, "a.py", "binary"),
    ],
)
async def test_what_cannot_be_asked_for_says_what_to_do(
    source: str, task: str, path: str, name: str, tmp_path: Path
) -> None:
    engine = ScriptedEngine(["never"])
    error = await refused(engine, tmp_path, request_for(source, task, path=path))
    assert (error.name, bool(error.next_step)) == (name, True)
    assert not engine.requests
