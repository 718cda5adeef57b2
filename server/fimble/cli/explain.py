"""``fimble explain FILE:START-END``: what lines of a file do."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import click

from fimble.assist.chat.pieces import Attachment
from fimble.assist.chat.service import Question
from fimble.assist.complete_file import read_document, refuse_secrets
from fimble.assist.settings import ChatSettings
from fimble.cli.chatting import ChatSession, answer_once
from fimble.cli.output import json_option, provider_option
from fimble.errors import DocumentError, UsageError
from fimble_context.syntax import Document

__all__ = ["Lines", "command", "lines_span", "parse_lines"]

#: The first and the last line from 1, the last one None where only one was named.
Lines: TypeAlias = tuple[int, int | None]


@click.command()
@click.argument("place", metavar="FILE:START-END")
@click.option("--model", metavar="NAME|PATH", default="", help="The model package to use.")
@provider_option
@click.option(
    "--max-tokens",
    type=click.IntRange(1, 32_768),
    default=ChatSettings().max_tokens,
    show_default=True,
    help="The longest answer, in tokens.",
)
@json_option
def command(place: str, model: str, provider: str, max_tokens: int, as_json: bool) -> None:
    """Explain the lines START to END of a file (both begin at 1), one line, or all of it.

    \b
    Example:
      fimble explain app.py:12-30
    """
    path, lines = parse_lines(place)
    path = path.absolute()
    document = read_document(path)
    start, end = lines_span(document, path, lines)
    settings = ChatSettings(max_tokens=max_tokens)
    with ChatSession(path.parent, model, settings, provider) as session:
        refuse_secrets(path, document, session.sources.policy)
        session.sources.open(document)
        selection = Attachment(
            "selection", document=document, source=document.path, start=start, end=end, path=path
        )
        question = Question("/explain", attachments=(selection,))
        answer_once(session, question, as_json=as_json)


def parse_lines(text: str) -> tuple[Path, Lines | None]:
    """``FILE:START-END``, ``FILE:LINE`` or ``FILE`` → the path and the lines. Raises UsageError.

    The file's name may have colons itself, as Windows paths have.
    """
    name, colon, lines = text.rpartition(":")
    first, dash, last = lines.partition("-")
    if not (colon and name and first.isdecimal() and (last.isdecimal() if dash else True)):
        if text and not lines.replace("-", "").isdecimal():
            return Path(text), None
        raise UsageError(
            f"“{text}” does not name lines of a file.",
            next_step="Write FILE:START-END with numbers that start at 1, such as app.py:12-30.",
        )
    if dash and int(last) < int(first):
        raise UsageError(
            f"Line {int(last)} is above line {int(first)}.",
            next_step="Write the first line, then the last one.",
        )
    return Path(name), (int(first), int(last) if dash else None)


def lines_span(document: Document, path: Path, lines: Lines | None) -> tuple[int, int]:
    """The code points of these lines; all of them for None. Raises DocumentError."""
    if lines is None:
        return 0, len(document.text)
    first, last = lines[0], lines[0] if lines[1] is None else lines[1]
    if not 1 <= first <= last <= document.line_count:
        raise DocumentError(
            f"{path} has no lines {first} to {last}: it has 1 to {document.line_count}.",
            next_step="Name lines of the file.",
        )
    return document.line_start(first - 1), document.line_end(last - 1)
