"""``fimble context FILE:LINE:COL``: what a prompt is made of, and why, without a model."""

from __future__ import annotations

from dataclasses import asdict

import click

from fimble.assist.complete_file import parse_place
from fimble.assist.context_file import context_in_file
from fimble.assist.settings import CompletionSettings
from fimble.cli.output import echo_json, json_option, readable
from fimble_context.assembly import Context

__all__ = ["command"]


@click.command()
@click.argument("place", metavar="FILE:LINE:COL")
@click.option(
    "--budget",
    type=click.IntRange(64, 131_072),
    default=CompletionSettings().max_prompt_tokens,
    show_default=True,
    help="The most tokens that the sections may have, as estimated.",
)
@json_option
def command(place: str, budget: int, as_json: bool) -> None:
    """Show what a prompt at a line and column (both begin at 1) would be made of, and why.

    No model is needed: tokens are estimated, a little high, as a third of the text's bytes.

    \b
    Example:
      fimble context app.py:12:5 --budget 1024
    """
    path, line, column = parse_place(place)
    context = context_in_file(path, line, column, budget)
    if as_json:
        echo_json(
            {
                "sections": [asdict(section) for section in context.sections],
                "budget_tokens": context.budget_tokens,
                "estimated_tokens": context.tokens,
                "repository": context.repository,
                "left_out": [asdict(item) for item in context.left_out],
            }
        )
        return
    _print(context)


def _print(context: Context) -> None:
    click.echo(f"about {context.tokens} of {context.budget_tokens} tokens")
    for section in context.sections:
        title = (
            f"── {section.kind}: {section.path} (about {section.tokens} tokens; {section.reason})"
        )
        click.echo(click.style(readable(title), fg="cyan"))
        click.echo(readable(section.text))
    for item in context.left_out:
        click.echo(readable(f"left out: {item.path} ({item.reason})"))
