"""Somebody who plays a session with an assistant, and what it was like.

The user types by the session's clock, sees what is suggested, and accepts a right suggestion
once it has been in view long enough to be read. Every assistant gets the same user.

A suggestion counts once, however often it is shown again while the user types in it. It is
*right* if the line it ends is the session's line, to its end but for blanks; lines of which
fewer than four characters are missing do not count, nor are they accepted. The *latency* of a
keystroke is the time until a suggestion is in view for what then stands there: where the user
types on, the wait goes on. Where the assistant says that it has nothing to suggest, the
keystrokes before have no latency.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fimble.bench.session import Key, Passage, Session

__all__ = ["Assistant", "Keystroke", "Played", "Work", "play"]

_READING_SECONDS = 0.3
_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Work:
    """What an assistant had its model do, since it was started."""

    computed_tokens: int = 0
    model_calls: int = 0


class Assistant(ABC):
    """An editor with an assistant in it. ``on_shown`` hears what is in view at the cursor: a
    text, or "" where the assistant has nothing to suggest for what stands there.

    All offsets are code points. All methods are called on the event loop.
    """

    on_shown: Callable[[str], None]

    @abstractmethod
    async def open(self, file: Path, text: str, cursor: int) -> None:
        """Opens a file; no other one is open."""

    @abstractmethod
    def edit(self, start: int, end: int, text: str) -> None:
        """A keystroke: replaces a range, with the cursor behind ``text`` afterwards."""

    @abstractmethod
    def accept(self, length: int) -> None:
        """Accepts the first ``length`` characters of what is in view."""

    @abstractmethod
    def move(self, cursor: int) -> None:
        """Moves the cursor without an edit."""

    @abstractmethod
    async def close(self) -> None:
        """Closes the file, when the work on it is done."""

    @abstractmethod
    async def work(self) -> Work:
        """The work so far."""


@dataclass(slots=True)
class Keystroke:
    """One key. ``computed_tokens`` were computed between it and the next one."""

    line: str
    accepted: str = ""
    latency_ms: float | None = None
    computed_tokens: int = 0
    model_calls: int = 0


@dataclass(slots=True)
class Played:
    """What came of sessions. ``seen`` is (line, is right) of each suggestion."""

    keystrokes: list[Keystroke] = field(default_factory=list)
    seen: list[tuple[str, bool]] = field(default_factory=list)
    accepted: int = 0
    lines: int = 0
    work: Work = field(default_factory=Work)

    @property
    def shown(self) -> int:
        """Suggestions that were shown."""
        return len(self.seen)

    @property
    def right(self) -> int:
        """Those that were right."""
        return sum(right for _, right in self.seen)


async def play(
    session: Session,
    assistant: Assistant,
    played: Played,
    on_shown: Callable[[str], None] = lambda text: None,
) -> None:
    """Plays a session and adds to ``played``. ``on_shown`` hears all that is shown, too."""
    await _Player(session, assistant, played, on_shown).play()


class _Player:
    def __init__(
        self,
        session: Session,
        assistant: Assistant,
        played: Played,
        tell: Callable[[str], None],
    ) -> None:
        self._tell = tell
        self._session = session
        self._assistant = assistant
        self._played = played
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._passage = session.passages[0]
        self._number = 0
        self._at = 0  # characters of the passage that stand there
        self._wrong = ""  # and what was typed behind them by mistake
        self._shown = ""
        self._acceptable = False  # it is in view now, and right
        self._read_since: float | None = None
        self._waiting: list[tuple[Keystroke, float]] = []
        self._known: set[tuple[int, int, str]] = set()
        self._in_order = asyncio.Lock()
        self._counts: list[asyncio.Task[None]] = []
        self._counted: list[tuple[Keystroke, Work]] = []

    async def play(self) -> None:
        session = self._session
        before = await self._assistant.work()
        self._assistant.on_shown = self._on_shown
        await self._assistant.open(session.file, session.text, session.passages[0].offset)
        for number, passage in enumerate(session.passages):
            await self._play_passage(number, passage)
        if self._counts:
            await asyncio.wait(self._counts)
        await self._assistant.close()
        after = await self._assistant.work()
        self._note_work(before, after)
        self._played.lines += sum(passage.text.count("\n") for passage in session.passages)

    # --- the user ------------------------------------------------------------------------

    async def _play_passage(self, number: int, passage: Passage) -> None:
        self._passage, self._number = passage, number
        self._at, self._wrong = 0, ""
        self._forget()
        if number:
            self._assistant.move(passage.offset)
        await asyncio.sleep(passage.pause)
        keys = list(passage.keys)
        due = self._loop.time()
        while keys:
            due += keys[0].pause
            if await self._accepts_before(due):
                keys = [key for key in keys if key.at >= self._at]
            else:
                self._press(keys.pop(0))
            due = self._loop.time()

    async def _accepts_before(self, due: float) -> bool:
        """Waits for a suggestion to accept; False when the next key is due."""
        while True:
            until = due
            if self._acceptable and self._read_since is not None:
                read = self._read_since + _READING_SECONDS
                if read <= self._loop.time():
                    self._accept()
                    return True
                until = min(due, read)
            if until <= self._loop.time():
                return False
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), until - self._loop.time())
            except (TimeoutError, asyncio.TimeoutError):
                continue

    def _press(self, key: Key) -> None:
        cursor = self._cursor
        keystroke = self._begin()
        if key.text:
            typed = key.text[: len(key.text) - key.wrong]
            self._at += len(typed)
            self._wrong += key.text[len(typed) :]
            self._assistant.edit(cursor, cursor, key.text)
        else:
            self._wrong = self._wrong[: -key.delete]
            self._assistant.edit(cursor - key.delete, cursor, "")
        keystroke.line = self._line

    def _accept(self) -> None:
        text = _first_line(self._shown).rstrip()
        keystroke = self._begin()
        self._read_since = None
        self._at += len(text)
        self._played.accepted += 1
        self._assistant.accept(len(text))
        keystroke.line, keystroke.accepted = self._line, text

    def _begin(self) -> Keystroke:
        """A keystroke from now on: what was in view is to be shown again, or is not."""
        keystroke = Keystroke("")
        self._played.keystrokes.append(keystroke)
        self._counts.append(asyncio.create_task(self._count(keystroke)))
        self._acceptable = False
        self._waiting.append((keystroke, self._loop.time()))
        return keystroke

    def _forget(self) -> None:
        """The cursor has left: nobody waits there any more."""
        self._acceptable, self._read_since = False, None
        self._waiting.clear()

    # --- the view ------------------------------------------------------------------------

    def _on_shown(self, text: str) -> None:
        self._tell(text)
        now = self._loop.time()
        if text.strip():
            for keystroke, begun in self._waiting:
                keystroke.latency_ms = (now - begun) * 1000
            self._see(text, now)
        else:
            self._acceptable, self._read_since = False, None
        self._waiting.clear()
        self._news.set()

    def _see(self, text: str, now: float) -> None:
        self._shown = text
        right = self._is_right(text)
        # Reading goes on while the user types what is in view.
        since = now if self._read_since is None else self._read_since
        self._acceptable, self._read_since = right, since if right else None
        wanted = _first_line(self._passage.text[self._at :])
        if len(wanted.strip()) < _SHORTEST:
            return
        chunk = _first_line(text)
        before = self._passage.text[: self._at] + self._wrong + chunk
        line = before.rpartition("\n")[2]
        known = (self._number, before.count("\n"), line.rstrip())
        if known not in self._known:
            self._known.add(known)
            self._played.seen.append((line, right))

    def _is_right(self, text: str) -> bool:
        rest = self._passage.text[self._at :]
        chunk, wanted = _first_line(text).rstrip(), _first_line(rest)
        return not self._wrong and len(wanted.strip()) >= _SHORTEST and chunk == wanted

    @property
    def _cursor(self) -> int:
        return self._passage.offset + self._at + len(self._wrong)

    @property
    def _line(self) -> str:
        return (self._passage.text[: self._at] + self._wrong).rpartition("\n")[2]

    # --- the work ------------------------------------------------------------------------

    async def _count(self, keystroke: Keystroke) -> None:
        async with self._in_order:
            self._counted.append((keystroke, await self._assistant.work()))

    def _note_work(self, before: Work, after: Work) -> None:
        """What was computed between two keystrokes is the work of the first."""
        total = self._played.work
        self._played.work = Work(
            total.computed_tokens + after.computed_tokens - before.computed_tokens,
            total.model_calls + after.model_calls - before.model_calls,
        )
        marks = [work for _, work in self._counted[1:]]
        for (keystroke, begun), end in zip(self._counted, [*marks, after], strict=True):
            keystroke.computed_tokens = end.computed_tokens - begun.computed_tokens
            keystroke.model_calls = end.model_calls - begun.model_calls


def _first_line(text: str) -> str:
    """``text`` up to the end of its first line that is not blank."""
    blank = len(text) - len(text.lstrip("\n"))
    if blank == 0:
        return text.partition("\n")[0]
    lines = text.split("\n")
    number = next((n for n, line in enumerate(lines) if n and line.strip()), len(lines) - 1)
    return "\n".join(lines[: number + 1])
