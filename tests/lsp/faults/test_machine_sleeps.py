"""The machine sleeps with a window open: editor's server and engine stop, and go on, together.

A deadline that is shorter than the sleep is up when they wake; nobody may take it for a fault.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.lsp.faults.test_engine_fails import IMPATIENT, engine
from tests.lsp.faults.window import Window, window

#: Seconds; the impatient server waits for one.
ASLEEP = 2.5


async def sleeps(processes: Sequence[psutil.Process]) -> None:
    """Stops them, the first one first, and wakes them the other way round."""
    for process in processes:
        process.suspend()
    await asyncio.sleep(ASLEEP)
    for process in reversed(processes):
        process.resume()


def server(window: Window) -> psutil.Process:
    return psutil.Process(window.server.process.pid)


async def test_asleep_in_the_middle_of_an_answer_it_goes_on(
    home: Path, slow: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", IMPATIENT, str(slow)]
    async with window(home, tmp_path / "work", command=command) as editor:
        chat = editor.ask_chat("Say something long.")
        await editor.chat_streams()
        former = engine(home)
        await sleeps([server(editor), former])
        await editor.types_on()
        assert await editor.completes()
        assert "error" not in await editor.answer(chat)
        assert engine(home).pid == former.pid
        assert not editor.told


async def test_asleep_between_requests_it_goes_on(home: Path, tiny: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPATIENT, str(tiny)]
    async with window(home, tmp_path / "work", command=command) as editor:
        assert await editor.completes()
        former = engine(home)
        sleeping = asyncio.create_task(sleeps([server(editor), former]))
        # Typed as the lid is closed or opened: read when they wake.
        editor.type()
        request = editor.ask()
        await sleeping
        await editor.answer(request)
        await editor.types_on()
        assert await editor.completes()
        assert engine(home).pid == former.pid
        assert not editor.told
