"""Cases by cursor position and in other languages, and suggestions by layout."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from click.testing import CliRunner

from fimble.assist.layout import LAYOUT_TOKENS
from fimble.bench.cases import Case, draw_cases
from fimble.bench.cursor_cases import POSITIONS, draw_cursor_cases
from fimble.bench.infill import Outcome, run_cases, summaries
from fimble.bench.layouts import LAYOUTS
from fimble.bench.packages import copy_packages
from fimble.cli.app import cli
from fimble.engine.protocol import CompletionRequest, Text
from fimble.errors import ModelError, UsageError
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import Document, text_kind
from tests.lsp.process import ended_engine
from tests.support.scripted_engine import Answer, ScriptedEngine, prompt_as_text
from tests.support.tiny import make_tiny_package

BUDGET = 600

SHAPES = """\
// Shapes, by their sizes.

export interface Shape {
  name: string;
  area(): number;
}

export function squareOf(side: number): Shape {
  const name = "square";
  return { name, area: () => side * side };
}

export function circleOf(radius: number): Shape {
  const name = "circle";
  return { name, area: () => Math.PI * radius * radius };
}

export function totalArea(shapes: Shape[]): number {
  let total = 0;
  for (const shape of shapes) {
    total += shape.area();
  }
  return total;
}
"""

REPORT = """\
import { Shape, circleOf, squareOf, totalArea } from "./shapes";

// Reports are lines of text.

export interface Line {
  text: string;
  width: number;
}

function lineOf(text: string): Line {
  return { text, width: text.length };
}

export function describe(width: number): Line {
  const shapes: Shape[] = [];
  const round = circleOf(width / 2);
  const flat = squareOf(width * 2);
  shapes.push(round, flat);
  const whole = totalArea(shapes);
  const line = lineOf("total " + whole);
  return line;
}

export function longest(lines: Line[]): number {
  return Math.max(...lines.map((line) => line.width));
}
"""


def npm_package(path: Path) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {"shapes": SHAPES, "report": REPORT}.items():
            member = tarfile.TarInfo(f"package/src/{name}.ts")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


class World:
    """A Python and a TypeScript package, indexed."""

    def __init__(self, folder: Path) -> None:
        self.tarball = npm_package(folder / "drawing-1.0.0.tgz")
        names = ["click", str(self.tarball)]
        self.folders = copy_packages(names, folder / "workspace")
        self.index = WorkspaceIndex([folder / "workspace"], folder / "index")
        self.index.start()
        assert self.index.wait(120)
        self.python, self.typescript = (
            draw_cursor_cases([folder], self.index, 8, 1) for folder in self.folders
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("bench"))
    yield world
    world.index.close()


def lines_around(case: Case) -> tuple[str, str]:
    """What of the cursor's line is left of it, and what was right of it."""
    return case.text[: case.offset].rpartition("\n")[2], case.expected


def test_the_positions_take_turns_and_are_what_they_are_called(world: World) -> None:
    for cases in (world.python, world.typescript):
        assert [case.position for case in cases] == [*POSITIONS, *POSITIONS]
        for case in cases:
            typed, rest = lines_around(case)
            assert rest.strip()
            assert "\n" not in rest
            match case.position:
                case "after a space":
                    assert typed.strip()
                    assert typed.endswith(" ")
                case "inside a word":
                    assert typed[-1].isalpha()
                    assert rest[0].isalpha()
                case "after a bracket":
                    assert typed[-1] in "([{"
                case "at a line start":
                    assert typed.isspace()


def test_what_is_masked_is_code_and_was_there(world: World) -> None:
    for case in (*world.python, *world.typescript):
        whole = case.file.read_text(encoding="utf-8")
        assert case.text[: case.offset] + case.expected + case.text[case.offset :] == whole
        assert text_kind(Document(whole, path=str(case.file)), case.offset) == "code"


def test_the_same_seed_draws_the_same_places_and_fewer_are_a_beginning_of_more(
    world: World,
) -> None:
    def places(cases: Sequence[Case]) -> list[tuple[Path, int]]:
        return [(case.file, case.offset) for case in cases]

    folder = world.folders[:1]
    assert places(draw_cursor_cases(folder, world.index, 5, 1)) == places(world.python[:5])
    assert places(draw_cursor_cases(folder, world.index, 8, 2)) != places(world.python)
    assert len(set(places(world.python))) == 8


def test_cross_file_cases_in_typescript(world: World) -> None:
    (case, *_) = draw_cases(world.folders[1:], world.index, "cross-file", 3, 1)
    assert case.language == "typescript"
    assert case.file.name == "report.ts"
    assert set(case.names) <= {"circleOf", "squareOf", "totalArea", "Shape"}
    assert all(name in case.expected for name in case.names)
    assert case.names
    inside = draw_cases(world.folders[1:], world.index, "in-file", 3, 1)
    assert all(not case.names for case in inside)


