"""The edit benchmark: its tasks are what they say, and its judgement is right."""

from __future__ import annotations

import ast

import pytest

from fimble.bench.edit import damage_in, run_edits, summary
from fimble.bench.edit_cases import EditCase, draw_edit_cases
from fimble.bench.edit_scripts import SCRIPTED
from fimble.engine.protocol import CompletionRequest
from tests.edit.places import fence
from tests.support.scripted_engine import ScriptedEngine

CASES = draw_edit_cases(48)


def test_there_are_as_many_as_are_asked_for_of_each_kind() -> None:
    assert len(CASES) == 48
    kinds = {case.kind for case in CASES}
    assert kinds == {"document", "types", "fix a name", *(item.kind for item in SCRIPTED)}
    assert draw_edit_cases(48) == CASES
    assert len({(case.name, case.kind, case.task, case.problem) for case in CASES}) == 48
    assert {case.newline for case in CASES} == {"\n", "\r\n"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.name}")
def test_a_task_is_well_formed(case: EditCase) -> None:
    code = case.text[case.start : case.end]
    assert code.startswith(("def ", "@")) and case.text[case.end : case.end + 1].strip() == ""
    ast.parse(case.text)
    assert damage_in(case, case.mark + case.text.encode()) == ""


async def test_the_original_solves_what_was_broken() -> None:
    """A model that restores the code: every broken name is mended."""
    broken = [case for case in CASES if case.check == "restored"][:6]
    waiting = iter(broken)
    engine = ScriptedEngine(lambda request: fence(_shown(next(waiting), request)))
    scores = await run_edits(engine, broken)
    assert [score.result for score in scores] == ["solved"] * 6
    assert summary(scores)["share_solved"] == 1.0


def _shown(case: EditCase, request: CompletionRequest) -> str:
    lines = case.original.split("\n")
    indent = min((len(x) - len(x.lstrip()) for x in lines[1:] if x.strip()), default=4) - 4
    return "\n".join([lines[0], *(line[max(0, indent) :] for line in lines[1:])])


async def test_what_solves_nothing_is_told_from_what_is_refused() -> None:
    case = next(case for case in CASES if case.kind == "fix a bug")
    answers = {"prose": "no", "same name": fence("def f(): pass")}
    for answer in answers.values():
        (score,) = await run_edits(ScriptedEngine([answer]), [case])
        assert score.result == "refused" and score.detail


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data, case: data[len(case.mark) + 1 :], "above"),
        (lambda data, case: data.rstrip(b"\r\n") if data.endswith(b"\n") else data + b"\n", "last"),
        (lambda data, case: data.replace(b"\r\n", b"\n"), "line ends"),
        (lambda data, case: data[:-40] + b"#" + data[-40:], "below"),
    ],
)
def test_damage_is_found(change: object, says: str) -> None:
    assert callable(change)
    case = next(case for case in CASES if case.newline == "\r\n")
    data = case.mark + case.text.encode()
    assert says in damage_in(case, change(data, case))
    marked = next(case for case in CASES if case.mark)
    assert "mark" in damage_in(marked, marked.text.encode())
    whole = case.text[: case.start] + "def f(:" + case.text[case.end :]
    assert "syntax" in damage_in(case, whole.encode())
