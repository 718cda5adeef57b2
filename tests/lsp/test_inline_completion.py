"""Inline completion over the wire: one answer a request, the newest wins, failures in words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.errors import EngineUnavailable, GenerationFailed, ModelNotFound
from tests.assist.places import MARK
from tests.lsp.wire import Session, Wire, in_process
from tests.support.scripted_engine import ScriptedEngine, prompt_as_text

URI = "file:///p/a.py"
EMPTY: dict[str, Any] = {"items": []}
NOT_AHEAD = {"ahead": False}

#: source with a cursor, position in UTF-16 (line, character), prompt, answer, inserted text
FIXTURES = [
    ("x = │\n", (0, 4), "<fim_prefix>x = <fim_suffix>\n<fim_middle>", "1", "1"),
    ('"µ漢😀│"', (0, 5), '<fim_prefix>"µ漢😀<fim_suffix>"<fim_middle>', "!", "!"),
    ("│", (0, 0), "<fim_prefix><fim_suffix><fim_middle>", "import os\n", "import os"),
    ("if a:│\r\n", (0, 5), "<fim_prefix>if a:<fim_suffix>\n<fim_middle>", "\n  b\n", "\r\n  b"),
    ("x│", (0, 99), "<fim_prefix>x<fim_suffix><fim_middle>", " = 1", " = 1"),
    ("x\n│", (99, 0), "<fim_prefix>x\n<fim_suffix><fim_middle>", "y", "y"),
]


@pytest.mark.parametrize(("source", "position", "prompt", "answer", "inserted"), FIXTURES)
async def test_fixtures(
    source: str, position: tuple[int, int], prompt: str, answer: str, inserted: str
) -> None:
    engine = ScriptedEngine([answer])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        session.wire.open(URI, source.replace(MARK, ""))
        items = await session.wire.complete(URI, *position)
    assert prompt_as_text(engine.requests[0].prompt) == prompt
    assert [item["insertText"] for item in items] == [inserted]


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 10), ("utf-16", 5), ("utf-32", 4)])
async def test_positions_in_the_encoding_that_was_agreed_on(encoding: str, column: int) -> None:
    engine = ScriptedEngine(["!"])
    general = {"positionEncodings": [encoding]}
    async with in_process(lambda model: engine) as session:
        result = await session.wire.initialize(capabilities={"general": general})
        assert result["capabilities"]["positionEncoding"] == encoding
        session.wire.open(URI, '"µ漢😀"')
        (item,) = await session.wire.complete(URI, 0, column)
    assert prompt_as_text(engine.requests[0].prompt) == (
        '<fim_prefix>"µ漢😀<fim_suffix>"<fim_middle>'
    )
    place = {"line": 0, "character": column}
    command = {"title": "Accepted", "command": "fimble.accepted", "arguments": ["1"]}
    assert item == {
        "insertText": "!",
        "range": {"start": place, "end": place},
        "command": command,
    }


async def until_asked(session: Session, engine: ScriptedEngine, count: int) -> None:
    """Waits until the engine got its ``count``-th request."""
    await session.wire.until(lambda: len(engine.requests) >= count)


async def test_five_requests_in_200_ms_get_one_answer_each() -> None:
    engine = ScriptedEngine(lambda request: f"{len(engine.requests)}", gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        requests = []
        for number in range(5):
            wire.change(URI, number + 2, {"text": "x" * number})
            requests.append(wire.ask_completion(URI, 0, number))
            await until_asked(session, engine, number + 1)
            await asyncio.sleep(0.04)
        for request in requests[:4]:
            assert (await wire.answer(request))["result"] == EMPTY
        assert engine.gate is not None
        engine.gate.set()
        newest = await wire.answer(requests[4])
        assert [item["insertText"] for item in newest["result"]["items"]] == ["4"]
        await wire.quit()
        await session.serving
    assert [len(wire.answers(request)) for request in requests] == [1] * 5
    assert engine.cancelled == engine.requests[:4]


async def test_five_requests_in_one_breath_get_one_answer_each() -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        with wire.in_one_breath():
            requests = [wire.ask_completion(URI, 0, 0) for _ in range(5)]
        answers = [(await wire.answer(request))["result"] for request in requests]
        await wire.quit()
        await session.serving
    assert answers[:4] == [EMPTY] * 4
    assert len(answers[4]["items"]) == 1
    assert [len(wire.answers(request)) for request in requests] == [1] * 5


async def test_documents_do_not_supersede_each_other() -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        for uri in (URI, "file:///p/b.py"):
            wire.open(uri, "")
        requests = [wire.ask_completion(uri, 0, 0) for uri in (URI, "file:///p/b.py")]
        await until_asked(session, engine, 2)
        assert engine.gate is not None
        engine.gate.set()
        for request in requests:
            assert (await wire.answer(request))["result"]["items"]


async def test_windows_do_not_supersede_each_other_at_the_engine() -> None:
    engine = ScriptedEngine(["x"])
    for _ in range(2):
        async with in_process(lambda model: engine) as session:
            await session.wire.initialize()
            session.wire.open("untitled:Untitled-1", "")
            await session.wire.complete("untitled:Untitled-1", 0, 0)
            session.wire.change("untitled:Untitled-1", 2, {"text": "another"})
            await session.wire.complete("untitled:Untitled-1", 0, 7)
    names = [request.document for request in engine.requests]
    assert names[0] == names[1] != names[2] == names[3]


async def test_cancelling_a_request_reaches_the_engine() -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        request = wire.ask_completion(URI, 0, 0)
        await until_asked(session, engine, 1)
        wire.notify("$/cancelRequest", {"id": request})
        assert (await wire.answer(request))["error"]["code"] == -32800
        await wire.quit()
        await session.serving
    assert engine.cancelled == engine.requests
    assert len(wire.answers(request)) == 1


@pytest.mark.parametrize("what", ["change", "close"])
async def test_an_answer_for_a_text_that_is_no_more_is_dropped(what: str) -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        request = wire.ask_completion(URI, 0, 0)
        await until_asked(session, engine, 1)
        if what == "change":
            wire.change(URI, 2, {"text": "other"})
        else:
            wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert (await wire.answer(request))["result"] == EMPTY
    assert engine.cancelled == engine.requests


@pytest.mark.parametrize(
    ("options", "language", "text"),
    [
        ({"completion": {"enabled": False}}, "python", "x"),
        ({"completion": {"disabledLanguages": ["python"]}}, "python", "x"),
        ({"completion": {"excludePatterns": ["a.*"]}}, "python", "x"),
        ({}, "python", "a\0b"),
        ({}, "python", "x" * 2_000_001),
    ],
)
async def test_refused_places_get_an_empty_answer(
    options: dict[str, Any], language: str, text: str
) -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize(initializationOptions=options)
        session.wire.open(URI, text, language)
        assert await session.wire.complete(URI, 0, 0) == []
    assert not engine.requests


async def test_a_document_that_is_not_open_gets_an_empty_answer() -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        assert await session.wire.complete(URI, 0, 0) == []
        session.wire.open(URI, "x")
        assert await session.wire.complete(URI, 0, 1)
        session.wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        assert await session.wire.complete(URI, 0, 1) == []
    assert len(engine.requests) == 1


@pytest.mark.parametrize(
    "uri", ["untitled:Untitled-1", "file:///a%20b/c%23.py", "vscode-notebook-cell:/n.ipynb#X2"]
)
async def test_documents_of_any_scheme_are_served(uri: str) -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        session.wire.open(uri, "a = ", "some-language")
        assert len(await session.wire.complete(uri, 0, 4)) == 1


def errors_shown(wire: Wire) -> list[str]:
    return [shown["message"] for shown in wire.sent("window/showMessage") if shown["type"] == 1]


async def test_a_failure_is_told_once_and_told_again_after_it_was_over() -> None:
    failure = EngineUnavailable("The engine is gone, again in 3 s.", next_step="Wait.")
    later = EngineUnavailable("The engine is gone, again in 2 s.", next_step="Wait.")
    engine = ScriptedEngine([failure, later, "fine", failure])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        for _ in range(2):
            assert await wire.complete(URI, 0, 0) == []
        assert errors_shown(wire) == ["fimble: The engine is gone, again in 3 s. Wait."]
        assert wire.sent("fimble/status")[-1]["state"] == "error"
        assert len(await wire.complete(URI, 0, 0)) == 1
        assert wire.sent("fimble/status")[-1]["state"] == "ready"
        wire.change(URI, 2, {"text": "another"})
        assert await wire.complete(URI, 0, 7) == []
        assert len(errors_shown(wire)) == 2


async def test_different_failures_are_told_apart() -> None:
    engine = ScriptedEngine([GenerationFailed("NaN."), GenerationFailed("Memory.")])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        session.wire.open(URI, "")
        for _ in range(3):
            await session.wire.complete(URI, 0, 0)
        assert errors_shown(session.wire) == ["fimble: NaN.", "fimble: Memory."]


class NoModel(ScriptedEngine):
    """An engine on a machine where no package is installed."""

    async def model_info(self) -> Any:
        raise ModelNotFound("No model is installed.", next_step="Run fimble model pull.")


async def test_without_a_model_there_is_one_message_and_no_suggestion() -> None:
    async with in_process(lambda model: NoModel([""])) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        for _ in range(3):
            assert await wire.complete(URI, 0, 0) == []
        assert errors_shown(wire) == ["fimble: No model is installed. Run fimble model pull."]
        assert wire.sent("fimble/status")[-1]["state"] == "error"
        assert "No model is installed" in wire.sent("fimble/status")[-1]["message"]


async def test_an_unexpected_failure_shows_neither_traceback_nor_source() -> None:
    engine = ScriptedEngine([ValueError("secret source text")])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        answer = await wire.answer(wire.ask_completion(URI, 0, 0))
    assert answer["error"]["code"] == -32603
    assert "server.log" in answer["error"]["message"]
    assert "Traceback" not in str(wire.messages)
    assert "secret" not in str(wire.messages)


async def test_the_status_follows_the_work() -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        await wire.until(lambda: wire.sent("fimble/status")[-1:] == [status("ready")])
        await wire.complete(URI, 0, 0)
        await wire.until(lambda: wire.sent("fimble/status")[-1] == status("ready"))
    states = [sent["state"] for sent in wire.sent("fimble/status")]
    assert states == ["starting", "ready", "busy", "ready"]


class Stopped(ScriptedEngine):
    """A slow model that stops behind the first piece of its answer until ``rest`` is set."""

    def __init__(self, answer: str, piece: int) -> None:
        super().__init__([answer], piece=piece)
        self.info = replace(self.info, decode_tokens_per_s=5.0)
        self.rest = asyncio.Event()

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        async with aclosing(super().complete(request)) as chunks:
            async for chunk in chunks:
                yield chunk
                await self.rest.wait()


BODY = "a()\n    b()"
GROWS = {"experimental": {"fimble": {"suggestionGrew": True}}}


@pytest.mark.parametrize(("capabilities", "told"), [(GROWS, 1), ({}, 0)], ids=["can", "cannot"])
async def test_an_editor_that_can_take_the_rest_of_a_block_is_told_when_it_is_there(
    capabilities: dict[str, Any], told: int
) -> None:
    engine = Stopped(BODY, piece=len("a()\n  "))
    async with in_process(lambda model: engine) as session:
        wire, service = session.wire, session.server.suggestions.service
        await wire.initialize(capabilities=capabilities)
        wire.open(URI, "def f():\n    ")
        assert [item["insertText"] for item in await wire.complete(URI, 1, 4)] == ["a()"]
        assert not wire.sent("fimble/suggestionGrew")
        engine.rest.set()
        await wire.until(lambda: len(wire.sent("fimble/suggestionGrew")) == told)
        name = session.server.suggestions.name_of(URI)
        await wire.until(lambda: not service.is_at_work(name))
        assert [item["insertText"] for item in await wire.complete(URI, 1, 4)] == [BODY]
        await wire.quit()
        await session.serving
    place = {"uri": URI, "position": {"line": 1, "character": 4}}
    assert wire.sent("fimble/suggestionGrew") == [place] * told
    assert len(engine.requests) == 1


async def test_no_editor_is_told_of_more_for_a_text_that_is_no_more() -> None:
    engine = Stopped(BODY, piece=len("a()\n  "))
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize(capabilities=GROWS, initializationOptions={"completion": NOT_AHEAD})
        wire.open(URI, "def f():\n    ")
        assert len(await wire.complete(URI, 1, 4)) == 1
        wire.change(URI, 2, {"text": "another"})
        await wire.until(lambda: bool(engine.cancelled))
        engine.rest.set()
        assert await wire.complete(URI, 0, 7)
        await wire.quit()
        await session.serving
    assert not wire.sent("fimble/suggestionGrew")


def status(state: str) -> dict[str, Any]:
    budget = {"prompt": 2048, "answer": 64, "floor": 512, "ceiling": 2048}
    shown = {"state": state, "message": "", "model": "scripted", "provider": "none"}
    return {**shown, "budget": budget, "remote": ""}