class HealedModel(ScriptedEngine):
    """Answers rightly where it is told to heal, and as an unhealed model does elsewhere."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        super().__init__(self._answer, piece=4)
        self.info = replace(self.info, healing=True, prefill_tokens_per_s=1.0)

    def _answer(self, request: CompletionRequest) -> Answer:
        assert request.logprobs == 0
        prompt = prompt_as_text(request.prompt)
        above, _, rest = prompt.partition("<fim_suffix>")
        suffix, _, middle = rest.partition("<fim_middle>")
        # A skeleton of what is further up may stand in front.
        near = (above + middle).rpartition("<fim_prefix>")[2][-60:]
        (case,) = (
            case
            for case in self._cases
            if case.text[: case.offset].endswith(near)
            and case.text[case.offset :].startswith(suffix)
        )
        if request.heal:
            return Answer(case.expected, mean_logprob=log(0.9))
        return Answer("1" + case.expected, mean_logprob=log(0.4))


@pytest.mark.parametrize("language", ["python", "typescript"])
async def test_layouts_differ_in_layout_and_healing_alone(world: World, language: str) -> None:
    cases = world.python[:4] if language == "python" else world.typescript[:4]
    engine = HealedModel(cases)
    outcomes = await run_cases(engine, world.index, cases, budget=BUDGET, modes=LAYOUTS)
    assert [(item.case, item.mode) for item in outcomes] == [
        (number, mode) for number in range(4) for mode in LAYOUTS
    ]
    requests = iter(engine.requests)
    for case in cases:
        typed, _ = lines_around(case)
        plain, anchored, healed = next(requests), next(requests), next(requests)
        assert not plain.heal
        assert typed == "" or prompt_as_text(plain.prompt).split("<fim_suffix>")[0].endswith(typed)
        assert prompt_as_text(plain.prompt).endswith("<fim_middle>")
        assert anchored.prompt == healed.prompt
        assert list(healed.prompt)[-1] == Text(typed)
        assert (anchored.heal, healed.heal) == (False, True)
        for request in (plain, healed):
            # The scripted tokenizer rounds each text up by itself.
            texts = [part for part in request.prompt if isinstance(part, Text)]
            used = sum(engine.count(part.text) for part in texts)
            assert used <= BUDGET - LAYOUT_TOKENS + len(texts)


async def test_outcomes_tell_right_from_wrong_with_their_confidence(world: World) -> None:
    cases = world.python[:4]
    outcomes = await run_cases(
        HealedModel(cases), world.index, cases, budget=BUDGET, modes=["healed", "anchored"]
    )
    for item in outcomes:
        healed = item.mode == "healed"
        assert item.exact == healed
        assert item.confidence == pytest.approx(0.9 if healed else 0.4)
        assert item.lowest == pytest.approx(item.confidence)
        assert item.answer.endswith(item.expected.rstrip())
    rows = {(item.position, item.mode): (item.cases, item.exact) for item in summaries(outcomes)}
    assert rows == {
        **{("", mode): (4, float(mode == "healed")) for mode in ("healed", "anchored")},
        **{
            (position, mode): (1, float(mode == "healed"))
            for position in POSITIONS
            for mode in ("healed", "anchored")
        },
    }


async def test_languages_have_rows_of_their_own_where_there_are_several(world: World) -> None:
    cases = [*world.python[:2], *world.typescript[:2]]
    outcomes = await run_cases(
        HealedModel(cases), world.index, cases, budget=BUDGET, modes=["healed"]
    )
    rows = {item.language: item.cases for item in summaries(outcomes) if not item.position}
    assert rows == {"": 4, "python": 2, "typescript": 2}


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("", False),
        ("{rest}", True),
        (" {rest}", False),  # what is inserted is one space too many
        ("{rest}x", False),
        ("{rest}  ", True),
    ],
)
async def test_right_is_what_would_be_inserted(world: World, answer: str, right: bool) -> None:
    case = next(case for case in world.python if case.position == "after a space")
    engine = ScriptedEngine([answer.format(rest=case.expected)])
    (outcome,) = await run_cases(engine, world.index, [case], budget=BUDGET, modes=["plain"])
    assert outcome.exact == right
    assert (outcome.lowest is None) == (answer == "")


@pytest.mark.parametrize("layout", ["anchored", "healed"])
async def test_an_engine_that_cannot_go_on_from_a_prompt(world: World, layout: str) -> None:
    engine = ScriptedEngine([""])
    engine.info = replace(engine.info, continuation=False)
    with pytest.raises(ModelError, match="cannot go on"):
        await run_cases(
            engine, world.index, world.python[:1], budget=BUDGET, modes=[layout]  # type: ignore[list-item]
        )  # fmt: skip


def test_the_command_with_an_engine(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    make_tiny_package(home / "models" / "tiny")
    monkeypatch.setenv("FIMBLE_HOME", str(home))
    kept = tmp_path / "kept.jsonl"
    command = [
        "bench", "infill", "--kind", "cursor", "--cases", "4", "--budget", "256",
        "--model", "tiny", "--packages", str(world.tarball), "--resume", str(kept),
    ]  # fmt: skip
    with ended_engine(home):
        first = CliRunner().invoke(cli, [*command, "--json"])
        assert first.exit_code == 0, first.output
        # All of it is known now: no engine is asked for what is printed.
        again = CliRunner().invoke(cli, command)
    found = json.loads(first.stdout)
    outcomes = [Outcome(**json.loads(line)) for line in kept.read_text("utf-8").splitlines()]
    assert len(outcomes) == len(found["outcomes"]) == 4 * len(LAYOUTS)
    assert all(item["prompt_tokens"] <= 256 for item in found["outcomes"])
    assert any(item["logprobs"] for item in found["outcomes"])
    for mode in found["confidence"].values():
        assert mode["cases"] == 4
        assert [point["threshold"] for point in mode["points"]][::25] == [0.0, 0.25, 0.5, 0.75]
        assert mode["best"]["kept"] >= 0.95
    assert again.exit_code == 0
    for position in POSITIONS:
        assert sum(position in line for line in again.stdout.splitlines()) == len(LAYOUTS)
    assert ("precision" in again.stdout) == bool(found["confidence"])


def test_modes_that_there_are_not() -> None:
    result = CliRunner().invoke(cli, ["bench", "infill", "--modes", "healed,x"])
    assert isinstance(result.exception, UsageError)
    assert "healed" in (result.exception.next_step or "")
