"""``fimble doctor``: what is in the way on this machine, and the next step for each."""

from __future__ import annotations

import click

from fimble.cli.output import echo_json, json_option
from fimble.doctor import Report, examine

__all__ = ["command"]

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Check runtime, devices, drivers, packages, memory and the engine on this machine.

    Exits with 1 if anything fails. Changes nothing.

    \b
    Example:
      fimble doctor
    """
    report = examine()
    if as_json:
        echo_json(report.to_json())
    else:
        _print(report)
    click.get_current_context().exit(0 if report.ok else 1)


def _print(report: Report) -> None:
    width = max(len(check.name) for check in report.checks)
    for check in report.checks:
        status = click.style(f"{check.status:4}", fg=_COLOURS[check.status], bold=True)
        click.echo(f"{status}  {check.name:{width}}  {check.detail}")
        if check.next_step:
            click.echo(f"{'':{width + 6}}  → {check.next_step}")
    counts = report.to_json()["counts"]
    click.echo(f"\n{counts['fail']} failed, {counts['warn']} doubtful, {counts['ok']} fine.")
