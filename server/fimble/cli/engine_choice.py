"""``fimble engine use`` and ``key``: a server elsewhere in place of this machine's engine."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace

import click

from fimble.cli.output import echo_json, json_option, say
from fimble.engine.base import ModelInfo
from fimble.engine.connect import connect
from fimble.engine.remote.choice import (
    FORBID_VARIABLE,
    EngineChoice,
    Purpose,
    is_forbidden,
    read_choice,
    write_choice,
)
from fimble.engine.remote.endpoint import KEY_VARIABLE, Endpoint
from fimble.engine.remote.keys import forget_key, keep_key
from fimble.errors import SettingsError

__all__ = ["choice_lines", "key_command", "use_command"]

_PURPOSES: dict[str, tuple[Purpose, ...]] = {
    "completion": ("completion",),
    "chat": ("chat",),
    "both": ("completion", "chat"),
}


@click.command("use")
@click.argument("where", metavar="URL|local")
@click.option(
    "--for",
    "purpose",
    type=click.Choice(list(_PURPOSES)),
    default="both",
    show_default=True,
    help="What the server is for; chat includes edits.",
)
@click.option(
    "--model", metavar="NAME", default="", help="The server's model; its first if not given."
)
@click.option(
    "--window",
    type=click.IntRange(min=256),
    default=None,
    help="Tokens of its longest prompt plus answer, where it does not say so itself.",
)
@click.option(
    "--key-variable",
    metavar="NAME",
    default=KEY_VARIABLE,
    show_default=True,
    help="The environment variable that holds its API key.",
)
@click.option(
    "--fall-back/--no-fall-back",
    default=False,
    help="Let this machine's engine answer while the server does not.",
)
@json_option
def use_command(
    where: str,
    purpose: str,
    model: str,
    window: int | None,
    key_variable: str,
    fall_back: bool,
    as_json: bool,
) -> None:
    """Use a server that speaks OpenAI's protocol (vLLM, llama.cpp, Lemonade, Ollama), or this
    machine's engine again (`local`).

    The server is asked what it has first; if it does not answer, nothing is changed. Code and
    questions are sent to it from then on. Editors' settings cannot choose a server.

    \b
    Examples:
      fimble engine use https://box.example:8000/v1 --for chat
      fimble engine use local
    """
    purposes = _PURPOSES[purpose]
    if where == "local":
        choice = _with(_readable_choice(), purposes, None)
        if choice.completion is None and choice.chat is None:
            choice = EngineChoice()
    else:
        if is_forbidden():
            raise SettingsError(
                f"Engines elsewhere are forbidden on this machine ({FORBID_VARIABLE} is set).",
                next_step="Ask whoever has set it.",
            )
        endpoint = Endpoint.at(where, model=model, window=window or 0, key_variable=key_variable)
        choice = replace(_with(_readable_choice(), purposes, endpoint), fall_back=fall_back)
        asked = replace(choice, fall_back=False)
        info = asyncio.run(_ask(asked, purposes[0]))
        if "completion" in purposes and not info.fim:
            say(
                f"{info.name} does not fill in the middle there: completions see what is before "
                "the cursor only."
            )
    write_choice(choice)
    if as_json:
        echo_json(choice.to_json())
        return
    for line in choice_lines(choice):
        click.echo(line)


@click.command("key")
@click.argument("url")
@click.option("--forget", is_flag=True, help="Take the key out of the keyring again.")
def key_command(url: str, forget: bool) -> None:
    """Keep a server's API key in this system's keyring (extra `keyring`).

    It is asked for, or read from standard input; never from the command line, which others can
    see. A key in the environment variable that `fimble engine use --key-variable` names goes
    before it.

    \b
    Example:
      fimble engine key https://box.example:8000/v1
    """
    endpoint = Endpoint.at(url)
    if forget:
        found = forget_key(endpoint)
        click.echo(f"{'Forgot the' if found else 'There was no'} key for {endpoint.host}.")
        return
    if sys.stdin.isatty():
        key = str(click.prompt("API key", hide_input=True))
    else:
        key = sys.stdin.readline()
    key = key.strip()
    if not key:
        raise click.UsageError("No key was given.")
    keep_key(endpoint, key)
    click.echo(f"The key for {endpoint.host} is in the keyring.")


def choice_lines(choice: EngineChoice) -> list[str]:
    """What is chosen, for people."""
    lines = []
    for title, endpoint in (("completions", choice.completion), ("chat and edits", choice.chat)):
        if endpoint is None:
            lines.append(f"{title}: the engine of this machine")
            continue
        away = "text leaves this machine" if endpoint.leaves_machine else "on this machine"
        plain = "" if endpoint.encrypted or not endpoint.leaves_machine else ", not encrypted"
        lines.append(f"{title}: {endpoint.url} ({away}{plain})")
    if choice.fall_back:
        lines.append("while a server does not answer, the engine of this machine does")
    return lines


def _readable_choice() -> EngineChoice:
    """What was chosen before; a file that cannot be read is about to be replaced."""
    try:
        return read_choice({})
    except SettingsError as error:
        say(f"{error.message} It is replaced.")
        return EngineChoice()


def _with(
    choice: EngineChoice, purposes: tuple[Purpose, ...], endpoint: Endpoint | None
) -> EngineChoice:
    if "completion" in purposes:
        choice = replace(choice, completion=endpoint)
    return replace(choice, chat=endpoint) if "chat" in purposes else choice


async def _ask(choice: EngineChoice, purpose: Purpose) -> ModelInfo:
    engine = connect(purpose, choice=choice)
    try:
        return await engine.model_info()
    finally:
        await engine.aclose()
