"""``fimble serve``: the language server over standard input and output."""

from __future__ import annotations

import click

from fimble.cli.output import provider_option
from fimble.models.genai_config import SETTABLE

__all__ = ["command"]


@click.command()
@click.option(
    "--model",
    metavar="NAME|PATH",
    help="The model package to run: a name that `fimble model list` shows, or a folder.",
)
@provider_option
@click.option(
    "--chat-model",
    metavar="NAME|PATH",
    default="",
    help="Another package for chat and edits; loaded beside the first one where both fit.",
)
@click.option(
    "--chat-provider",
    type=click.Choice(SETTABLE, case_sensitive=False),
    metavar="NAME",
    help="What computes that one, in place of its own provider.",
)
def command(model: str | None, provider: str, chat_model: str, chat_provider: str | None) -> None:
    """Run the language server over standard input and output.

    Editors start this; README shows the settings of each.

    \b
    Example:
      fimble serve --model qwen2.5-coder-0.5b
      fimble serve --model qwen2.5-coder-0.5b --chat-model my-14b-instruct
    """
    from fimble.lsp import serve

    if chat_provider and not chat_model:
        raise click.UsageError("--chat-provider needs --chat-model.")
    code = serve(model, provider=provider, chat_model=chat_model, chat_provider=chat_provider or "")
    click.get_current_context().exit(code)
