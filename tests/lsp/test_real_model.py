"""A real session on the real model: what is suggested is what a programmer would write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.assist.places import MARK
from tests.lsp.process import ServerProcess, ended_engine, served

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]

#: source with a cursor, what is inserted
FIXTURES = {
    "a function's body": (
        'def add(a, b):\n    """Return the sum of a and b."""\n    │\n\n\nprint(add(1, 2))\n',
        "return a + b",
    ),
    "a function's body, in a CRLF file": (
        'def is_even(n):\r\n    """Return True if n is even, False otherwise."""\r\n    │\r\n',
        "return n % 2 == 0",
    ),
    "the rest of a line, whose closing bracket is there": (
        "import os\n\n\ndef read_text(path):\n"
        '    """Return the text of the file at path."""\n'
        "    with open(│) as file:\n        return file.read()\n",
        "path, 'r'",
    ),
}


@pytest.fixture(scope="module")
def home(real_home: Path) -> Iterator[Path]:
    with ended_engine(real_home):
        yield real_home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(home: Path) -> AsyncIterator[ServerProcess]:
    async with served(home) as server:
        await server.wire.initialize()
        # Loading takes a while on a cold disk.
        await server.wire.until(
            lambda: any(sent["state"] == "ready" for sent in server.wire.sent("fimble/status")),
            patience=300,
        )
        yield server
        await server.wire.quit()
        assert await server.ended() == 0


@pytest.mark.parametrize("name", FIXTURES)
async def test_suggestions(server: ServerProcess, name: str) -> None:
    source, inserted = FIXTURES[name]
    before, _, after = source.partition(MARK)
    uri = f"file:///p/{len(name)}.py"
    server.wire.open(uri, before + after)
    line, column = before.count("\n"), len(before.rpartition("\n")[2])
    items = await server.wire.complete(uri, line, column, patience=300)
    assert [item["insertText"] for item in items] == [inserted]
