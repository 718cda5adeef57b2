"""The command group, and the one place where failures become messages and exit codes."""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from collections.abc import Sequence

import click

from fimble import __version__, system
from fimble.controls import without_controls
from fimble.errors import FimbleError

__all__ = ["cli", "main"]

#: Command → module; a module is imported when its command runs, so that ``fimble serve``
#: (one per editor window) never loads what only ``fimble model`` needs.
COMMANDS = {
    "bench": "fimble.cli.bench",
    "chat": "fimble.cli.chat",
    "complete": "fimble.cli.complete",
    "context": "fimble.cli.context",
    "demo": "fimble.cli.demo",
    "doctor": "fimble.cli.doctor",
    "edit": "fimble.cli.edit",
    "engine": "fimble.cli.engine",
    "explain": "fimble.cli.explain",
    "model": "fimble.cli.model",
    "serve": "fimble.cli.serve",
    "stats": "fimble.cli.stats",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="FIMBLE_HOME moves all of fimble's files (models, engine state, logs) to a folder.",
)
@click.version_option(__version__, prog_name="fimble")
def cli() -> None:
    """A coding assistant that lives in your editor and runs on your own machine.

    \b
    fimble demo                       see it work, on a small model that it fetches itself
    fimble serve                      what an editor starts: the language server
    fimble complete app.py:12:5       what would be inserted at line 12, column 5
    fimble chat                       talk about the project in this folder
    fimble edit app.py:12-30 "…"      change these lines, shown as a diff
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; never raises, never shows a traceback."""
    system.use_utf8_console()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = cli.main(args=words, prog_name="fimble", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return 1
    except FimbleError as error:
        _report(error, as_json="--json" in words)
        return error.exit_code
    except BrokenPipeError:
        # The reader (head, less) has gone. Python would fail once more when it flushes at
        # exit; give it somewhere to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last stop: nothing may pass as a traceback
        _report(_unexpected(error), as_json="--json" in words)
        return 1


def _report(error: FimbleError, *, as_json: bool) -> None:
    if as_json:
        detail = {"message": error.message, "next_step": error.next_step}
        click.echo(json.dumps({"error": detail}, ensure_ascii=False))
    text = click.style("Error: ", fg="red", bold=True) + without_controls(error.message)
    click.echo(f"{text}\n{without_controls(error.next_step)}".rstrip(), err=True)


def _unexpected(error: Exception) -> FimbleError:
    """The error to show for a fault of ours; its traceback goes to a log file."""
    log = system.logs_dir() / "cli.log"
    try:
        system.make_private_dir(log.parent)
        handler = logging.FileHandler(log, encoding="utf-8")
    except (OSError, FimbleError):
        return FimbleError(f"fimble failed: {type(error).__name__}: {error}.")
    logger = logging.getLogger("fimble.cli")
    logger.propagate = False
    logger.addHandler(handler)
    logger.error("unexpected failure", exc_info=error)
    handler.close()
    logger.removeHandler(handler)
    return FimbleError(
        f"fimble failed: {type(error).__name__}: {error}.",
        next_step=f"This is a fault of fimble's; please report it with what {log} says.",
    )
