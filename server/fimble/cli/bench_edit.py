"""``fimble bench edit``: what a model makes of edits, and that none damages a file."""

from __future__ import annotations

import asyncio

import click

from fimble.bench.edit import EditScore, run_edits, summary
from fimble.bench.edit_cases import EditCase, draw_edit_cases
from fimble.cli.output import echo_json, json_option, say
from fimble.engine.client import LocalEngine

__all__ = ["command"]


@click.command("edit")
@click.option(
    "--tasks",
    type=click.IntRange(1, 500),
    default=48,
    show_default=True,
    help="How many tasks.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Which tasks are drawn.")
@click.option("--model", metavar="NAME|PATH", default="", help="The model package to use.")
@json_option
def command(tasks: int, seed: int, model: str, as_json: bool) -> None:
    """Let the model document, annotate, correct and change real code, and see what comes of it.

    Code is taken from the standard library and installed packages, stripped or broken. Whether
    a task is solved is told by syntax trees or by running the result: code that a model wrote
    runs on this machine, in a process of its own. Exits with 1 if a file was damaged.

    \b
    Example:
      fimble bench edit --tasks 8
    """
    cases = draw_edit_cases(tasks, seed)
    say(f"{len(cases)} tasks")
    scores = asyncio.run(_run(model, cases))
    found = summary(scores)
    if as_json:
        echo_json({"seed": seed, **found})
    else:
        for kind, shares in found["kinds"].items():
            click.echo(_line(kind, shares))
        click.echo(_line("all", found))
    if found["damaged"]:
        click.get_current_context().exit(1)


async def _run(model: str, cases: list[EditCase]) -> list[EditScore]:
    engine = LocalEngine(model=model)

    def note(score: EditScore) -> None:
        detail = f" ({score.detail})" if score.detail else ""
        say(f"{score.seconds:6.1f} s  {score.result}{detail}: {score.task}, {score.name}")

    try:
        return await run_edits(engine, cases, note)
    finally:
        await engine.aclose()


def _line(kind: str, shares: dict[str, float]) -> str:
    return (
        f"{kind:12} tasks {shares['tasks']:3}  solved {shares['share_solved']:6.1%}  "
        f"refused {shares['share_refused']:6.1%}  damaged {shares['share_damaged']:6.1%}"
    )
