"""The server process: how it ends, what it prints where, and what it never writes down."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.lsp.process import ended_engine, engine_pid, serve_command, served, server_env

#: Nothing here needs an engine unless it says so.
OFF = {"completion": {"enabled": False}}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with ended_engine(tmp_path):
        yield tmp_path


async def test_exit_after_shutdown_is_0(home: Path) -> None:
    async with served(home) as server:
        await server.wire.initialize(initializationOptions=OFF)
        await server.wire.quit()
        assert await server.ended() == 0
        assert await server.stderr() == ""


async def test_exit_without_shutdown_is_1(home: Path) -> None:
    async with served(home) as server:
        await server.wire.initialize(initializationOptions=OFF)
        server.wire.notify("exit")
        assert await server.ended() == 1
        assert await server.stderr() == ""


async def test_it_ends_when_its_input_ends(home: Path) -> None:
    async with served(home) as server:
        await server.wire.initialize(initializationOptions=OFF)
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert await server.ended() == 1
        assert await server.stderr() == ""


async def test_it_ends_with_the_process_that_the_editor_named(home: Path) -> None:
    """Its pipes stay open: some other child of the editor may hold them."""
    editor = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=-1)
    async with served(home) as server:
        await server.wire.initialize(initializationOptions=OFF, processId=editor.pid)
        assert server.process.returncode is None
        editor.kill()
        await editor.wait()
        assert await server.ended() == 1


async def test_what_an_editor_sent_before_it_left_is_taken_in(home: Path) -> None:
    """Neovim 0.11 goes without waiting for answers."""
    async with served(home) as server:
        await server.wire.initialize(initializationOptions=OFF)
        server.stop_reading()
        server.wire.ask("initialize", {})  # refused at once, which nobody reads
        server.wire.ask("shutdown")
        server.wire.notify("exit")
        assert await server.ended() == 0


EDITOR = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
print(server.pid, flush=True)
sys.stdin.read()
"""


async def test_it_ends_when_the_editor_is_killed(home: Path) -> None:
    editor = await asyncio.create_subprocess_exec(
        sys.executable, "-c", EDITOR, *serve_command(), stdin=-1, stdout=-1, env=server_env(home)
    )
    assert editor.stdout is not None
    server = psutil.Process(int(await editor.stdout.readline()))
    editor.kill()
    await editor.wait()
    await asyncio.to_thread(psutil.wait_procs, [server], 30)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE


NOISY = """
import os, sys
from fimble.engine.base import ModelInfo
from fimble.lsp import serve
from tests.support.scripted_engine import ScriptedEngine

class Noisy(ScriptedEngine):
    async def model_info(self):
        print("printed by accident")
        os.write(1, b"written by a native library\\n")
        assert sys.stdin.read() == ""
        return await super().model_info()

sys.exit(serve(None, connect=lambda model, on_event: Noisy(["fine"])))
"""


async def test_what_prints_by_accident_does_not_reach_the_editor(home: Path) -> None:
    async with served(home, [sys.executable, "-c", NOISY]) as server:
        await server.wire.initialize()
        server.wire.open("untitled:1", "")
        (item,) = await server.wire.complete("untitled:1", 0, 0)
        assert item["insertText"] == "fine"
        await server.wire.quit()
        assert await server.ended() == 0
        assert "printed by accident" in (printed := await server.stderr())
        assert "written by a native library" in printed


STUCK = """
import asyncio, sys, time
from fimble.lsp import serve
from tests.support.scripted_engine import ScriptedEngine

class Stuck(ScriptedEngine):
    async def model_info(self):
        await asyncio.to_thread(time.sleep, 3600)

sys.exit(serve(None, connect=lambda model, on_event: Stuck([""])))
"""


async def test_an_engine_that_does_not_come_up_does_not_hold_up_the_end(home: Path) -> None:
    async with served(home, [sys.executable, "-c", STUCK]) as server:
        await server.wire.initialize()
        server.wire.open("untitled:1", "")
        request = server.wire.ask_completion("untitled:1", 0, 0)
        await server.wire.quit()
        assert await server.ended() == 0
        assert await server.stderr() == ""
    assert len(server.wire.answers(request)) == 1


SECRET = "the_users_own_source_text"

FAILING = """
import sys
from fimble.lsp import serve
from tests.support.scripted_engine import ScriptedEngine

def fail(request):
    raise ValueError(str(request.prompt))

sys.exit(serve(None, connect=lambda model, on_event: ScriptedEngine(fail)))
"""


@pytest.mark.parametrize("level", ["info", "debug"])
async def test_the_log_has_the_traceback_and_no_source_text(home: Path, level: str) -> None:
    async with served(home, [sys.executable, "-c", FAILING]) as server:
        wire = server.wire
        await wire.initialize(initializationOptions={"log": {"level": level}})
        wire.open("untitled:1", SECRET)
        answer = await wire.answer(wire.ask_completion("untitled:1", 0, 0))
        assert answer["error"]["code"] == -32603
        wire.ask("textDocument/inlineCompletion", {"textDocument": {"uri": SECRET}})
        wire.notify("textDocument/didChange", {"textDocument": SECRET})
        wire.notify("textDocument/didChange", {"contentChanges": [SECRET]})
        await wire.quit()
        assert await server.ended() == 0
        stderr = await server.stderr()
    log = (home / "logs" / "server.log").read_text(encoding="utf-8")
    assert "inline_completion.py" in log
    assert "ValueError" in log
    assert SECRET not in str(wire.messages)
    assert SECRET not in log
    assert SECRET not in stderr
    assert bool(stderr) == (level == "debug")


async def no_suggestion(home: Path, *arguments: str, **initialize: Any) -> list[str]:
    """The messages of a session in which nothing can be suggested."""
    async with served(home, serve_command(*arguments)) as server:
        wire = server.wire
        await wire.initialize(**initialize)
        wire.open("untitled:1", "x = ")
        for _ in range(3):
            assert await wire.complete("untitled:1", 0, 4) == []
        assert wire.sent("fimble/status")[-1]["state"] == "error"
        await wire.quit()
        assert await server.ended() == 0
        assert await server.stderr() == ""
    return [shown["message"] for shown in wire.sent("window/showMessage")]


async def test_without_a_model_there_is_one_clear_message(home: Path) -> None:
    (message,) = await no_suggestion(home)
    assert "fimble model pull" in message
    assert engine_pid(home) is not None


@pytest.mark.parametrize("how", ["argument", "setting"])
async def test_a_model_that_is_not_installed_is_named_once(home: Path, how: str) -> None:
    arguments = ("--model", "absent") if how == "argument" else ()
    options = {"model": "absent"} if how == "setting" else {}
    (message,) = await no_suggestion(home, *arguments, initializationOptions=options)
    assert "absent" in message
