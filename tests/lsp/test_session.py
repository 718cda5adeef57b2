"""Real sessions: pytest-lsp's client, the server process, an engine process, the tiny model.

The tiny model's answers are noise, but the same noise for the same prompt: equal answers
mean equal prompts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
import pytest_lsp
from lsprotocol import types

from fimble import system
from tests.lsp.process import ended_engine, engine_pid, serve_command, server_env
from tests.support.tiny import make_tiny_package

pytestmark = pytest.mark.asyncio(loop_scope="module")

#: In a comment, where no noise is trimmed for what it does to the syntax.
SOURCE = "def area(width, height):\n    # the \n\n\nprint(area(2, 3))\n"
CURSOR = types.Position(1, 10)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("home")
    make_tiny_package(system.home({"FIMBLE_HOME": str(home)}) / "models" / "tiny")
    with ended_engine(home):
        yield home


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(home: Path) -> AsyncIterator[pytest_lsp.LanguageClient]:
    config = pytest_lsp.ClientServerConfig(
        serve_command("--model", "tiny"), server_env=server_env(home)
    )
    client = await config.start()
    assert isinstance(client, pytest_lsp.LanguageClient)
    client.statuses = statuses = []  # type: ignore[attr-defined]

    def status(params: Any) -> None:
        statuses.append(params.state)

    client.feature("fimble/status")(status)
    result = await client.initialize_session(
        types.InitializeParams(
            types.ClientCapabilities(
                window=types.WindowClientCapabilities(work_done_progress=True),
                workspace=types.WorkspaceClientCapabilities(configuration=True),
            ),
            # Nothing that a model with random weights says is sure.
            initialization_options={"completion": {"minConfidence": 0.0}},
        )
    )
    assert result.capabilities.inline_completion_provider is not None
    yield client
    await client.shutdown_session()
    await client.stop()  # type: ignore[no-untyped-call]


def open_document(client: pytest_lsp.LanguageClient, uri: str, text: str) -> None:
    item = types.TextDocumentItem(uri, "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))


async def complete(
    client: pytest_lsp.LanguageClient, uri: str, position: types.Position
) -> list[str]:
    """The texts that would be inserted."""
    result = await client.text_document_inline_completion_async(
        types.InlineCompletionParams(
            types.InlineCompletionContext(types.InlineCompletionTriggerKind.Automatic),
            types.TextDocumentIdentifier(uri),
            position,
        )
    )
    assert isinstance(result, types.InlineCompletionList)
    for item in result.items:
        assert item.range == types.Range(position, position)
    return [str(item.insert_text) for item in result.items]


async def test_a_session_completes(client: pytest_lsp.LanguageClient) -> None:
    open_document(client, "file:///p/a.py", SOURCE)
    texts = await complete(client, "file:///p/a.py", CURSOR)
    assert len(texts) == 1
    assert texts[0]
    assert not client.messages
    assert client.statuses[-2:] == ["busy", "ready"]  # type: ignore[attr-defined]


async def test_edits_leave_the_same_prompt_as_the_finished_text(
    client: pytest_lsp.LanguageClient,
) -> None:
    open_document(client, "file:///p/finished.py", SOURCE)
    open_document(client, "file:///p/edited.py", SOURCE.replace("width", "😀w"))
    place = types.Range(types.Position(0, 9), types.Position(0, 12))
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(2, "file:///p/edited.py"),
            [types.TextDocumentContentChangePartial(range=place, text="width")],
        )
    )
    expected = await complete(client, "file:///p/finished.py", CURSOR)
    assert await complete(client, "file:///p/edited.py", CURSOR) == expected != []


async def test_typing_through_a_suggestion(client: pytest_lsp.LanguageClient) -> None:
    """The model makes noise: only what is remembered goes on with the same text."""
    uri = "file:///p/through.py"
    open_document(client, uri, SOURCE)
    (text,) = await complete(client, uri, CURSOR)
    end = types.Position(CURSOR.line, CURSOR.character + 1)
    typed = types.TextDocumentContentChangePartial(range=types.Range(CURSOR, CURSOR), text=text[0])
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, uri), [typed])
    )
    assert await complete(client, uri, end) == [text[1:]]


async def test_five_requests_at_once_get_one_answer_each(
    client: pytest_lsp.LanguageClient,
) -> None:
    """pytest-lsp fails a test in which a request gets no answer or an unknown one."""
    open_document(client, "file:///p/five.py", SOURCE)
    requests = [complete(client, "file:///p/five.py", CURSOR) for _ in range(5)]
    *older, newest = await asyncio.gather(*requests)
    assert len(newest) == 1
    # An older one is superseded, unless it was done before the next one came.
    assert all(texts in ([], newest) for texts in older)


async def test_a_crlf_file_is_completed_like_its_lf_twin(
    client: pytest_lsp.LanguageClient,
) -> None:
    open_document(client, "file:///p/lf.py", SOURCE)
    open_document(client, "file:///p/crlf.py", SOURCE.replace("\n", "\r\n"))
    (expected,) = await complete(client, "file:///p/lf.py", CURSOR)
    (text,) = await complete(client, "file:///p/crlf.py", CURSOR)
    assert text == expected.replace("\n", "\r\n")


async def test_control_tokens_in_a_file_are_text(client: pytest_lsp.LanguageClient) -> None:
    """The prompt would end in the middle of the prefix if they were not."""
    with_tokens = SOURCE.replace("area(2, 3)", "'<|fim_middle|><|endoftext|>'")
    open_document(client, "file:///p/plain.py", SOURCE)
    open_document(client, "file:///p/tokens.py", with_tokens)
    for uri in ("file:///p/plain.py", "file:///p/tokens.py"):
        (text,) = await complete(client, uri, CURSOR)
        assert "<|" not in text


async def test_a_long_file_is_cut_to_the_window(client: pytest_lsp.LanguageClient) -> None:
    """16,000 lines, 1.3 MB, and a model whose window is 2,048 tokens."""
    lines = [
        f"    value_{n} = compute(first_argument, second_argument, {n})" for n in range(16_000)
    ]
    open_document(client, "untitled:large", "\n".join(lines))
    assert len(await complete(client, "untitled:large", types.Position(8_000, 4))) == 1
    assert not client.messages


async def test_a_killed_engine_is_started_again_by_the_next_request(
    client: pytest_lsp.LanguageClient, home: Path
) -> None:
    open_document(client, "file:///p/killed.py", SOURCE)
    expected = await complete(client, "file:///p/killed.py", CURSOR)
    first = engine_pid(home)
    assert first is not None
    psutil.Process(first).kill()
    while system.is_alive(first):
        await asyncio.sleep(0.01)
    # The same text in another document: what was suggested in the first one is remembered.
    open_document(client, "file:///p/again.py", SOURCE)
    assert await complete(client, "file:///p/again.py", CURSOR) == expected
    assert engine_pid(home) not in (None, first)
    assert len([m for m in client.messages if "ended unexpectedly" in m.message]) == 1
