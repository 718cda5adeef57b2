"""``fimble edit FILE:START-END "…"``: a change of some lines, as a diff or made."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click

from fimble.assist.chat.folder import FolderSources
from fimble.assist.complete_file import refuse_secrets
from fimble.assist.edit.diff import unified_diff
from fimble.assist.edit.service import EditOutcome, EditRequest, EditService
from fimble.assist.edit.tasks import CUSTOM, TASKS
from fimble.assist.edit.text_files import (
    TextFile,
    create_text_file,
    read_text_file,
    write_text_file,
)
from fimble.assist.settings import EditSettings
from fimble.assist.templates import find_templates
from fimble.cli.chatting import printable
from fimble.cli.engine_events import engine_for
from fimble.cli.explain import Lines, lines_span, parse_lines
from fimble.cli.output import echo_json, json_option, provider_option, readable, say
from fimble.engine.base import Engine
from fimble.errors import EditRefused, UsageError
from fimble_context.assembly import Diagnostic
from fimble_context.syntax import Document

__all__ = ["command"]


@click.command()
@click.argument("place", metavar="FILE:START-END")
@click.argument("instruction", default="")
@click.option(
    "--task",
    type=click.Choice(list(TASKS)),
    default=CUSTOM,
    help="What to do, in place of an instruction or beside it.",
)
@click.option("--apply", "apply_it", is_flag=True, help="Write the change to the file.")
@click.option("--model", metavar="NAME|PATH", default="", help="The model package to use.")
@provider_option
@click.option(
    "--max-tokens",
    type=click.IntRange(16, 32_768),
    default=EditSettings().max_tokens,
    show_default=True,
    help="The longest answer, in tokens.",
)
@json_option
def command(
    place: str,
    instruction: str,
    task: str,
    apply_it: bool,
    model: str,
    provider: str,
    max_tokens: int,
    as_json: bool,
) -> None:
    """Change the lines START to END of a file (both begin at 1) as INSTRUCTION says.

    Prints the change as a unified diff; the file stays as it is without --apply. The lines are
    grown to whole statements. Nothing else of the file changes. FILE:LINE is a place: tasks take
    the function or definition around it, an instruction the statement there; on a blank line it
    says what to put there. With --task fix, INSTRUCTION is what is wrong with the line.

    \b
    Example:
      fimble edit app.py:12-30 "return early instead of nesting"
      fimble edit app.py:12 --task document --apply
      fimble edit app.py:14 'undefined name "totl"' --task fix
    """
    if task == CUSTOM and not instruction.strip():
        raise UsageError(
            "There is nothing to do: no instruction and no task.",
            next_step='Write one, such as fimble edit app.py:12-30 "use a set".',
        )
    path, lines = parse_lines(place)
    path = path.absolute()
    file = read_text_file(path)
    document = Document(file.text, path=str(path))
    request = _request(document, path, lines, task, instruction)
    try:
        engine = partial(engine_for, "chat", model, provider)
        outcome = _run(request, engine, EditSettings(max_tokens=max_tokens))
    except EditRefused as error:
        if as_json:
            echo_json({"error": _refusal(error)})
            click.get_current_context().exit(1)
        if error.answer:
            say(click.style("The model's answer:", dim=True))
            say(printable(error.answer))
        raise
    if apply_it:
        _write(outcome, file)
    if as_json:
        echo_json(_to_json(outcome, path, applied=apply_it))
        return
    _print(outcome, path, applied=apply_it)


def _request(
    document: Document, path: Path, lines: Lines | None, task: str, instruction: str
) -> EditRequest:
    """A line alone is a place, as a cursor is: tasks take what is around it."""
    start, end = lines_span(document, path, lines)
    is_place = lines is not None and lines[1] is None
    if is_place and task == "fix" and instruction:
        # What a linter or a test says of that line.
        problem = Diagnostic(start, end, instruction)
        return EditRequest(document, start, end, task, "", (problem,), str(path))
    if is_place:
        line = document.text[start:end]
        start = end = start + len(line) - len(line.lstrip())
    return EditRequest(document, start, end, task, instruction, source=str(path))


def _run(
    request: EditRequest, connect: Callable[[], Engine], settings: EditSettings
) -> EditOutcome:
    path = Path(request.document.path)
    sources = FolderSources(path.parent)
    refuse_secrets(path, request.document, sources.policy)
    sources.open(request.document)
    templates = find_templates(sources.policy.folders)

    async def run() -> EditOutcome:
        engine = connect()
        service = EditService(
            lambda: engine, sources, lambda: templates, lambda: settings, name="cli"
        )
        try:
            return await service.edit(request, _counter())
        finally:
            await engine.aclose()

    try:
        return asyncio.run(run())
    finally:
        sources.close()


def _counter() -> Any:
    """Shows on a terminal how far the answer is."""
    if not sys.stderr.isatty():
        return lambda tokens: None

    def show(tokens: int) -> None:
        if tokens:
            click.echo(f"\r{tokens} tokens ", nl=False, err=True)

    return show


def _write(outcome: EditOutcome, file: TextFile) -> None:
    path = Path(outcome.path)
    if outcome.is_new:
        create_text_file(path, outcome.after)
    elif path == file.path:
        write_text_file(file, outcome.after)
    else:
        other = read_text_file(path)
        if other.text != outcome.before:
            raise EditRefused(
                f"{path} was changed meanwhile; it was left as it is.",
                next_step="Run the command again.",
                name="moved",
            )
        write_text_file(other, outcome.after)


def _print(outcome: EditOutcome, path: Path, *, applied: bool) -> None:
    diff = _diff(outcome, path)
    for line in diff.splitlines(keepends=True):
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.echo(
            click.style(readable(line), fg=colour) if sys.stdout.isatty() else line, nl=False
        )
    for note in outcome.notes:
        say(f"Note: {printable(note)}")
    if applied:
        say(f"{'Made' if outcome.is_new else 'Changed'} {_shown(Path(outcome.path))}.")
    usage = outcome.cost.usage
    say(
        click.style(
            f"{outcome.cost.model} on {outcome.cost.provider}: {usage.reused_tokens} of "
            f"{usage.prompt_tokens} prompt tokens reused, {usage.completion_tokens} generated, "
            f"{outcome.cost.total_ms:.0f} ms",
            dim=True,
        )
    )


def _to_json(outcome: EditOutcome, path: Path, *, applied: bool) -> dict[str, Any]:
    timings = outcome.cost.timings
    return {
        "task": outcome.task,
        "about": outcome.about,
        "path": outcome.path,
        "is_new": outcome.is_new,
        "diff": _diff(outcome, path),
        "hunks": [asdict(hunk) for hunk in outcome.hunks],
        "notes": list(outcome.notes),
        "applied": applied,
        "tries": outcome.cost.tries,
        "usage": asdict(outcome.cost.usage),
        "timings_ms": {
            "queued": round(timings.queued_ms, 1),
            "prefill": round(timings.prefill_ms, 1),
            "decode": round(timings.decode_ms, 1),
            "total": round(outcome.cost.total_ms, 1),
        },
        "model": outcome.cost.model,
        "provider": outcome.cost.provider,
    }


def _diff(outcome: EditOutcome, path: Path) -> str:
    shown = _shown(Path(outcome.path))
    return unified_diff(outcome.before, outcome.after, shown, is_new=outcome.is_new)


def _shown(path: Path) -> str:
    """A path from the current folder on, where it is below that."""
    with contextlib.suppress(ValueError):
        return path.relative_to(Path.cwd()).as_posix()
    return path.as_posix().lstrip("/")


def _refusal(error: EditRefused) -> dict[str, str]:
    return {
        "message": error.message,
        "next_step": error.next_step,
        "name": error.name,
        "answer": error.answer,
    }
