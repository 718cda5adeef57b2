"""``fimble bench …``: measurements that anyone can repeat."""

from __future__ import annotations

import importlib

import click

__all__ = ["command"]

#: Measurement → module, imported when it runs.
BENCHMARKS = {
    "context": "fimble.cli.bench_context",
    "edit": "fimble.cli.bench_edit",
    "infill": "fimble.cli.bench_infill",
    "load": "fimble.cli.bench_load",
    "typing": "fimble.cli.bench_typing",
}


class _LazyBench(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(BENCHMARKS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in BENCHMARKS:
            return None
        command = importlib.import_module(BENCHMARKS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command


@click.group("bench", cls=_LazyBench)
def command() -> None:
    """Measure completions and contexts on this machine."""
