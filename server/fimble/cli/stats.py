"""``fimble stats``: what suggestions were worth, from the numbers kept on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import click

from fimble.assist import statistics_store
from fimble.assist.statistics_report import report
from fimble.assist.statistics_store import KEPT_DAYS
from fimble.cli.output import echo_json, json_option

__all__ = ["command"]

_DEFAULT_DAYS = 30


@click.command()
@click.option(
    "--days",
    type=click.IntRange(1, KEPT_DAYS),
    default=_DEFAULT_DAYS,
    show_default=True,
    help="Today and so many days before it, less one.",
)
@click.option("--clear", is_flag=True, help="Delete all that was counted.")
@json_option
def command(days: int, clear: bool, as_json: bool) -> None:
    """Show how many suggestions were shown and accepted, and how long they took.

    The numbers are kept on this machine only, for 90 days, without any text or file name; the
    setting `statistics` switches them off. Editors' windows write them every few seconds.

    \b
    Example:
      fimble stats --days 7
    """
    if clear:
        _clear(as_json)
        return
    today = date.today()
    since = today - timedelta(days=days - 1)
    found = report(statistics_store.read(since))
    if as_json:
        head = {"days": days, "from": since.isoformat(), "to": today.isoformat()}
        echo_json({**head, **found})
        return
    click.echo(f"{since.isoformat()} to {today.isoformat()}")
    _print_sums(found["total"])
    for title in ("model", "language", "day"):
        _print_table(title, found[f"by_{title}"])


def _clear(as_json: bool) -> None:
    statistics_store.clear()
    if as_json:
        echo_json({"cleared": True})
    else:
        click.echo("The statistics are deleted.")


def _print_sums(sums: Mapping[str, Any]) -> None:
    shown, part, kept = sums["shown"], sums["partially_accepted"], sums["kept"]
    answers, tokens = sums["answers"], sums["prompt_tokens"]
    still = kept["unchanged"] + kept["mostly"]
    lines = [
        ("suggestions shown", f"{shown:,}"),
        ("  accepted", _share(sums["accepted"], shown)),
        (
            "  accepted in part",
            f"{_share(part['suggestions'], shown)}: {part['words']:,} words, "
            f"{part['lines']:,} lines",
        ),
        ("  typed by hand", _share(sums["typed"], shown)),
        ("  dismissed", _share(sums["dismissed"], shown)),
        (
            f"still there after {kept['after_seconds']} s",
            f"{_share(still, kept['measured'])} of {kept['measured']:,}: "
            f"{kept['unchanged']:,} unchanged, {kept['mostly']:,} mostly",
        ),
        ("answers", ", ".join(f"{number:,} from {name}" for name, number in _named(answers))),
        ("from key to answer", _latency(sums["latency_ms"]["keystroke"])),
        ("from request to answer", _latency(sums["latency_ms"]["request"])),
        ("model calls", f"{sums['model_calls']:,}"),
        ("prompt tokens", f"{tokens['computed']:,} computed, {tokens['reused']:,} reused"),
    ]
    for name, value in lines:
        click.echo(f"{name:<24}{value}")


def _named(answers: Mapping[str, int]) -> list[tuple[str, int]]:
    words = {"memory": "memory", "ahead": "what was made ahead", "engine": "the engine"}
    return [(words[name], number) for name, number in answers.items()]


def _share(number: int, of: int) -> str:
    return f"{number:,} ({100 * number / of:.0f} %)" if of else f"{number:,}"


def _latency(latency: Mapping[str, Any]) -> str:
    if not latency["count"]:
        return "none measured"
    return f"p50 {latency['p50']:.0f} ms, p95 {latency['p95']:.0f} ms"


def _print_table(title: str, groups: Mapping[str, Any]) -> None:
    if not groups:
        return
    width = max(len(title), *map(len, groups)) + 2
    click.echo(f"\n{title:<{width}}{'shown':>8}{'accepted':>10}{'p95 ms':>8}{'calls':>8}")
    for name, sums in groups.items():
        p95 = sums["latency_ms"]["request"]["p95"]
        click.echo(
            f"{name:<{width}}{sums['shown']:>8,}{sums['accepted']:>10,}"
            f"{'-' if p95 is None else format(p95, '.0f'):>8}{sums['model_calls']:>8,}"
        )
