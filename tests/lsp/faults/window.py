"""An editor's window for tests in which something fails: a real server process, a document in
a real file, and an account of what was asked and answered.

What holds after every fault is checked by ``Window.checked``: one response for each request,
one message to the user at most, the user's file as it was.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import psutil

from fimble import system
from fimble.engine import control
from tests.lsp.process import ServerProcess, serve_command, served
from tests.support.waiting import eventually

__all__ = ["SOURCE", "Window", "computing", "gone", "no_process_of", "processes_of", "window"]

#: The cursor is in a comment, where no noise is trimmed for what it does to the syntax.
SOURCE = "def area(width, height):\n    # the \n\n\nprint(area(2, 3))\n"
#: Nothing that a model with random weights says is sure.
OPTIONS = {"completion": {"minConfidence": 0.0}}


class Window:
    """``path`` is the user's file, open in the editor."""

    def __init__(self, server: ServerProcess, path: Path) -> None:
        self.server = server
        self.wire = server.wire
        self.path = path
        self.uri = path.as_uri()
        self.asked: list[int] = []
        self._version = 1
        self._copies = 0

    async def open(self, *, workspace: bool) -> None:
        """Begins the session."""
        folder = self.path.parent.as_uri() if workspace else None
        await self.wire.initialize(rootUri=folder, initializationOptions=OPTIONS)
        self.wire.open(self.uri, self.path.read_text(encoding="utf-8"))

    def type(self, text: str = "x") -> None:
        """Types at the end of the comment."""
        self._version += 1
        place = {"line": 1, "character": 10}
        change = {"range": {"start": place, "end": place}, "text": text}
        self.wire.change(self.uri, self._version, change)

    def ask(self) -> int:
        """Asks for a completion at the end of the comment; the request's id."""
        self.asked.append(self.wire.ask_completion(self.uri, 1, 10))
        return self.asked[-1]

    def ask_chat(self, message: str) -> int:
        """Begins a chat whose answer streams; the request's id."""
        params = {"message": message, "partialResultToken": "chat"}
        self.asked.append(self.wire.ask("fimble/chat", params))
        return self.asked[-1]

    async def chat_streams(self) -> None:
        """Waits until some of a chat's answer has come."""
        await self.wire.until(
            lambda: any(s["token"] == "chat" for s in self.wire.sent("$/progress"))
        )

    async def answer(self, request: int) -> dict[str, Any]:
        return await self.wire.answer(request)

    async def types_on(self) -> None:
        """Typing is not held up: changes are taken in, and a question about them answered."""
        for letter in "typed":
            self.type(letter)
        place = {"line": 1, "character": 10}
        params = {
            "textDocument": {"uri": self.uri},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": []},
        }
        self.asked.append(self.wire.ask("textDocument/codeAction", params))
        assert "error" not in await self.wire.answer(self.asked[-1])

    async def completes(self) -> str:
        """The next suggestion, for a text that nothing was suggested for yet."""
        self._copies += 1
        uri = f"{self.uri}.{self._copies}.py"
        self.wire.open(uri, SOURCE)
        self.asked.append(self.wire.ask_completion(uri, 1, 10))
        answer = await self.wire.answer(self.asked[-1])
        assert "error" not in answer, answer
        (item,) = answer["result"]["items"]
        text: str = item["insertText"]
        return text

    @property
    def told(self) -> list[str]:
        """What the user was shown."""
        return [shown["message"] for shown in self.wire.sent("window/showMessage")]

    def check(self) -> None:
        """What holds whatever has failed."""
        for request in self.asked:
            assert len(self.wire.answers(request)) == 1, request
        assert len(self.told) <= 1, self.told
        for message in self.told:
            assert "Traceback" not in message and "Error" not in message, message
        assert self.path.read_text(encoding="utf-8") == SOURCE


@contextlib.asynccontextmanager
async def window(
    home: Path,
    folder: Path,
    arguments: Sequence[str] = (),
    *,
    command: Sequence[str] = (),
    workspace: bool = False,
) -> AsyncIterator[Window]:
    """A window on a file of its own in ``folder``; at its end it is closed and checked.

    With ``workspace`` the folder is open in it and indexed, and other files show in prompts.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "shapes.py"
    path.write_text(SOURCE, encoding="utf-8", newline="\n")
    async with served(home, command or serve_command(*arguments)) as server:
        opened = Window(server, path)
        await opened.open(workspace=workspace)
        yield opened
        if server.process.returncode is None:
            await server.wire.quit()
            assert await server.ended() == 0
            assert await server.stderr() == ""
        opened.check()


def processes_of(home: Path) -> set[int]:
    """The processes that were started for ``home`` and run."""
    found = set()
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            ours = process.environ().get("FIMBLE_HOME") == str(home)
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
    return found


async def no_process_of(home: Path, *, but: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    """Waits until none is left."""
    await eventually(lambda: not processes_of(home) - but)


async def computing(window: Window, request: int) -> None:
    """Waits until the engine of FIMBLE_HOME computes for ``request``, which is unanswered."""

    def busy() -> bool:
        status = control.status()
        slots = [] if status is None else status.slots
        return any(slot["busy"] and slot["tokens"] for slot in slots)

    while not await asyncio.to_thread(busy):
        assert not window.wire.answers(request), window.wire.answers(request)
        await asyncio.sleep(0.01)


async def gone(pid: int) -> None:
    """Waits until the process has ended."""
    await eventually(lambda: not system.is_alive(pid))
