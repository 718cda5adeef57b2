"""The engine is killed, or hangs, under a window: at each stage of its work.

Typing goes on, each request gets one response, the user is told once, and the next suggestion
comes from a new engine. What the window owes whatever fails is checked at its end.
"""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

from tests.lsp.faults.window import Window, computing, gone, no_process_of, window
from tests.lsp.process import engine_pid

#: A server that does not wait as long for a hanging engine as outside of tests.
IMPATIENT = """
import sys
from fimble.engine import watchdog
from fimble.lsp import serve

watchdog._INTERVAL_SECONDS = 0.3
watchdog.STOPPED_SECONDS = 1.0
sys.exit(serve(sys.argv[1]))
"""


def engine(home: Path) -> psutil.Process:
    pid = engine_pid(home)
    assert pid is not None
    return psutil.Process(pid)


async def killed(process: psutil.Process) -> None:
    process.kill()
    await gone(process.pid)


async def goes_on(window: Window, home: Path, former: psutil.Process) -> None:
    """After a fault: typing, the next suggestion, and no engine but the new one."""
    await window.types_on()
    assert await window.completes()
    assert engine(home).pid != former.pid
    assert not psutil.pid_exists(former.pid)


def states(window: Window) -> list[str]:
    return [sent["state"] for sent in window.wire.sent("fimble/status")]


async def test_killed_while_it_loads_the_model(home: Path, slow: Path, tmp_path: Path) -> None:
    async with window(home, tmp_path / "work", ["--model", str(slow)]) as editor:
        await editor.wire.until(lambda: "loading" in states(editor))
        first = engine(home)
        request = editor.ask()
        await killed(first)
        await editor.types_on()
        await editor.answer(request)
        await goes_on(editor, home, first)
        assert len(editor.told) == 1


async def test_killed_while_it_computes_a_prompt(home: Path, slow: Path, tmp_path: Path) -> None:
    async with window(home, tmp_path / "work", ["--model", str(slow)]) as editor:
        chat = editor.ask_chat("x = 1\n" * 300)
        await computing(editor, chat)
        completion = editor.ask()
        first = engine(home)
        await killed(first)
        await editor.types_on()
        assert "error" in await editor.answer(chat)
        await editor.answer(completion)
        await goes_on(editor, home, first)
        assert len(editor.told) == 1


async def test_killed_in_the_middle_of_an_answer(home: Path, slow: Path, tmp_path: Path) -> None:
    async with window(home, tmp_path / "work", ["--model", str(slow)]) as editor:
        chat = editor.ask_chat("Say something long.")
        await editor.chat_streams()
        first = engine(home)
        await killed(first)
        await editor.types_on()
        assert "error" in await editor.answer(chat)
        await goes_on(editor, home, first)
        assert len(editor.told) == 1


async def test_killed_between_requests(home: Path, tiny: Path, tmp_path: Path) -> None:
    async with window(home, tmp_path / "work", ["--model", str(tiny)]) as editor:
        before = await editor.completes()
        first = engine(home)
        await killed(first)
        await goes_on(editor, home, first)
        assert await editor.completes() == before
        assert len(editor.told) == 1


async def test_hung_in_the_middle_of_an_answer(home: Path, slow: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPATIENT, str(slow)]
    async with window(home, tmp_path / "work", command=command) as editor:
        chat = editor.ask_chat("Say something long.")
        await editor.chat_streams()
        first = engine(home)
        first.suspend()
        await editor.types_on()
        assert "error" in await editor.answer(chat)
        await gone(first.pid)
        await goes_on(editor, home, first)
        (message,) = editor.told
        assert "hung and was ended" in message


async def test_hung_between_requests(home: Path, tiny: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPATIENT, str(tiny)]
    async with window(home, tmp_path / "work", command=command) as editor:
        await editor.completes()
        first = engine(home)
        first.suspend()
        await editor.types_on()
        requests = [editor.ask() for _ in range(3)]
        for request in requests:
            await editor.answer(request)
        await gone(first.pid)
        await goes_on(editor, home, first)
        assert len(editor.told) == 1


async def test_no_process_is_left_after_the_windows_and_the_engine(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    async with window(home, tmp_path / "work", ["--model", str(tiny)], workspace=True) as editor:
        await editor.completes()
        first = engine(home)
        await killed(first)
        await goes_on(editor, home, first)
        last = engine(home)
    await no_process_of(home, but={last.pid})
    last.terminate()
    await no_process_of(home)
