"""``fimble bench context``: what indexing and assembling cost on this machine."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

import click

from fimble.bench.context_cost import measure_context
from fimble.bench.packages import make_workspace
from fimble.cli.output import echo_json, json_option, say

__all__ = ["command"]


@click.command("context")
@click.option(
    "--files",
    type=click.IntRange(1, 100_000),
    default=10_000,
    show_default=True,
    help="How many source files the workspace has at most.",
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Measure this folder instead of one made from what is installed.",
)
@click.option(
    "--budget",
    type=click.IntRange(64, 32_768),
    default=2048,
    show_default=True,
    help="Tokens of the contexts that are assembled.",
)
@json_option
def command(files: int, workspace: Path | None, budget: int, as_json: bool) -> None:
    """Measure indexing, restarting, assembling and typing in a large workspace.

    Source files are taken from Python's library and the installed packages. No model is used.

    \b
    Example:
      fimble bench context --files 1000
    """
    with tempfile.TemporaryDirectory(prefix="fimble-bench-") as temporary:
        root = Path(temporary).resolve()
        folder = workspace or root / "workspace"
        if workspace is None:
            say("making a workspace")
            make_workspace(folder, files)
        cost = asdict(measure_context(folder.resolve(), root / "index", budget, say))
    if as_json:
        echo_json(cost)
        return
    for name, value in cost.items():
        click.echo(f"{name.replace('_', ' '):28} {value}")
