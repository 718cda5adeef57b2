"""What ``chat`` and ``explain`` share: one engine, one folder, questions, answers on a terminal.

On a terminal an answer is Markdown, shown as it grows; into a pipe it is written as it comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType

import click
from rich.console import Console
from rich.live import Live
from rich.markdown import Markdown

from fimble.assist.chat.folder import FolderSources
from fimble.assist.chat.service import ChatAnswer, ChatService, Question
from fimble.assist.settings import ChatSettings
from fimble.assist.templates import find_templates
from fimble.cli.engine_events import engine_for
from fimble.cli.output import echo_json, say
from fimble.controls import without_controls

__all__ = ["ChatSession", "MarkdownStream", "answer_once", "blocks_of", "printable"]

_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>.*)")


class ChatSession:
    """Questions about the project around ``folder``; a context that closes what it opened."""

    def __init__(
        self, folder: Path, model: str, settings: ChatSettings, provider: str = ""
    ) -> None:
        self.sources = FolderSources(folder)
        self._loop = asyncio.new_event_loop()
        self._engine = engine_for("chat", model, provider)
        templates = find_templates(self.sources.policy.folders)
        self._service = ChatService(
            lambda: self._engine, self.sources, lambda: templates, lambda: settings, name="cli"
        )

    def __enter__(self) -> ChatSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sources.close()
        self._loop.run_until_complete(self._engine.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def ask(self, question: Question, on_text: Callable[[str], None]) -> ChatAnswer:
        """The answer. Ctrl-C ends the work at the engine and raises KeyboardInterrupt."""
        task = self._loop.create_task(self._service.ask(question, on_text))
        with _interrupts(self._loop, task):
            try:
                return self._loop.run_until_complete(task)
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None


@contextlib.contextmanager
def _interrupts(loop: asyncio.AbstractEventLoop, task: asyncio.Task[ChatAnswer]) -> Iterator[None]:
    """Lets Ctrl-C cancel ``task``, which then cleans up after itself.

    By default it would raise in the middle of whatever is running, be that a library that holds
    a lock, which the cleaning up might wait for.
    """

    def cancel(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, cancel)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def answer_once(session: ChatSession, question: Question, *, as_json: bool) -> ChatAnswer:
    """Asks, and prints the answer and, on standard error, what it was made of."""
    if as_json:
        answer = session.ask(question, lambda text: None)
        echo_json(answer.to_json())
        return answer
    with _printer() as on_text:
        answer = session.ask(question, on_text)
        if not answer.model:
            on_text(answer.text)  # no model said it, so nothing has been shown
    _say_context(answer)
    return answer


@contextlib.contextmanager
def _printer() -> Iterator[Callable[[str], None]]:
    if sys.stdout.isatty():
        with MarkdownStream(Console()) as stream:
            yield stream.feed
        return
    ended = True

    def write(text: str) -> None:
        nonlocal ended
        click.echo(text, nl=False)
        sys.stdout.flush()
        ended = text.endswith("\n") if text else ended

    try:
        yield write
    finally:
        if not ended:
            click.echo()


class MarkdownStream:
    """Markdown on a terminal while it comes: whole blocks are printed, the last one is live."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._text = ""
        self._live = Live(console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> MarkdownStream:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.update("")
        self._live.stop()
        if self._text.strip():
            self._console.print(_markdown(self._text))

    def feed(self, text: str) -> None:
        """More of the text."""
        *whole, self._text = blocks_of(self._text + printable(text))
        for block in whole:
            self._live.console.print(_markdown(block))
        # No more than the window shows: what has scrolled away could not be drawn anew.
        lines = self._text.splitlines()
        most = max(4, self._console.size.height - 4)
        self._live.update(_markdown(self._text) if len(lines) <= most else "\n".join(lines[-most:]))


def blocks_of(text: str) -> list[str]:
    """The text in pieces that can be shown one after the other; the last may still grow.

    A piece ends with a blank line that is in no code block. All of them together are the text.
    """
    blocks, start, position, fence = [], 0, 0, ""
    for line in text.splitlines(keepends=True):
        position += len(line)
        found = _FENCE.match(line)
        if found is None or (fence and not found["fence"].startswith(fence)):
            # A line that has not ended may go on, and is not blank then.
            blank = line.endswith("\n") and not line.strip()
            if not fence and blank and text[start:position].strip():
                blocks.append(text[start:position])
                start = position
        elif not fence:
            fence = found["fence"]
        elif not found["info"].strip():
            fence = ""
    return [*blocks, text[start:]]


def printable(text: str) -> str:
    """``text`` without what a terminal would obey."""
    return without_controls(text)


def _markdown(text: str) -> Markdown:
    # Links by their whole address: what is hidden behind a word may lead anywhere.
    return Markdown(text, hyperlinks=False)


def _say_context(answer: ChatAnswer) -> None:
    """What is in the prompt and what is not, and what the answer cost."""
    lines = []
    for piece in answer.context:
        where = f"{piece.path}:{piece.lines[0]}-{piece.lines[1]}" if piece.lines else piece.path
        lines.append(f"used: {f'{where}: ' if where else ''}{piece.reason} ({piece.tokens} tokens)")
    for item in answer.left_out:
        lines.append(f"left out: {f'{item.path}: ' if item.path else ''}{item.reason}")
    if answer.finish_reason == "length":
        lines.append("The answer was cut at its longest length (--max-tokens).")
    if answer.model:
        usage = answer.usage
        lines.append(
            f"{answer.model} on {answer.provider}: {usage.reused_tokens} of "
            f"{usage.prompt_tokens} prompt tokens reused, {usage.completion_tokens} generated, "
            f"{answer.total_ms:.0f} ms"
        )
    for line in lines:
        say(click.style(printable(line), dim=True))
