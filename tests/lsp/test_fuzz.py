"""Whatever an editor sends: the server goes on, answers as the specification says, and has the
editor's text or none.

``fuzz/`` holds a case a file, in a few lines: what is sent (``send`` JSON in a frame, ``raw`` bytes
as in Python's literals), and what comes of it (``code ID CODE``, ``result ID``, ``text`` of the
document, null for one that counts as closed, ``ends CODE``). Before it ``untitled:fuzz`` is open
with ``TEXT`` in version 1; ``fresh`` asks for a server that has seen nothing.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lsp.noise import INTERNAL, TEXT, URI, step
from tests.lsp.process import ServerProcess, served
from tests.lsp.test_text_sync import units

pytestmark = pytest.mark.asyncio(loop_scope="module")

CASES = sorted((Path(__file__).parent / "fuzz").glob("*.txt"))

#: The server, with one request more: what it takes for the text of a document.
TELLING = """
import sys
from fimble.lsp import entry
from fimble.lsp.server import FimbleServer
from tests.support.scripted_engine import ScriptedEngine

class Telling(FimbleServer):
    def _register_features(self):
        super()._register_features()
        @self.feature("test/text")
        def text(params):
            document = self.documents.get(params["uri"])
            return None if document is None else document.text

entry.FimbleServer = Telling
sys.exit(entry.serve(None, connect=lambda model, on_event: ScriptedEngine(["x"])))
"""


@dataclass
class Servers:
    """One server for as long as it lives; another one when a case has ended it."""

    home: Path
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    current: ServerProcess | None = None

    async def fresh(self) -> ServerProcess:
        await self.stack.aclose()
        command = [sys.executable, "-c", TELLING]
        self.current = await self.stack.enter_async_context(served(self.home, command))
        return self.current

    async def ready(self, text: str = TEXT) -> ServerProcess:
        """An initialized server in which the document is open with ``text``."""
        server = self.current
        if server is None or server.wire.closed or server.process.returncode is not None:
            server = await self.fresh()
            await server.wire.initialize()
        server.wire.open(URI, text)
        server.wire.messages.clear()
        return server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def servers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Servers]:
    found = Servers(tmp_path_factory.mktemp("home"))
    yield found
    await found.stack.aclose()


async def text_of(server: ServerProcess) -> Any:
    return await server.wire.request("test/text", {"uri": URI})


def raw(literal: str) -> bytes:
    value = ast.literal_eval(f"b'''{literal}'''")
    assert isinstance(value, bytes)
    return value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
async def test_case(servers: Servers, case: Path) -> None:
    lines = case.read_text(encoding="utf-8").splitlines()
    steps = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    fresh = steps[0][0] == "fresh"
    server = await (servers.fresh() if fresh else servers.ready())
    wire = server.wire
    wire.next_id = 1000
    for what, _, rest in steps:
        if what == "send":
            wire.send(json.loads(rest))
        elif what == "raw":
            wire.write(raw(rest))
        elif what == "code":
            id, code = json.loads(f"[{rest.replace(' ', ',')}]")
            answer = await wire.answer(id)
            wire.messages.remove(answer)
            assert "id" in answer
            assert answer["error"]["code"] == code
        elif what == "result":
            assert "error" not in await wire.answer(json.loads(rest))
        elif what == "text":
            assert await text_of(server) == json.loads(rest)
        elif what == "ends":
            assert await server.ended() == int(rest)
            assert await server.stderr() == ""
        else:
            assert what == "fresh"
    if fresh:
        servers.current = None
    else:
        await text_of(server)


# --- random sessions ------------------------------------------------------------------------


def lines_of(text: str) -> list[tuple[int, str]]:
    """Where each line starts, and its text without the terminator."""
    starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    return list(zip(starts, re.split(r"\r\n|\r|\n", text), strict=True))


def place(text: str, line: int, character: int) -> int:
    """The index that a position means, clamped as the specification says; the naive way."""
    lines = lines_of(text)
    if line >= len(lines):
        return len(text)
    start, content = lines[line]
    while units(content, "utf-16") > character:
        content = content[:-1]
    return start + len(content)


def applied(text: str, event: dict[str, Any]) -> str:
    """The text after one change, the naive way."""
    if "range" not in event:
        return str(event["text"])
    ends = event["range"]["start"], event["range"]["end"]
    start, end = sorted(place(text, each["line"], each["character"]) for each in ends)
    return text[:start] + str(event["text"]) + text[end:]


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(step, min_size=1, max_size=8))
async def test_random_sessions(servers: Servers, steps: list[Any]) -> None:
    server = await servers.ready()
    wire, asked = server.wire, 0
    expected: str | None = TEXT
    for what, *given_ in steps:
        if what == "change":
            number, changes = given_
            wire.change(URI, number, *changes)
            for event in changes:
                expected = None if expected is None else applied(expected, event)
        elif what == "broken":
            (params,) = given_
            wire.notify("textDocument/didChange", params)
            expected = None
        elif what == "frame":
            (body,) = given_
            wire.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        else:
            (message,) = given_
            wire.send(message)
            asked += _is_request(message)
    wire.next_id += 10
    assert await text_of(server) in (expected, None)
    assert not [m for m in wire.messages if m.get("error", {}).get("code") == INTERNAL]
    await wire.until(lambda: len([m for m in wire.messages if m.get("id") in (1, 2, 3)]) >= asked)


def _is_request(message: Any) -> bool:
    """Whether it has an id that ``noise`` gives to requests, and so must be answered."""
    if not isinstance(message, dict) or not isinstance(message.get("method"), str):
        return False
    return message.get("id") in (1, 2, 3) and type(message["id"]) is int
