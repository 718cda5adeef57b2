"""A window or its editor is killed in the middle of an answer: the engine serves the others."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import psutil

from fimble.engine import control
from tests.lsp.faults.window import OPTIONS, SOURCE, computing, gone, no_process_of, window
from tests.lsp.process import engine_pid, serve_command, server_env
from tests.support.waiting import eventually


def at_rest() -> bool:
    status = control.status()
    return status is not None and not any(slot["busy"] for slot in status.slots)


async def test_a_server_that_is_killed_frees_what_it_held(
    home: Path, slow: Path, tmp_path: Path
) -> None:
    arguments = ["--model", str(slow)]
    async with window(home, tmp_path / "other", arguments) as other:
        await other.wire.until(
            lambda: (
                other.wire.sent("fimble/status")[-1:] != []
                and other.wire.sent("fimble/status")[-1]["state"] == "ready"
            )
        )
        engine = engine_pid(home)
        async with window(home, tmp_path / "killed", arguments) as editor:
            chat = editor.ask_chat("Say something long.")
            await editor.chat_streams()
            await computing(editor, chat)
            editor.server.process.kill()
            await editor.server.ended()
            editor.asked.clear()  # nobody is there to answer
        await eventually(at_rest)
        await other.types_on()
        assert await other.completes()
        assert engine_pid(home) == engine
        assert not other.told


EDITOR = """
import json, subprocess, sys
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
for message in json.loads(sys.argv[1]):
    body = json.dumps(message).encode()
    server.stdin.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
    server.stdin.flush()
while b'"chat"' not in server.stdout.readline():
    pass
print(server.pid, flush=True)
sys.stdin.read()
"""


def conversation(file: Path) -> list[dict[str, object]]:
    """What an editor sends that asks for a chat at once."""
    initialize = {
        "processId": None,
        "rootUri": file.parent.as_uri(),
        "capabilities": {},
        "initializationOptions": OPTIONS,
    }
    item = {"uri": file.as_uri(), "languageId": "python", "version": 1, "text": SOURCE}
    chat = {"message": "Say something long.", "partialResultToken": "chat"}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize},
        {"jsonrpc": "2.0", "method": "initialized", "params": {}},
        {"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}},
        {"jsonrpc": "2.0", "id": 2, "method": "fimble/chat", "params": chat},
    ]


async def test_an_editor_that_is_killed_leaves_the_engine_alone_behind(
    home: Path, slow: Path, tmp_path: Path
) -> None:
    file = tmp_path / "work" / "shapes.py"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8", newline="\n")
    editor = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        EDITOR,
        json.dumps(conversation(file)),
        *serve_command("--model", str(slow)),
        stdin=-1,
        stdout=-1,
        env=server_env(home),
    )
    assert editor.stdout is not None
    server = int(await editor.stdout.readline())
    editor.kill()
    await editor.wait()
    await gone(server)
    engine = engine_pid(home)
    assert engine is not None
    await no_process_of(home, but={engine})
    await eventually(at_rest)
    assert file.read_text(encoding="utf-8") == SOURCE
    assert psutil.Process(engine).is_running()
