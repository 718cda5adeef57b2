"""``fimble serve``: the language server over standard input and output."""

from __future__ import annotations

import click

__all__ = ["command"]


@click.command()
@click.option(
    "--model",
    metavar="NAME|PATH",
    help="The model package to run: a name that `fimble model list` shows, or a folder.",
)
def command(model: str | None) -> None:
    """Run the language server over standard input and output.

    Editors start this; README shows the settings of each.

    \b
    Example:
      fimble serve --model qwen2.5-coder-0.5b
    """
    from fimble.lsp import serve

    click.get_current_context().exit(serve(model))
