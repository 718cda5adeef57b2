"""``fimble bench typing``: what typing with suggestions is like, and what it costs."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fimble.bench.packages import PACKAGES
from fimble.bench.player import Played
from fimble.bench.typing import Figures, compare, figures, play_ours, play_peer, with_sessions
from fimble.cli.output import echo_json, json_option, say
from fimble.errors import UsageError
from fimble.models.catalogue import DEFAULT_MODEL
from fimble.models.store import Store

__all__ = ["command"]

_ROWS = {
    "keystroke to suggestion, p50 (ms)": ("latency_ms", "p50"),
    "keystroke to suggestion, p95 (ms)": ("latency_ms", "p95"),
    "prompt tokens computed a keystroke, p50": ("computed_tokens_per_keystroke", "p50"),
    "prompt tokens computed a keystroke, p95": ("computed_tokens_per_keystroke", "p95"),
    "prompt tokens computed in all": ("computed_tokens",),
    "model calls": ("model_calls",),
    "suggestions shown": ("shown",),
    "suggestions right": ("right",),
    "suggestions accepted": ("accepted",),
    "keystrokes": ("keystrokes",),
}


@click.command("typing")
@click.option(
    "--sessions",
    type=click.IntRange(1, 200),
    default=1,
    show_default=True,
    help="How many files are typed in.",
)
@click.option(
    "--keystrokes",
    type=click.IntRange(40, 2000),
    default=120,
    show_default=True,
    help="Keys of a session at most.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Which sessions are drawn.")
@click.option(
    "--pace",
    type=click.FloatRange(0.1, 20.0),
    default=1.0,
    show_default=True,
    help="Type so many times as slowly, such as on a machine that has other things to do.",
)
@click.option(
    "--packages",
    default=",".join(PACKAGES),
    show_default=True,
    help="Installed packages to take the files from.",
)
@click.option(
    "--peer",
    type=click.Choice(["llama.cpp"]),
    help="Play the same sessions with llama.vim's way over llama.cpp (extra bench-peer).",
)
@click.option(
    "--gguf",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The peer's weights: the GGUF file that the package was made from.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    default=None,
    help="Threads of the peer (default: the machine's processors, as for fimble).",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep every keystroke in this file, as JSON. It has the typed text.",
)
@click.option(
    "--model", metavar="NAME|PATH", default=DEFAULT_MODEL, show_default=True, help="The package."
)
@json_option
def command(
    sessions: int, keystrokes: int, seed: int, pace: float, packages: str, peer: str | None,
    gguf: Path | None, threads: int | None, trace: Path | None, model: str, as_json: bool,
) -> None:  # fmt: skip
    """Type real code, key by key at human speed, and measure the suggestions.

    Functions of installed packages are taken out of their files and typed again, with pauses,
    typing errors, a jump to the imports and back, through the real server over standard
    streams, with an engine of its own. A suggestion that is right is accepted once it has been
    in view for 0.3 s. It is right if it completes the line exactly, blanks at its end aside;
    lines of which fewer than 4 characters are missing do not count. A keystroke's time ends
    when a suggestion is in view for what then stands there, be it after more keystrokes; where
    the answer is that there is none, it has no time. Prompt tokens count as computed between a
    keystroke and the next one, also for work that was given up or done ahead.

    The peer plays the same sessions afterwards, with llama.vim's default settings.

    \b
    Example:
      fimble bench typing --sessions 3 --json
    """
    package = Store().find(model).path
    weights = _weights(gguf) if peer else None
    names = [name for name in packages.split(",") if name]
    ours, theirs = asyncio.run(
        _run(
            package,
            weights,
            threads or os.cpu_count() or 1,
            names,
            sessions,
            keystrokes,
            seed,
            pace,
        )
    )
    if trace is not None:
        kept = {"ours": asdict(ours), "peer": None if theirs is None else asdict(theirs)}
        trace.write_text(json.dumps(kept, indent=1), encoding="utf-8", newline="\n")
    _show(figures(ours), None if theirs is None else figures(theirs), as_json)


async def _run(
    package: Path, weights: Path | None, threads: int, names: list[str], count: int,
    keystrokes: int, seed: int, pace: float,
) -> tuple[Played, Played | None]:  # fmt: skip
    async with with_sessions(names, count, keystrokes, seed) as (workspace, sessions):
        sessions = [session.at_pace(pace) for session in sessions]
        say("fimble")
        ours = await play_ours(package, workspace, sessions, say)
        if weights is None:
            return ours, None
        say("llama.vim over llama.cpp")
        return ours, await play_peer(weights, threads, sessions, seed, say)


def _weights(gguf: Path | None) -> Path:
    """The peer's GGUF file: the one that is given, or one that an interrupted pull left."""
    if gguf is not None:
        return gguf
    kept = sorted(Store().partial(DEFAULT_MODEL).glob("checked-*/*.gguf"))
    if not kept:
        raise UsageError(
            "The peer needs the model's GGUF file, which a pull does not keep.",
            next_step="Give it with --gguf FILE.",
        )
    return kept[0]


def _show(ours: Figures, peer: Figures | None, as_json: bool) -> None:
    found = compare(ours, peer)
    if as_json:
        echo_json(found)
        return
    columns = list(found)
    click.echo(f"{'':42}" + "".join(f"{column:>10}" for column in columns))
    for title, path in _ROWS.items():
        cells = [_cell(found[column], path) for column in columns]
        click.echo(f"{title:42}" + "".join(f"{cell:>10}" for cell in cells))


def _cell(figure: Any, path: tuple[str, ...]) -> str:
    for name in path:
        figure = figure.get(name) if isinstance(figure, dict) else None
    return "" if figure is None else f"{figure:g}"
