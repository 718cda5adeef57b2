"""``fimble demo``: an editor's session with the real server and a real model, in the terminal.

It fetches the default model where it is missing, starts the language server, opens a copy
of an example file, types into it and shows what is suggested. It succeeds only if the
model suggested something at each place.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from fimble.cli.output import echo_json, json_option, progress_bars, say
from fimble.errors import FimbleError, ModelNotFound
from fimble.lsp.editor import Editor, Proposal, ready_editor
from fimble.models.catalogue import DEFAULT_MODEL
from fimble.models.pull import pull
from fimble.models.store import Store

__all__ = ["command"]

_EXAMPLE = "inventory.py"

#: What is typed, one entry a suggestion.
_TYPED = (
    "\n    def total_value(self) -> int:"
    '\n        """The value of all stock, in cents."""'
    "\n        ",
    "\n\n    def out_of_stock(self) -> list[Item]:"
    '\n        """The items to order again."""'
    "\n        ",
    "\n\n    def cheapest(self) -> Item:\n        return min(",
)

_TYPING_SECONDS = 0.015
_PICTURE_COLUMNS = 112


@dataclass(frozen=True, slots=True)
class Step:
    """One suggestion: what was typed before it, what came, and how long it took."""

    typed: str
    suggestion: str
    milliseconds: float


@click.command()
@click.option(
    "--model", metavar="NAME|PATH", default=DEFAULT_MODEL, show_default=True, help="The package."
)
@click.option("--svg", type=click.Path(path_type=Path), help="Keep what is shown as a picture.")
@json_option
def command(model: str, svg: Path | None, as_json: bool) -> None:
    """See completions on a small model that fimble fetches itself.

    The first run fetches about 470 MB; later ones begin at once.

    \b
    Example:
      fimble demo
    """
    _ensure_model(model)
    width = None if svg is None else _PICTURE_COLUMNS
    console = Console(record=svg is not None, width=width, highlight=False, quiet=as_json)
    steps = asyncio.run(_session(console, model))
    if svg is not None:
        _save_picture(console, svg)
    if as_json:
        echo_json(
            {
                "model": model,
                "suggestions": [
                    {"typed": s.typed, "text": s.suggestion, "ms": round(s.milliseconds, 1)}
                    for s in steps
                ],
            }
        )


def _save_picture(console: Console, path: Path) -> None:
    """Writes what was shown as an SVG that fetches nothing: Rich's own loads fonts."""
    picture = console.export_svg(title="fimble demo")
    picture = re.sub(r"@font-face \{.*?\}\n", "", picture, flags=re.DOTALL)
    path.write_text(picture, encoding="utf-8", newline="\n")


def _ensure_model(model: str) -> None:
    store = Store()
    try:
        store.find(model)
    except ModelNotFound:
        if model != DEFAULT_MODEL:
            raise
        with progress_bars() as progress:
            pull(model, store=store, progress=progress, say=say)


async def _session(console: Console, model: str) -> list[Step]:
    """Types the whole demo; raises FimbleError where nothing was suggested."""
    source = (resources.files("fimble_examples") / _EXAMPLE).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="fimble-demo-") as folder:
        async with contextlib.AsyncExitStack() as stack:
            with console.status("loading the model"):
                editor = await stack.enter_async_context(ready_editor(model, Path(folder)))
            file = Path(folder) / _EXAMPLE
            file.write_text(source, encoding="utf-8", newline="\n")
            editor.open(file, source, "python")
            lines = len(source.splitlines())
            console.print(f"[bold]{_EXAMPLE}[/bold], {lines} lines, the cursor at the end")
            return [await _step(console, editor, typed) for typed in _TYPED]


async def _step(console: Console, editor: Editor, typed: str) -> Step:
    for character in typed:
        editor.type_text(character)
        if console.is_terminal:
            console.print(character, end="", style="bold")
            await asyncio.sleep(_TYPING_SECONDS)
    if not console.is_terminal:
        console.print(Text(typed, style="bold"), end="")
    started = time.perf_counter()
    proposals = await editor.ask()
    milliseconds = (time.perf_counter() - started) * 1000
    if not proposals or not proposals[0].text.strip():
        raise FimbleError(
            f"The model suggested nothing after {typed.splitlines()[-1].strip()!r}.",
            next_step="The server's log in FIMBLE_HOME/logs says why.",
        )
    best: Proposal = proposals[0]
    console.print(Text(best.text, style="green"), end="")
    console.print(Text(f"   ← suggested in {milliseconds:.0f} ms", style="dim"))
    editor.accept(best)
    return Step(typed, best.text, milliseconds)
