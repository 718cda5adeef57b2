"""A plain client, the server as a process, the real model: code actions from offer to text."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.lsp.process import ServerProcess, ended_engine, served
from tests.lsp.test_code_action import MODERN, applied, span

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]

TEXT = "def total(prices):\n    return sum(price)\n\n\nprint(total([1, 2]))\n"


@pytest.fixture(scope="module")
def home(real_home: Path) -> Iterator[Path]:
    with ended_engine(real_home):
        yield real_home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(home: Path) -> AsyncIterator[ServerProcess]:
    async with served(home) as server:
        await server.wire.initialize(capabilities=MODERN)
        await server.wire.until(
            lambda: any(sent["state"] == "ready" for sent in server.wire.sent("fimble/status")),
            patience=300,
        )
        yield server
        await server.wire.quit()
        assert await server.ended() == 0


async def made(server: ServerProcess, uri: str, kind: str, context: dict[str, Any]) -> Any:
    params = {"textDocument": {"uri": uri}, "range": span(1, 4, 4), "context": context}
    offered = await server.wire.request("textDocument/codeAction", params)
    (action,) = [each for each in offered if each["kind"] == kind]
    return await server.wire.request("codeAction/resolve", action, patience=300)


async def test_a_problem_is_fixed(server: ServerProcess) -> None:
    uri = "file:///p/fix.py"
    server.wire.open(uri, TEXT)
    diagnostic = {"range": span(1, 15, 20), "message": 'undefined name "price"'}
    context = {"diagnostics": [diagnostic], "only": ["quickfix"]}
    action = await made(server, uri, "quickfix", context)
    (change,) = action["edit"]["documentChanges"]
    assert applied(TEXT, change["edits"]) == TEXT.replace("sum(price)", "sum(prices)")


async def test_a_function_is_documented(server: ServerProcess) -> None:
    uri = "file:///p/document.py"
    text = TEXT.replace("sum(price)", "sum(prices)")
    server.wire.open(uri, text)
    action = await made(server, uri, "refactor.rewrite.document", {"diagnostics": []})
    (change,) = action["edit"]["documentChanges"]
    lines = applied(text, change["edits"]).split("\n")
    assert lines[1].startswith('    """')
    # But for the docstring, nothing is another.
    old = text.split("\n")
    assert lines[0] == old[0] and lines[-len(old) + 1 :] == old[1:]
