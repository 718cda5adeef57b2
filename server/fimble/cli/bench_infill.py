"""``fimble bench infill``: how good completions are, by how their prompts are made."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Literal, cast

import click

from fimble.bench.cases import SHAPES, Case, Shape, draw_cases
from fimble.bench.confidence_report import confidence_json, confidence_table
from fimble.bench.cursor_cases import draw_cursor_cases
from fimble.bench.infill import (
    CONTEXT_MODES,
    MODES,
    Mode,
    Outcome,
    Summary,
    run_cases,
    summaries,
    to_json,
)
from fimble.bench.layouts import LAYOUTS
from fimble.bench.packages import PACKAGES, copy_packages
from fimble.cli.output import echo_json, json_option, say
from fimble.engine.client import LocalEngine
from fimble.errors import UsageError
from fimble_context.index import WorkspaceIndex

__all__ = ["command"]

_INDEX_SECONDS = 600.0
_NAMES = {
    "a": "prefix and suffix",
    "b": "ring of chunks",
    "c": "fimble",
    "plain": "cursor's prefix",
    "anchored": "line's, typed behind",
    "healed": "the same, healed",
}


@click.command("infill")
@click.option(
    "--cases",
    type=click.IntRange(1, 5000),
    default=100,
    show_default=True,
    help="How many cases of each kind; of cursor, of all its positions together.",
)
@click.option(
    "--budget",
    type=click.IntRange(128, 32_768),
    default=1024,
    show_default=True,
    help="Tokens a prompt, the same for all modes.",
)
@click.option(
    "--modes",
    default="",
    help="By what is in a prompt: a (prefix and suffix only), b (a ring of line chunks), c "
    "(fimble's). By its layout, as the server makes suggestions: plain, anchored, healed. Default: "
    f"{','.join(CONTEXT_MODES)}, and with --kind cursor {','.join(LAYOUTS)}.",
)
@click.option(
    "--kind",
    type=click.Choice(["cross", "in-file", "both", "cursor", "all"]),
    default="both",
    show_default=True,
    help="Whether masked code uses names from other files; or cursor: the rest of a line after a "
    "space, inside a word, after a bracket and at a line start, by turns.",
)
@click.option(
    "--shape",
    type=click.Choice(["mixed", *dict.fromkeys(SHAPES)]),
    default="mixed",
    show_default=True,
    help="What is masked of cross-file and in-file cases: the rest of a line from a name on (the "
    "one from another file, if there is one); a whole line, or most of it; a block of lines. "
    "mixed: half of the cases rest, a quarter each line and block, by turns; the report has each "
    "shape by itself.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Which cases are drawn.")
@click.option(
    "--packages",
    default=",".join(PACKAGES),
    show_default=True,
    help="Where the code comes from: installed Python packages; npm:NAME@VERSION, which npm "
    "fetches once; an npm package's .tgz file. Nothing of them is run.",
)
@click.option(
    "--share",
    type=click.IntRange(0, 90),
    default=None,
    help="Percent of the budget that other files get at least, in modes c, plain, anchored and "
    "healed (default: by budget).",
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps outcomes as they come: a run that was broken off goes on from it.",
)
@click.option("--model", metavar="NAME|PATH", default="", help="The model package to use.")
@json_option
def command(
    cases: int, budget: int, modes: str, kind: str, shape: Literal["mixed"] | Shape, seed: int,
    packages: str, share: int | None, resume: Path | None, model: str, as_json: bool,
) -> None:  # fmt: skip
    """Fill masked lines and blocks of real code with the model, and compare prompts.

    Code is taken from installed packages, unless others are named. Every mode gets the same
    cases and budget, and the same seed draws the same cases.

    Modes by layout also tell what the setting completion.minConfidence is worth: from which
    confidence on how many suggestions are shown (coverage), and how many of those are right
    (precision). The last line names the threshold that drops the most wrong suggestions while
    at most 5 % of the right ones are lost. Right is a suggestion that is what was there, as far
    as both go.

    \b
    Example:
      fimble bench infill --cases 8 --budget 1024
      fimble bench infill --kind cross --shape rest --cases 100
      fimble bench infill --kind cursor --modes healed --packages npm:rxjs@7.8.2
    """
    wanted = _modes(modes or ",".join(LAYOUTS if kind == "cursor" else CONTEXT_MODES))
    with tempfile.TemporaryDirectory(prefix="fimble-bench-") as temporary:
        folder = Path(temporary).resolve() / "workspace"
        folders = copy_packages([name for name in packages.split(",") if name], folder)
        index = WorkspaceIndex([folder], Path(temporary) / "index")
        index.start()
        try:
            if not index.wait(_INDEX_SECONDS):
                raise UsageError("The packages could not be indexed in time.")
            drawn: list[Case] = []
            shapes = SHAPES if shape == "mixed" else (shape,)
            if kind in ("cross", "both", "all"):
                drawn += draw_cases(folders, index, "cross-file", cases, seed, shapes)
            if kind in ("in-file", "both", "all"):
                drawn += draw_cases(folders, index, "in-file", cases, seed, shapes)
            if kind in ("cursor", "all"):
                drawn += draw_cursor_cases(folders, index, cases, seed)
            say(f"{len(drawn)} cases, {len(wanted)} modes, {budget} tokens a prompt")
            outcomes = asyncio.run(_run(model, index, drawn, budget, wanted, share, resume))
        finally:
            index.close()
    if as_json:
        made = {**to_json(outcomes), "confidence": confidence_json(outcomes)}
        echo_json({"budget": budget, "seed": seed, "share": share, **made})
        return
    for summary in summaries(outcomes):
        click.echo(_line(summary))
    for line in confidence_table(outcomes):
        click.echo(line)


async def _run(
    model: str,
    index: WorkspaceIndex,
    cases: list[Case],
    budget: int,
    modes: tuple[Mode, ...],
    share: int | None,
    resume: Path | None,
) -> list[Outcome]:
    engine = LocalEngine(model=model)
    known = _known(resume)
    done = 0

    def note(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        if resume is not None:
            with resume.open("a", encoding="utf-8", newline="\n") as file:
                file.write(json.dumps(asdict(outcome)) + "\n")
        if done % (10 * len(modes)) == 0:
            say(f"{done} of {len(cases) * len(modes)} prompts")

    try:
        return await run_cases(
            engine, index, cases, budget=budget, modes=modes, share=share, known=known, each=note
        )
    finally:
        await engine.aclose()


def _known(resume: Path | None) -> list[Outcome]:
    if resume is None or not resume.exists():
        return []
    with resume.open(encoding="utf-8", newline="") as file:
        return [Outcome(**json.loads(line)) for line in file if line.strip()]


def _modes(text: str) -> tuple[Mode, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in MODES]
    if unknown or not names:
        raise UsageError(
            f"“{text}” names no modes.",
            next_step=f"Write some of {', '.join(MODES)}, such as a,c.",
        )
    return cast("tuple[Mode, ...]", names)


def _line(summary: Summary) -> str:
    part = summary.shape or summary.position or summary.language or "all"
    return (
        f"{summary.kind:10} {part:16} {summary.mode:8} {_NAMES[summary.mode]:20} "
        f"cases {summary.cases:4}  exact {summary.exact:6.1%}  "
        f"similarity {summary.similarity:6.1%}  prompt {summary.prompt_tokens:7.0f} tokens"
    )
