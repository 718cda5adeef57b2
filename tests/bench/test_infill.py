"""The infill benchmark: fair cases, fair prompts, and scores that mean what they say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fimble.assist.layout import LAYOUT_TOKENS, completion_prompt
from fimble.bench.cases import SHAPES, Case, draw_cases
from fimble.bench.infill import (
    CONTEXT_MODES,
    Mode,
    Outcome,
    make_context,
    run_cases,
    summaries,
)
from fimble.bench.packages import copy_packages
from fimble.bench.score import edit_similarity, is_exact, normalised
from fimble.engine.client import LocalEngine
from fimble.engine.protocol import CompletionRequest
from fimble.errors import UsageError
from fimble_context.index import WorkspaceIndex
from tests.lsp.process import ended_engine
from tests.support.scripted_engine import ScriptedEngine, prompt_as_text

COUNT = 6


class World:
    """Some installed packages, indexed, and the cases drawn from them."""

    def __init__(self, folder: Path) -> None:
        self.folders = copy_packages(["click", "httpx", "no_such_package"], folder / "workspace")
        self.index = WorkspaceIndex([folder / "workspace"], folder / "index")
        self.index.start()
        assert self.index.wait(120)
        self.cross = draw_cases(self.folders, self.index, "cross-file", COUNT, 1)
        self.inside = draw_cases(self.folders, self.index, "in-file", COUNT, 1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("bench"))
    yield world
    world.index.close()


def quarter(texts: Sequence[str]) -> list[int]:
    """The scripted engine's tokenizer: four bytes a token."""
    return [-(-len(text.encode()) // 4) for text in texts]


def test_what_is_masked_is_what_was_there(world: World) -> None:
    for case in (*world.cross, *world.inside):
        whole = case.file.read_text(encoding="utf-8")
        assert case.text[: case.offset] + case.expected + case.text[case.offset :] == whole
        assert case.expected.strip()
        assert (case.shape == "block") == ("\n" in case.expected)


def test_cross_file_cases_use_what_another_file_defines_for_the_first_time(world: World) -> None:
    assert len(world.cross) == COUNT
    for case in world.cross:
        assert case.names
        for name in case.names:
            assert name in case.expected
            assert any(item.path != case.file for item in world.index.definitions(name))
            uses = [
                line
                for line in case.text.splitlines()
                if re.search(rf"\b{name}\b", line) and "import" not in line
            ]
            # A line of an import of several lines is nothing but the name.
            assert all(re.fullmatch(rf"\s*{name}( as \w+)?,?", line) for line in uses)
    assert all(not case.names for case in world.inside)


def test_the_shapes_take_turns(world: World) -> None:
    for cases in (world.cross, world.inside):
        assert [case.shape for case in cases] == [
            SHAPES[number % len(SHAPES)] for number in range(COUNT)
        ]
    blocks = draw_cases(world.folders, world.index, "in-file", 2, 1, ["block"])
    assert [case.shape for case in blocks] == ["block", "block"]


def test_the_rest_of_a_line_begins_where_a_user_stops_to_look(world: World) -> None:
    rests = draw_cases(world.folders, world.index, "cross-file", 4, 1, ["rest"])
    assert len(rests) == 4
    for case in rests:
        typed = case.text[: case.offset].rpartition("\n")[2]
        # Something is typed already, and a name from another file is what comes next.
        assert typed.strip()
        assert case.text[case.offset : case.offset + 1] in ("\n", "")
        assert any(re.match(rf"{name}\b", case.expected) for name in case.names)
    for case in (case for case in world.inside if case.shape == "rest"):
        assert case.text[: case.offset].rpartition("\n")[2].strip()


async def test_the_typed_line_stands_behind_the_prompt_where_the_model_heals(
    world: World,
) -> None:
    case = next(case for case in world.cross if case.shape == "rest")
    typed = case.text[: case.offset].rpartition("\n")[2]
    prompts = []
    for healing in (True, False):
        engine = ScriptedEngine([case.expected])
        engine.info = replace(engine.info, healing=healing)
        (outcome,) = await run_cases(engine, world.index, [case], budget=900, modes=["a"])
        assert outcome.exact
        (request,) = engine.requests
        assert request.heal == healing
        assert request.stop == ("\n",)
        prompts.append(prompt_as_text(request.prompt))
    healed, plain = prompts
    assert healed.endswith(f"<fim_middle>{typed}")
    # Nothing but its place differs.
    assert plain == healed.removesuffix(typed).replace("<fim_suffix>", f"{typed}<fim_suffix>")


def test_each_shape_has_a_summary_of_its_own() -> None:
    def outcome(number: int, shape: str, exact: bool) -> Outcome:
        return Outcome(number, "c", "in-file", shape, exact, 1.0, 9, "", "", {})

    several = [outcome(0, "rest", True), outcome(1, "line", False), outcome(2, "rest", True)]
    assert [(item.shape, item.cases, item.exact) for item in summaries(several)] == [
        ("", 3, 2 / 3), ("rest", 2, 1.0), ("line", 1, 0.0),
    ]  # fmt: skip
    assert [item.shape for item in summaries(several[:1])] == [""]


def test_the_same_seed_draws_the_same_cases(world: World) -> None:
    def places(cases: Sequence[Case]) -> list[tuple[Path, int, str]]:
        return [(case.file, case.offset, case.expected) for case in cases]

    again = draw_cases(world.folders, world.index, "cross-file", COUNT, 1)
    assert places(again) == places(world.cross)
    other = draw_cases(world.folders, world.index, "cross-file", COUNT, 2)
    assert places(other) != places(world.cross)


@pytest.mark.parametrize("mode", CONTEXT_MODES)
@pytest.mark.parametrize("budget", [300, 1000])
def test_every_mode_keeps_within_the_budget_and_shows_no_answer(
    world: World, mode: Mode, budget: int
) -> None:
    for case in world.cross:
        context = make_context(mode, case, world.index, budget, quarter)
        prompt = prompt_as_text(completion_prompt(context))
        assert sum(quarter([section.text])[0] for section in context.sections) <= budget
        assert context.tokens <= budget
        prefix, suffix = (item.text for item in context.sections[-2:])
        assert case.text[: case.offset].endswith(prefix)
        assert case.text[case.offset :].startswith(suffix)
        others = [item for item in context.sections if item.kind not in ("prefix", "suffix")]
        assert bool(others) <= (mode != "a")
        if case.shape == "block":
            assert case.expected not in prompt


async def test_answers_are_scored_and_known_ones_are_not_asked_for_again(world: World) -> None:
    cases = world.cross[:3]
    expected = {case.text[case.offset - 20 : case.offset]: case.expected for case in cases}

    def answer(request: CompletionRequest) -> str:
        prompt = prompt_as_text(request.prompt)
        before = prompt.split("<fim_suffix>")[0]
        right = next(text for end, text in expected.items() if before.endswith(end))
        return right if request.document.endswith("c") else "pass"

    engine = ScriptedEngine(answer)
    outcomes = await run_cases(engine, world.index, cases, budget=900, modes=["a", "c"])
    assert [(item.case, item.mode, item.exact) for item in outcomes] == [
        (number, mode, mode == "c") for number in range(3) for mode in ("a", "c")
    ]
    assert {item.mode: item.exact for item in summaries(outcomes)} == {"a": 0.0, "c": 1.0}
    asked = len(engine.requests)
    again = await run_cases(
        engine, world.index, cases, budget=900, modes=["a", "c"], known=outcomes
    )
    assert again == outcomes
    assert len(engine.requests) == asked


def test_packages_that_are_not_installed() -> None:
    with pytest.raises(UsageError, match="None of the packages"):
        copy_packages(["no_such_package"], Path("unused"))


@pytest.mark.parametrize(
    ("expected", "answer", "similarity"),
    [("return a", "return a", 1.0), ("abcd", "abxd", 0.75), ("abc", "", 0.0), ("", "", 1.0)],
)
def test_scores(expected: str, answer: str, similarity: float) -> None:
    assert edit_similarity(expected, answer) == similarity
    assert is_exact(expected, answer) == (expected == answer)


def test_only_as_many_lines_as_were_masked_count() -> None:
    assert normalised("  a = 1  \nb = 2\nc = 3", 2) == "a = 1\nb = 2"


@pytest.mark.model
async def test_the_real_model_fills_in_within_the_budget(
    world: World, real_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(real_home))
    budget = 512
    with ended_engine(real_home):
        engine = LocalEngine()
        try:
            cases = [*world.cross[:4], *world.inside[:4]]
            outcomes = await run_cases(engine, world.index, cases, budget=budget, modes=["a", "c"])
        finally:
            await engine.aclose()
    assert len(outcomes) == 16
    assert all(item.prompt_tokens <= budget for item in outcomes)
    # Counted by the model's own tokenizer, what a prompt costs is what its sections say, but for
    # what is typed of the line: that belongs to the answer.
    lines: dict[tuple[str, int], str] = {
        (case.kind, number): case.text[: case.offset].rpartition("\n")[2]
        for group in (cases[:4], cases[4:])
        for number, case in enumerate(group)
    }
    for item in outcomes:
        sections = sum(item.sections.values())
        least = sections - 8 - len(lines[item.kind, item.case].encode())
        assert least <= item.prompt_tokens <= sections + LAYOUT_TOKENS
    assert max(item.similarity for item in outcomes) > 0.5
