"""``fimble chat``: a conversation about the project in the working directory.

On a terminal, with a line editor, completion of names and a history; with a message given or
piped in, one question and its answer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from fimble import system
from fimble.assist.chat.folder import FolderSources
from fimble.assist.chat.names import NameCompleter
from fimble.assist.chat.service import Question
from fimble.assist.settings import ChatSettings
from fimble.cli.chatting import ChatSession, answer_once
from fimble.cli.output import json_option, provider_option, say
from fimble.errors import FimbleError, UsageError
from fimble_context.workspace import mask_secrets

__all__ = ["MaskedHistory", "command", "history_file"]

_LARGEST_HISTORY = 1_000_000
_WELCOME = "Enter sends, Alt+Enter begins a line, Ctrl-C stops, Ctrl-D ends. /help says more."


@click.command()
@click.argument("message", nargs=-1)
@click.option("--model", metavar="NAME|PATH", default="", help="The model package to use.")
@provider_option
@click.option(
    "--max-tokens",
    type=click.IntRange(1, 32_768),
    default=ChatSettings().max_tokens,
    show_default=True,
    help="The longest answer, in tokens.",
)
@click.option("--no-history", is_flag=True, help="Neither read nor keep what was asked before.")
@json_option
def command(
    message: tuple[str, ...],
    model: str,
    provider: str,
    max_tokens: int,
    no_history: bool,
    as_json: bool,
) -> None:
    """Talk about the code of the project in this folder.

    With a MESSAGE, or with one piped in, answers that and ends.

    \b
    Examples:
      fimble chat
      fimble chat "what does @file:app.py do?"
      echo /commit | fimble chat
    """
    text = " ".join(message)
    if not text and not sys.stdin.isatty():
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
        if not text.strip():
            raise UsageError("The message is empty.", next_step="Write a question.")
    if as_json and not text:
        raise UsageError("--json needs a message.", next_step="Write it behind the command.")
    settings = ChatSettings(max_tokens=max_tokens)
    with ChatSession(Path.cwd(), model, settings, provider) as session:
        if text:
            answer_once(session, Question(text), as_json=as_json)
        else:
            _talk(session, InMemoryHistory() if no_history else MaskedHistory(history_file()))


def history_file() -> Path:
    """What was asked in terminals, for the line editor."""
    return system.home() / "chat_history"


class MaskedHistory(FileHistory):
    """A file for its owner's eyes only, of bounded size; what looks like a key is masked."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes() if path.is_file() else b""
        if len(data) > _LARGEST_HISTORY:
            # An entry begins behind an empty line.
            data = data[-_LARGEST_HISTORY // 2 :].partition(b"\n\n")[2]
            system.write_private(path, data)
        elif not path.is_file():
            system.write_private(path, b"")
        super().__init__(str(path))

    def store_string(self, string: str) -> None:
        super().store_string(mask_secrets(string))


def _talk(session: ChatSession, history: History) -> None:
    editor: PromptSession[str] = PromptSession(
        history=history,
        completer=_NamesOf(session.sources),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation="… ",
    )
    say(click.style(_WELCOME, dim=True))
    while True:
        try:
            text = editor.prompt("> ")
            if text.strip():
                _answer(session, text)
        except KeyboardInterrupt:
            continue  # the line is thrown away, as in a shell
        except EOFError:
            return


def _answer(session: ChatSession, text: str) -> None:
    """One question of several: what goes wrong with it ends nothing."""
    try:
        answer_once(session, Question(text), as_json=False)
    except KeyboardInterrupt:
        say("Stopped; the question and its answer are forgotten.")
    except FimbleError as error:
        say(click.style("Error: ", fg="red", bold=True) + str(error))


def _keys() -> KeyBindings:
    """Enter sends; Alt+Enter (or Escape, Enter) begins a new line."""
    keys = KeyBindings()

    @keys.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None  # takes the name that is chosen
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


class _NamesOf(Completer):
    """Completes slash commands, mentions and the names in them."""

    def __init__(self, sources: FolderSources) -> None:
        self._sources = sources
        self._names = NameCompleter(sources)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        return ()  # the line editor asks the other one

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        if "@symbol:" in document.text_before_cursor:
            # Opens the index the first time, and waits for it.
            await asyncio.to_thread(self._sources.workspace)
        found = await self._names.complete(document.text, document.cursor_position)
        for name in found.names:
            yield Completion(
                name.text,
                start_position=found.start - document.cursor_position,
                display_meta=name.detail,
            )
