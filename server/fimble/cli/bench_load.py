"""``fimble bench load``: what many windows at once get out of one engine."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from fimble.bench.load import run_load
from fimble.cli.output import echo_json, json_option, say
from fimble.errors import UsageError
from fimble.models.catalogue import DEFAULT_MODEL
from fimble.models.store import Store

__all__ = ["command"]

_MOST_EDITORS = 64


def _counts(ctx: click.Context, param: click.Parameter, value: str) -> list[int]:
    counts = [int(each) if each.strip().isdecimal() else 0 for each in value.split(",")]
    if not all(1 <= count <= _MOST_EDITORS for count in counts):
        raise UsageError(
            f"--editors takes numbers from 1 to {_MOST_EDITORS}, not {value!r}.",
            next_step="For example: --editors 1,4,16",
        )
    return counts


@click.command("load")
@click.option(
    "--editors",
    metavar="N[,N…]",
    default="1,4,16",
    show_default=True,
    callback=_counts,
    help="How many windows at once, one run after another.",
)
@click.option(
    "--bursts",
    type=click.IntRange(1, 1000),
    default=20,
    show_default=True,
    help="How often each of them types five keys and waits for the suggestion.",
)
@click.option(
    "--model", metavar="NAME|PATH", default=DEFAULT_MODEL, show_default=True, help="The package."
)
@json_option
def command(editors: list[int], bursts: int, model: str, as_json: bool) -> None:
    """Type in many windows over one engine, with a chat running, and see what each of them gets.

    Each window is a server process of its own with a file of its own, as with real editors. A
    time is that from the last key of a burst to its answer, be it empty. Memory of a window is
    what would be free without its server and its indexer; the engine's is compared with the
    memory plan. Exits with 1 if an answer was lost or came twice.

    \b
    Example:
      fimble bench load --editors 4 --json
    """
    package = Store().find(model)
    runs = []
    for count in editors:
        say(f"{count} {'window' if count == 1 else 'windows'}")
        runs.append(asyncio.run(run_load(package, count, bursts)).to_json())
        if not as_json:
            click.echo(_line(runs[-1]))
    if as_json:
        echo_json({"model": model, "bursts": bursts, "runs": runs})
    if any(run["lost"] or run["doubled"] for run in runs):
        click.get_current_context().exit(1)


def _line(run: dict[str, Any]) -> str:
    times = run["latency_ms"]
    mib = 1 << 20
    return (
        f"editors {run['editors']:3}  p50 {times['p50']:g} ms  p95 {times['p95']:g} ms  "
        f"p99 {times['p99']:g} ms  slowest to fastest {run['fairness']}  "
        f"asked {run['asked']}  lost {run['lost']}  twice {run['doubled']}  "
        f"chat tokens {run['chat_tokens']}  window {run['window_bytes_max'] // mib} MiB  "
        f"engine {run['engine_bytes'] // mib} of {run['engine_planned_bytes'] // mib} MiB"
    )
