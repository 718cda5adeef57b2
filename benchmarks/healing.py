"""What token healing brings: the rest of a line of real code, by layout and cursor position.

    python benchmarks/healing.py [PACKAGE] [--cases N] [--seed N] [--json]

Three layouts of the same text, each answered greedily up to the line's end:

- plain: prefix up to the cursor, suffix, middle
- anchored: prefix up to the line's start, suffix, middle, then the line up to the cursor
- healed: the same, with the end of the typed text generated again

Right is what equals the rest of the line, but for blanks at its end. Code is taken from
installed packages. PACKAGE is a name or folder; without one it is the default model.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import json
import queue
import random
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fimble.bench.packages import PACKAGES
from fimble.engine.host import ModelHost
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CompletionChunk, CompletionRequest, Control, Segment, Text
from fimble.engine.scheduler import Done, Job, Scheduler
from fimble.errors import FimbleError

LAYOUTS = ("plain", "anchored", "healed")
#: Where the cursor is, by what is left of it in its line and what is right of it.
POSITIONS = {
    "after a space": (re.compile(r"\S $"), re.compile(r"\S")),
    "inside a word": (re.compile(r"\w[A-Za-z]$"), re.compile(r"[A-Za-z]{2}")),
    "after a bracket": (re.compile(r"[(\[{]$"), re.compile(r"[^\s)\]}]")),
    "at a line's start": (re.compile(r"^ {4,}$"), re.compile(r"[A-Za-z]")),
}
_BEFORE, _AFTER = 900, 400
_REST = range(4, 50)


@dataclass(frozen=True, slots=True)
class Case:
    """A place in real code. ``prefix`` ends where the line begins, ``suffix`` begins with
    the line's end; ``typed`` and ``rest`` are the line.
    """

    position: str
    prefix: str
    typed: str
    rest: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer. ``steps`` are the tokens generated inside the typed text."""

    position: str
    layout: str
    right: bool
    steps: int
    computed_tokens: int
    first_text_steps: int
    mean_logprob: float


def draw_cases(count: int, seed: int) -> list[Case]:
    """``count`` places, the positions by turns; the same seed draws the same ones."""
    chance = random.Random(seed)
    files = sorted(_source_files())
    cases: list[Case] = []
    names = list(POSITIONS)
    while len(cases) < count:
        text = chance.choice(files).read_text(encoding="utf-8")
        found = _places(text, names[len(cases) % len(names)])
        if found:
            cases.append(chance.choice(found))
    return cases


def _source_files() -> Iterator[Path]:
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from Path(folder).rglob("*.py")


def _places(text: str, position: str) -> list[Case]:
    left, right = POSITIONS[position]
    prose = _prose_lines(text)
    places = []
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        body = line.rstrip("\r\n")
        if start > _BEFORE // 4 and body.isascii() and number not in prose:
            for column in range(1, len(body)):
                typed, rest = body[:column], body[column:]
                if len(rest) in _REST and left.search(typed) and right.match(rest):
                    before = text[max(0, start - _BEFORE) : start]
                    after = text[start + len(body) :][:_AFTER]
                    # Whole lines, as fimble cuts them.
                    prefix = before[before.find("\n") + 1 :] if len(before) == _BEFORE else before
                    suffix = after[: after.rindex("\n") + 1] if "\n" in after else after
                    places.append(Case(position, prefix, typed, rest, suffix))
        start += len(line)
    return places


def _prose_lines(text: str) -> set[int]:
    """Numbers of lines with comments or parts of longer strings, which are no code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        alone = token.line.strip() == token.string
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and (alone or token.start[0] != token.end[0])
        ):
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


class Asker:
    """The engine's own scheduler and host in this process."""

    def __init__(self, package: str) -> None:
        metrics = Metrics()
        options = EngineOptions(model=package, context_tokens=2048, slots=2)
        self.host = ModelHost(options, metrics)
        self.scheduler = Scheduler(self.host, metrics)

    def ask(self, case: Case, layout: str) -> Outcome:
        """The answer to a case in one of the layouts."""
        request = CompletionRequest(
            _prompt(case, layout),
            max_tokens=32,
            stop=("\n",),
            document=layout,
            heal=layout == "healed",
        )
        events: queue.Queue[Any] = queue.Queue()
        self.scheduler.submit(Job("", request, events.put))
        chunks: list[CompletionChunk] = []
        while not isinstance(event := events.get(), Done):
            if isinstance(event, FimbleError):
                raise event
            chunks.append(event)
        text = "".join(chunk.text for chunk in chunks)
        first = next((chunk for chunk in chunks if chunk.text), chunks[-1])
        assert chunks[-1].usage is not None and first.usage is not None
        return Outcome(
            case.position,
            layout,
            text.rstrip() == case.rest.rstrip(),
            chunks[-1].extra.get("healing_tokens", 0),
            chunks[-1].usage.computed_tokens,
            first.usage.completion_tokens,
            chunks[-1].extra.get("mean_logprob", 0.0),
        )


def _prompt(case: Case, layout: str) -> tuple[Segment, ...]:
    prefix = case.prefix + (case.typed if layout == "plain" else "")
    segments: tuple[Segment, ...] = (
        Control("fim_prefix"),
        Text(prefix),
        Control("fim_suffix"),
        Text(case.suffix),
        Control("fim_middle"),
    )
    return segments if layout == "plain" else (*segments, Text(case.typed))


def table(outcomes: list[Outcome]) -> str:
    """Right answers of all, by position and layout."""
    cases = Counter(each.position for each in outcomes if each.layout == "plain")
    right = Counter((each.position, each.layout) for each in outcomes if each.right)
    lines = [f"{'':20}{'cases':>7}" + "".join(f"{layout:>10}" for layout in LAYOUTS)]
    for position in POSITIONS:
        counts = "".join(f"{right[position, layout]:10}" for layout in LAYOUTS)
        lines.append(f"{position:20}{cases[position]:7}{counts}")
    totals = "".join(
        f"{sum(right[position, layout] for position in POSITIONS):10}" for layout in LAYOUTS
    )
    lines.append(f"{'in all':20}{sum(cases.values()):7}{totals}")
    healed = [each for each in outcomes if each.layout == "healed"]
    steps = sum(each.steps for each in healed) / max(1, len(healed))
    lines.append(f"tokens generated inside the typed text: {steps:.2f} a healed answer")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", nargs="?", default="", help="name or folder")
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    cases = draw_cases(arguments.cases, arguments.seed)
    asker = Asker(arguments.package)
    try:
        outcomes = [asker.ask(case, layout) for case in cases for layout in LAYOUTS]
    finally:
        asker.scheduler.close()
    if arguments.json:
        right = {
            layout: sum(each.right for each in outcomes if each.layout == layout)
            for layout in LAYOUTS
        }
        found = {"cases": len(cases), "seed": arguments.seed, "right": right}
        print(json.dumps({**found, "outcomes": [asdict(each) for each in outcomes]}, indent=2))
    else:
        print(table(outcomes))


if __name__ == "__main__":
    main()
