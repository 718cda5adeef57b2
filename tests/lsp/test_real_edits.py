"""A plain client, the server as a process, the real model: each action and command to its end."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from fimble import system
from fimble.lsp.chat import CHAT_COMMANDS
from tests.chat.test_git_diff import git
from tests.lsp.process import ServerProcess, ended_engine, served
from tests.lsp.test_code_action import MODERN, applied, span

pytestmark = [pytest.mark.model, pytest.mark.asyncio(loop_scope="module")]

TEXT = "def total(prices):\n    return sum(price)\n\n\nprint(total([1, 2]))\n"
SHOP = """def cheapest(prices):
    best = None
    for price in prices:
        if best is None or price < best:
            best = price
    return best


LIMIT = 3
"""


@pytest.fixture(scope="module")
def home(real_home: Path) -> Iterator[Path]:
    with ended_engine(real_home):
        yield real_home


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a change that is staged."""
    root = tmp_path_factory.mktemp("work") / "shop"
    root.mkdir()
    git(root, "init", "-q")
    for text in (SHOP.replace("best = price", "pass"), SHOP):
        (root / "shop.py").write_text(text, encoding="utf-8", newline="\n")
        git(root, "add", ".")
        if text != SHOP:
            git(root, "commit", "-qm", "first")
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(home: Path, root: Path) -> AsyncIterator[ServerProcess]:
    async with served(home) as server:
        await server.wire.initialize(
            capabilities=MODERN,
            workspaceFolders=[{"uri": system.uri_from_path(root), "name": "shop"}],
            initializationOptions={"chat": {"maxTokens": 32}},
        )
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


async def test_every_action_gives_an_edit_or_the_reason_why_not(
    server: ServerProcess, root: Path
) -> None:
    wire, uri = server.wire, system.uri_from_path(root / "shop.py")
    wire.open(uri, SHOP)
    params = {"textDocument": {"uri": uri}, "range": span(3, 8, 8), "context": {"diagnostics": []}}
    offered = await wire.request("textDocument/codeAction", params)
    made = [each for each in offered if "data" in each]
    kinds = {each["kind"].rpartition(".")[2] for each in made}
    assert kinds == {"simplify", "optimise", "types", "errors", "rename", "document", "tests"}
    for action in made:
        answer = await wire.answer(wire.ask("codeAction/resolve", action), patience=600)
        if "error" in answer:
            error = answer["error"]
            assert error["code"] == -32803 and error["message"].startswith("Nothing was changed.")
            assert error["data"]["name"] and error["data"]["answer"]
            continue
        *_, change = answer["result"]["edit"]["documentChanges"]
        if action["kind"] == "source.tests":
            assert change["textDocument"]["uri"] == system.uri_from_path(root / "test_shop.py")
            assert "cheapest" in applied("", change["edits"])
            continue
        text = applied(SHOP, change["edits"])
        assert text != SHOP and text.endswith(SHOP.partition("return best")[2])
        assert "cheapest" in [getattr(node, "name", "") for node in ast.parse(text).body]


@pytest.mark.parametrize("name", CHAT_COMMANDS)
async def test_every_command_answers_with_text(
    server: ServerProcess, root: Path, name: str
) -> None:
    uri = system.uri_from_path(root / "shop.py")
    about = [uri] if name in ("fimble.review", "fimble.commitMessage") else [uri, span(3, 8, 8)]
    params = {"command": name, "arguments": about}
    result = await server.wire.request("workspace/executeCommand", params, patience=300)
    assert result["text"].strip() and result["usage"]["completion_tokens"] > 0
    assert [item["reason"] for item in result["context"]]
    shown = system.path_from_uri(result["document"])
    assert shown is not None and Path(shown).read_text(encoding="utf-8").strip()


async def test_an_instruction_is_followed(server: ServerProcess) -> None:
    uri = "file:///p/instruction.py"
    text = "def half(n):\n    return n / 2\n"
    server.wire.open(uri, text)
    arguments = [uri, span(1, 4, 16), "return 0 if n is None"]
    params = {"command": "fimble.edit", "arguments": arguments}
    result = await server.wire.request("workspace/executeCommand", params, patience=300)
    (change,) = result["edit"]["documentChanges"]
    found = applied(text, change["edits"])
    assert found.startswith("def half(n):\n    ") and "None" in found and ast.parse(found)
