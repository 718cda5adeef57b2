"""``fimble engine …``: the model process that editors and terminals share."""

from __future__ import annotations

import click

from fimble.cli.output import echo_json, json_option
from fimble.engine import control
from fimble.engine.options import EngineOptions

__all__ = ["command"]


@click.group("engine")
def command() -> None:
    """Start, show and stop the process that runs the model."""


@command.command("start")
@click.option("--model", metavar="NAME|PATH", default="", help="The package to load first.")
@click.option(
    "--context-tokens",
    type=click.IntRange(min=64),
    default=EngineOptions().context_tokens,
    show_default=True,
    help="The longest prompt plus answer; each slot reserves memory for all of it.",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    default=EngineOptions().slots,
    show_default=True,
    help="How many prompts are kept at once.",
)
@json_option
def start_engine(model: str, context_tokens: int, slots: int, as_json: bool) -> None:
    """Start the engine, if it does not run already.

    Editors start it by themselves; this is for warming it before the first window opens.

    \b
    Example:
      fimble engine start --model qwen2.5-coder-0.5b
    """
    options = EngineOptions(model=model, context_tokens=context_tokens, slots=slots)
    _show(control.start(options), as_json)


@command.command("status")
@json_option
def engine_status(as_json: bool) -> None:
    """Show whether the engine runs, its models and its slots.

    \b
    Example:
      fimble engine status --json
    """
    _show(control.status(), as_json)


@command.command("stop")
@json_option
def stop_engine(as_json: bool) -> None:
    """Stop the engine. The next request from an editor starts it again.

    \b
    Example:
      fimble engine stop
    """
    stopped = control.stop()
    if as_json:
        echo_json({"stopped": stopped})
    else:
        click.echo("The engine is stopped." if stopped else "No engine was running.")


def _show(status: control.EngineStatus | None, as_json: bool) -> None:
    if as_json:
        echo_json(status.to_json() if status else {"running": False})
        return
    if status is None:
        click.echo("No engine is running.")
        return
    click.echo(f"engine {status.version}, process {status.pid}, port {status.port}")
    for model in status.models:
        click.echo(
            f"model {model['name']} on {model['provider']}, window {model['window']} tokens, "
            f"{model['state']}"
        )
        if model.get("notice"):
            click.echo(f"note: {model['notice']}")
    for number, slot in enumerate(status.slots):
        click.echo(f"slot {number}: {slot['tokens']} tokens{', busy' if slot['busy'] else ''}")
