"""``fimble engine …``: the model process that editors and terminals share."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from fimble.cli.engine_choice import choice_lines, key_command, use_command
from fimble.cli.engine_events import say_engine_event
from fimble.cli.output import bytes_of, echo_json, json_option, provider_option, say
from fimble.engine import control
from fimble.engine.client import LocalEngine, model_reference
from fimble.engine.options import EngineOptions
from fimble.engine.remote.choice import EngineChoice, read_choice

__all__ = ["command"]


_Pairs = tuple[tuple[str, str], ...]


def _pairs(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> _Pairs:
    """``NAME=VALUE``, as often as it is given."""
    pairs = [value.partition("=") for value in values]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.BadParameter("write NAME=VALUE.")
    return tuple((name, value) for name, _, value in pairs)


@click.group("engine")
def command() -> None:
    """Start, show and stop the process that runs the model, or use a server elsewhere."""


command.add_command(use_command)
command.add_command(key_command)


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
@provider_option
@click.option(
    "--provider-option",
    "provider_options",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="A setting of that provider, on top of the package's; may be given again.",
)
@click.option(
    "--provider-library",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    help="The plug-in library of that provider, where it is not found by itself.",
)
@click.option(
    "--device-memory",
    callback=bytes_of,
    metavar="SIZE",
    help="Memory that the device has free, such as 16GiB, where it cannot be found out.",
)
@json_option
def start_engine(
    model: str,
    context_tokens: int,
    slots: int,
    provider: str,
    provider_options: _Pairs,
    provider_library: Path | None,
    device_memory: int | None,
    as_json: bool,
) -> None:
    """Start the engine, if it does not run already, and load MODEL, if one is named.

    Editors start it by themselves; this is for warming it before the first window opens, and
    for choosing what computes.

    \b
    Examples:
      fimble engine start --model qwen2.5-coder-0.5b
      fimble engine start --model qwen2.5-coder-0.5b --provider webgpu
    """
    if (provider_options or provider_library) and not provider:
        raise click.UsageError("--provider-option and --provider-library need --provider.")
    options = EngineOptions(
        model=model_reference(model),
        context_tokens=context_tokens,
        slots=slots,
        provider=provider,
        provider_options=provider_options,
        provider_library=str(provider_library or ""),
        device_memory=device_memory or 0,
    )
    others = replace(options, model="", provider="")
    if others != EngineOptions() and control.status() is not None:
        say("An engine runs already, with other options. `fimble engine stop` ends it.")
    status = control.start(options)
    if model or provider:
        asyncio.run(_load(options))
        status = control.status() or status
    _show(status, as_json)


async def _load(options: EngineOptions) -> None:
    engine = LocalEngine(
        model=options.model,
        provider=options.provider,
        options=options,
        on_event=say_engine_event,
    )
    try:
        await engine.load()
    finally:
        await engine.aclose()


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
    choice = read_choice()
    if as_json:
        data = status.to_json() if status else {"running": False}
        echo_json(data if choice == EngineChoice() else {**data, "chosen": choice.to_json()})
        return
    if choice != EngineChoice():
        for line in choice_lines(choice):
            click.echo(line)
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
    if any(status.freed.values()):
        click.echo(
            f"note: this machine ran short of memory; {status.freed['slots']} idle slots and "
            f"{status.freed['models']} idle models were freed for other programs."
        )
