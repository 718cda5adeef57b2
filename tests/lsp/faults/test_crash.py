"""Native code that crashes under a window, in the engine or in the server itself: what is told,
and that nothing the user has typed is left anywhere.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.lsp.faults.window import gone, window
from tests.lsp.process import engine_pid, serve_command, served

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="a process cannot be sent an access violation"
)

PLANTED = "PLANTED7Q2X9"


def holding(home: Path) -> list[Path]:
    """The files that have what was typed in them, and images of memory."""
    kept = [path for path in home.rglob("*") if path.is_file()]
    assert kept
    return [path for path in kept if PLANTED.encode() in path.read_bytes() or "core" in path.name]


async def test_the_engines_crash_is_told_once_with_its_cause_and_its_log(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    async with window(home, tmp_path / "work", ["--model", str(tiny)]) as editor:
        assert await editor.completes()
        pid = engine_pid(home)
        assert pid is not None
        os.kill(pid, signal.SIGSEGV)
        await gone(pid)
        assert await editor.completes()
        (told,) = editor.told
        assert "ended unexpectedly, by a segmentation fault in native code" in told
        assert str(home / "logs" / "engine.log") in told


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT"])
async def test_a_crash_of_the_server_leaves_nothing_of_a_document(
    name: str, home: Path, tiny: Path, tmp_path: Path
) -> None:
    uri = (tmp_path / "work" / f"{PLANTED}.py").as_uri()
    async with served(home, serve_command("--model", str(tiny))) as server:
        options = {"completion": {"minConfidence": 0.0}, "log": {"level": "debug"}}
        await server.wire.initialize(initializationOptions=options)
        server.wire.open(uri, f"key = '{PLANTED}'\n# the \n")
        assert "error" not in await server.wire.answer(server.wire.ask_completion(uri, 1, 6))
        server.process.send_signal(getattr(signal, name))
        assert await server.ended() == -getattr(signal, name)
        assert PLANTED not in await server.stderr()
    assert holding(home) == []
