"""What commands share when they print: JSON, sizes, progress bars. Progress goes to stderr."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bars

from fimble.controls import without_controls
from fimble.models.genai_config import SETTABLE
from fimble.progress import Progress, ProgressEvent

__all__ = [
    "byte_size",
    "bytes_of",
    "echo_json",
    "json_option",
    "progress_bars",
    "provider_option",
    "readable",
    "say",
]

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
provider_option = click.option(
    "--provider",
    type=click.Choice(SETTABLE, case_sensitive=False),
    callback=lambda context, option, value: value or "",
    metavar="NAME",
    help="What computes, in place of the package's own provider: " + ", ".join(SETTABLE) + ".",
)


def bytes_of(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """For an option's callback: ``12GiB``, ``12G``, ``500M`` or plain bytes; binary units."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,6})?)\s*([kmgt]?)(?:i?b)?", value.strip().lower())
    if not found:
        raise click.BadParameter(f"{value!r} is not a size such as 12GiB.")
    return int(float(found[1]) * _UNITS[found[2]])


def echo_json(value: Any) -> None:
    """Prints one JSON document on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def readable(text: str) -> str:
    """``text`` as it is for a pipe; without what a terminal would obey where it goes to one."""
    return without_controls(text) if sys.stdout.isatty() else text


def say(line: str) -> None:
    """Prints a line for a person, on standard error: standard output is for results."""
    click.echo(line, err=True)


def byte_size(count: int) -> str:
    """``count`` bytes for people, in binary units: ``468.6 MiB``."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")


class _BytesOrCount(ProgressColumn):
    """``12/480 MB  9 MB/s`` for bytes, ``17/291`` for anything else."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = (DownloadColumn(binary_units=True), TransferSpeedColumn())
        self._count = MofNCompleteColumn()

    def render(self, task: Any) -> Any:
        if task.fields.get("unit") != "bytes":
            return self._count.render(task)
        done, speed = (column.render(task) for column in self._bytes)
        return done.append("  ").append_text(speed)


@contextlib.contextmanager
def progress_bars() -> Iterator[Progress]:
    """A progress function that draws one bar a stage while the block runs.

    Where standard error is no terminal, each stage is one line when it begins.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _stage_lines()
        return
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        _BytesOrCount(),
        TimeRemainingColumn(),
        console=console,
    )
    tasks: dict[str, TaskID] = {}

    def draw(event: ProgressEvent) -> None:
        if event.stage not in tasks:
            tasks[event.stage] = bars.add_task(event.stage, total=event.total, unit=event.unit)
        bars.update(tasks[event.stage], completed=event.done, total=event.total)

    with bars:
        yield draw


def _stage_lines() -> Progress:
    seen: set[str] = set()

    def note(event: ProgressEvent) -> None:
        if event.stage not in seen:
            seen.add(event.stage)
            say(f"{event.stage} …")

    return note
