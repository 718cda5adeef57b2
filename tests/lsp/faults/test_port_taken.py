"""The runtime file leads to a stranger: a server of somebody else's that has the port.

The window gets its completion from an engine of its own, and the stranger sees nothing.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fimble import system
from fimble.engine.address import EngineAddress, read_address, write_address
from fimble.engine.protocol import PROTOCOL_VERSION
from tests.lsp.faults.window import window
from tests.lsp.process import engine_pid

#: Says its port, then all that it is sent. ``argv[1]`` is what it answers; nothing, if empty.
STRANGER = r"""
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        connection, _ = server.accept()
        print(connection.recv(65536), flush=True)
        if sys.argv[1]:
            connection.sendall(sys.argv[1].encode())
            connection.close()
"""
ANSWERS = {
    "yes to all": 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"pid": 1}',
    "no to all": "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n",
    "no HTTP": "220 mail.example ESMTP\r\n",
    "silence": "",
}


class Stranger:
    def __init__(self, answer: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", STRANGER, answer], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def heard(self) -> str:
        """All that it was sent; ends it."""
        self.end()
        assert self.process.stdout is not None
        with self.process.stdout as said:
            return said.read()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(params=ANSWERS)
def stranger(request: pytest.FixtureRequest) -> Iterator[Stranger]:
    stranger = Stranger(ANSWERS[request.param])
    yield stranger
    stranger.end()


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process that lives and serves nobody."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.communicate(b"\n")


async def test_a_port_that_a_stranger_has_now_is_not_asked(
    home: Path, tiny: Path, tmp_path: Path, stranger: Stranger, bystander: int
) -> None:
    """The worst case: a process lives under the id, and has lived since the same moment."""
    began = system.process_started_at(bystander)
    write_address(
        EngineAddress(bystander, began, stranger.port, "our secret", "0", PROTOCOL_VERSION)
    )
    async with window(home, tmp_path / "work", ["--model", str(tiny)]) as editor:
        assert await editor.completes()
        assert not editor.told
        assert engine_pid(home) not in (None, bystander)
    assert stranger.heard() == ""


@pytest.mark.parametrize("stranger", ["yes to all"], indirect=True)
async def test_an_engine_whose_file_leads_to_a_stranger_is_found_again(
    home: Path, tiny: Path, tmp_path: Path, stranger: Stranger
) -> None:
    arguments = ["--model", str(tiny)]
    async with window(home, tmp_path / "one", arguments) as one:
        before = await one.completes()
        engine = read_address()
        assert engine is not None
        write_address(replace(engine, port=stranger.port))
        async with window(home, tmp_path / "two", arguments) as two:
            assert await two.completes() == before
            assert not two.told
        assert await one.completes() == before
        assert engine_pid(home) == engine.pid
        assert not one.told
    assert stranger.heard() == ""
