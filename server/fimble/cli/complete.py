"""``fimble complete FILE:LINE:COL``: one completion, for people, scripts and bug reports."""

from __future__ import annotations

import asyncio

import click

from fimble.assist.complete_file import CompletionResult, complete_in_file, parse_place
from fimble.assist.settings import CompletionSettings
from fimble.cli.engine_events import engine_for
from fimble.cli.output import echo_json, json_option, provider_option, readable, say

__all__ = ["command"]


@click.command()
@click.argument("place", metavar="FILE:LINE:COL")
@click.option("--model", metavar="NAME|PATH", default="", help="The model package to use.")
@provider_option
@click.option(
    "--max-tokens",
    type=click.IntRange(1, 1024),
    default=CompletionSettings().max_tokens,
    show_default=True,
    help="The longest answer, in tokens.",
)
@click.option("--explain", is_flag=True, help="Show what the prompt was made of.")
@json_option
def command(
    place: str, model: str, provider: str, max_tokens: int, explain: bool, as_json: bool
) -> None:
    """Print what would be inserted in a file at a line and column (both begin at 1).

    Uses the engine that is running, or starts one.

    \b
    Example:
      fimble complete app.py:12:5 --explain
    """
    path, line, column = parse_place(place)
    settings = CompletionSettings(max_tokens=max_tokens)

    async def run() -> CompletionResult:
        engine = engine_for("completion", model, provider)
        try:
            return await complete_in_file(engine, path, line, column, settings)
        finally:
            await engine.aclose()

    result = asyncio.run(run())
    if as_json:
        echo_json(result.to_json(explain=explain))
        return
    if explain:
        _print_sections(result)
    click.echo(readable(result.suggestion.text))
    _say_cost(result)


def _print_sections(result: CompletionResult) -> None:
    context = result.suggestion.context
    used = sum(section.tokens for section in context.sections)
    click.echo(f"prompt: {used} of {context.budget_tokens} tokens")
    if result.suggestion.layout == "chat":
        click.echo(f"{result.suggestion.model} is a chat model: asked by the fall-back prompt")
    for section in context.sections:
        title = f"── {section.kind}: {section.path} ({section.tokens} tokens; {section.reason})"
        click.echo(click.style(readable(title), fg="cyan"))
        click.echo(readable(section.text))
    typed = result.suggestion.typed
    if typed:
        title = "── typed: the line so far, which the answer continues"
        click.echo(click.style(readable(title), fg="cyan"))
        click.echo(readable(typed))
    for left_out in context.left_out:
        click.echo(readable(f"left out: {left_out.path} ({left_out.reason})"))
    click.echo(click.style("── suggestion", fg="cyan"))


def _say_cost(result: CompletionResult) -> None:
    usage = result.suggestion.usage
    say(
        click.style(
            f"{result.suggestion.model} on {result.suggestion.provider}: "
            f"{usage.reused_tokens} of {usage.prompt_tokens} prompt tokens reused, "
            f"{usage.completion_tokens} generated, {result.total_ms:.0f} ms",
            dim=True,
        )
    )
