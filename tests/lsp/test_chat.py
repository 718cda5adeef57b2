"""``fimble/chat`` and its commands from a client that speaks JSON-RPC and nothing more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fimble import system
from fimble.errors import EngineUnavailable
from fimble.lsp.chat import CHAT_COMMANDS, answers_dir
from tests.chat.places import tree
from tests.lsp.wire import Session, Wire, in_process
from tests.support.scripted_engine import ScriptedEngine
from tests.support.waiting import eventually

#: Emoji before the code: columns are UTF-16 code units.
TEXT = "x = '🙂'; y = f(1)\n\n\ndef f(n):\n    return n + 1\n"
URI = "file:///p/a.py"


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    }


def deltas(wire: Wire, token: Any) -> list[str]:
    return [
        sent["value"]["text"]
        for sent in wire.sent("$/progress")
        if sent["token"] == token and "text" in sent["value"]
    ]


def work_done(wire: Wire, token: Any) -> list[str]:
    return [sent["value"]["kind"] for sent in wire.sent("$/progress") if sent["token"] == token]


async def opened(session: Session, **params: Any) -> Wire:
    await session.wire.initialize(**params)
    session.wire.open(URI, TEXT)
    return session.wire


async def command(wire: Wire, name: str, *arguments: Any) -> Any:
    return await wire.request(
        "workspace/executeCommand", {"command": name, "arguments": list(arguments)}
    )


# --- fimble/chat -------------------------------------------------------------------------


async def test_an_answer_streams_and_comes_whole() -> None:
    engine = ScriptedEngine(["Use this:\n```python\nreturn n + 2\n```\n🙂"], piece=5)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        result = await wire.request(
            "fimble/chat",
            {
                "message": "Is this right?",
                "conversation": "c1",
                "attachments": [{"kind": "selection", "uri": URI, "range": span(4, 11, 16)}],
                "workDoneToken": "work",
                "partialResultToken": 7,
            },
        )
    assert "".join(deltas(wire, 7)) == result["text"] == engine.answers[0]  # type: ignore[index]
    assert len(deltas(wire, 7)) > 3
    kinds = work_done(wire, "work")
    assert (kinds[0], kinds[-1]) == ("begin", "end") and set(kinds[1:-1]) == {"report"}
    (block,) = result["blocks"]
    assert (block["language"], block["text"]) == ("python", "return n + 2")
    assert (block["uri"], block["version"]) == (URI, 1)
    assert block["range"] == span(4, 4, 16)
    assert [(item["kind"], item["lines"]) for item in result["context"]] == [
        ("around", [5, 5]),
        ("selection", [5, 5]),
    ]
    assert all(item["reason"] and item["tokens"] for item in result["context"])
    assert result["left_out"] == []
    assert (result["conversation"], result["turn"]) == ("c1", 1)
    assert result["usage"]["completion_tokens"] > 0
    assert result["finish_reason"] == "stop"


async def test_columns_are_those_that_the_client_counts() -> None:
    engine = ScriptedEngine(["```python\nz\n```"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        attachment = {"kind": "selection", "uri": URI, "range": span(0, 10, 18)}
        result = await wire.request(
            "fimble/chat", {"message": "What?", "attachments": [attachment]}
        )
    assert "y = f(1)" in engine.requests[0].messages[-1].content
    (block,) = result["blocks"]
    assert block["range"] == span(0, 10, 18)


async def test_a_document_that_moved_on_has_no_range() -> None:
    gate = asyncio.Event()
    engine = ScriptedEngine(["```python\nz\n```"], gate=gate)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        attachment = {"kind": "selection", "uri": URI, "range": span(4, 4, 16)}
        id = wire.ask("fimble/chat", {"message": "What?", "attachments": [attachment]})
        await wire.until(lambda: bool(engine.requests))
        wire.change(URI, 2, {"text": "other = 1\n"})
        await wire.until(lambda: session.server.documents.get(URI).version == 2)  # type: ignore[union-attr]
        gate.set()
        result = (await wire.answer(id))["result"]
    (block,) = result["blocks"]
    assert (block["uri"], block["range"], block["version"]) == (URI, None, None)


async def test_a_conversation_goes_on_and_is_cleared() -> None:
    engine = ScriptedEngine(["one", "two", "three"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        await wire.request("fimble/chat", {"message": "First?"})
        result = await wire.request("fimble/chat", {"message": "Second?"})
        assert result["turn"] == 2
        assert engine.requests[1].messages[:2] == engine.requests[0].messages
        await wire.request("fimble/chat", {"message": "/clear"})
        result = await wire.request("fimble/chat", {"message": "Third?"})
    assert result["turn"] == 1


async def test_diagnostics_and_files_are_attached(tmp_path: Path) -> None:
    root = tree(tmp_path / "shop")
    engine = ScriptedEngine(["a"])
    async with in_process(lambda model: engine) as session:
        folder = {"uri": system.uri_from_path(root), "name": "shop"}
        wire = await opened(session, workspaceFolders=[folder])
        diagnostic = {"range": span(4, 11, 12), "message": "n is unknown", "source": "lint"}
        result = await wire.request(
            "fimble/chat",
            {
                "message": "What is wrong? @file:.env",
                "attachments": [
                    {"kind": "diagnostics", "uri": URI, "diagnostics": [diagnostic]},
                    {"kind": "file", "uri": system.uri_from_path(root / "shop" / "cart.py")},
                    {"kind": "file", "uri": system.uri_from_path(root / "private.py")},
                    {"kind": "openFiles"},
                    {"kind": "symbol", "name": "nothing"},
                    {"kind": "selection", "uri": "file:///p/closed.py"},
                ],
            },
        )
        prompt = engine.requests[0].messages[-1].content
    assert "line 5: n is unknown (lint)" in prompt and "class Cart" in prompt
    assert "hidden" not in prompt
    assert {item["kind"] for item in result["context"]} == {"diagnostics", "file", "open file"}
    assert {(item["path"], item["reason"]) for item in result["left_out"]} == {
        (".env", "secret (.env)"),
        ("private.py", "ignored (.gitignore)"),
        ("nothing", "no definition of that name is known"),
        ("closed.py", "it is not open in the editor"),
    }


@pytest.mark.parametrize(
    ("params", "named"),
    [
        (None, "object"),
        ([], "object"),
        ({}, "message"),
        ({"message": 5}, "message"),
        ({"message": "a", "conversation": 5}, "conversation"),
        ({"message": "a", "attachments": {}}, "attachments"),
        ({"message": "a", "attachments": ["x"]}, "attachment"),
        ({"message": "a", "attachments": [{"kind": "secret"}]}, "kind"),
        ({"message": "a", "attachments": [{"kind": "selection"}]}, "uri"),
        ({"message": "a", "attachments": [{"kind": "selection", "uri": URI, "range": 5}]}, "range"),
        ({"message": "a", "attachments": [{"kind": "openFiles"}] * 65}, "at most 64"),
        ({"message": "a", "history": ["x"]}, "history"),
        ({"message": "a", "partialResultToken": []}, "partialResultToken"),
        ({"message": "a", "workDoneToken": True}, "workDoneToken"),
    ],
)
async def test_parameters_that_cannot_be_meant_name_the_field(params: Any, named: str) -> None:
    engine = ScriptedEngine(["a"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        answer = await wire.answer(wire.ask("fimble/chat", params))
    assert answer["error"]["code"] == -32602
    assert named in answer["error"]["message"]
    assert not engine.requests


@pytest.mark.parametrize("message", ["/nonsense", "", "/fix"])
async def test_a_message_that_cannot_be_answered_says_why_and_what_to_do(message: str) -> None:
    async with in_process(lambda model: ScriptedEngine(["a"])) as session:
        wire = await opened(session)
        error = (await wire.answer(wire.ask("fimble/chat", {"message": message})))["error"]
    assert error["code"] == -32803
    assert error["data"]["message"] and error["data"]["next_step"]
    assert error["message"] == f"{error['data']['message']} {error['data']['next_step']}"


async def test_an_engine_that_fails_is_an_error_of_the_request() -> None:
    engine = ScriptedEngine([EngineUnavailable("The engine ended.", next_step="Wait."), "a"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        error = (await wire.answer(wire.ask("fimble/chat", {"message": "Hi"})))["error"]
        assert (error["code"], error["message"]) == (-32803, "The engine ended. Wait.")
        assert (await wire.request("fimble/chat", {"message": "Hi"}))["text"] == "a"


# --- cancelling --------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["request", "progress"])
@pytest.mark.parametrize("after", [0, 1, 5])
async def test_cancelled_at_any_token(by: str, after: int) -> None:
    engine = ScriptedEngine(["words and words and words " * 400, "short"], piece=3, delay=0.01)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        params = {"message": "Hi", "workDoneToken": "w", "partialResultToken": "p"}
        id = wire.ask("fimble/chat", params)
        await wire.until(lambda: len(deltas(wire, "p")) >= after and bool(engine.requests))
        if by == "request":
            wire.notify("$/cancelRequest", {"id": id})
        else:
            wire.notify("window/workDoneProgress/cancel", {"token": "w"})
        answer = await wire.answer(id)
        assert answer["error"]["code"] == -32800
        await wire.until(lambda: len(engine.cancelled) == 1)
        assert work_done(wire, "w")[-1] == "end"
        heard = len(deltas(wire, "p"))
        # The conversation is as it was, and nothing more comes of what was cancelled.
        result = await wire.request("fimble/chat", {"message": "Again?"})
        assert (result["turn"], result["text"]) == (1, "short")
        assert len(deltas(wire, "p")) == heard


@pytest.mark.parametrize("by", ["request", "progress"])
@pytest.mark.parametrize(
    "params",
    [{"arguments": [{"uri": URI, "workDoneToken": "w"}]},
     {"arguments": [URI], "workDoneToken": "w"}],
)  # fmt: skip
async def test_a_command_is_cancelled_too(params: dict[str, Any], by: str) -> None:
    engine = ScriptedEngine(["words " * 4000], piece=3, delay=0.01)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        id = wire.ask("workspace/executeCommand", {"command": "fimble.explain", **params})
        await wire.until(lambda: "report" in work_done(wire, "w"))
        if by == "request":
            wire.notify("$/cancelRequest", {"id": id})
        else:
            wire.notify("window/workDoneProgress/cancel", {"token": "w"})
        answer = await wire.answer(id)
        assert answer["error"]["code"] == -32800
        await wire.until(lambda: len(engine.cancelled) == 1)


async def test_a_command_without_a_token_shows_its_progress_where_it_may() -> None:
    gate = asyncio.Event()
    engine = ScriptedEngine(["It adds one."], gate=gate)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, capabilities={"window": {"workDoneProgress": True}})

        def explained() -> list[Any]:
            sent = wire.sent("$/progress")
            return [each["token"] for each in sent if each["value"].get("title") == "Explain code"]

        asked = wire.ask(
            "workspace/executeCommand", {"command": "fimble.explain", "arguments": [URI]}
        )
        await wire.until(lambda: bool(explained()))
        gate.set()
        await wire.answer(asked)
        (token,) = explained()
        assert token in [each["token"] for each in wire.sent("window/workDoneProgress/create")]
        assert work_done(wire, token)[-1] == "end"


async def test_the_end_of_the_session_ends_a_chat() -> None:
    engine = ScriptedEngine(["words " * 4000], piece=3, delay=0.01)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        wire.ask("fimble/chat", {"message": "Hi"})
        await wire.until(lambda: bool(engine.requests))
        wire.ask("shutdown")
        wire.notify("exit")
        await wire.until(lambda: session.serving.done())
    await eventually(lambda: engine.cancelled)


# --- commands ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["fimble.explain", "fimble.fix", "fimble.tests", "fimble.document"]
)
async def test_commands_answer_with_text_about_a_place(name: str) -> None:
    engine = ScriptedEngine(["It adds one."])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        place = span(4, 4, 16)
        for arguments in ([URI, place], [{"uri": URI, "range": place, "message": "briefly"}]):
            result = await command(wire, name, *arguments)
            assert result["text"] == "It adds one." and result["document"] is None
        first, second = (request.messages[-1].content for request in engine.requests)
        assert "return n + 1" in first and second.endswith("briefly")
        # A chat can go on with it.
        more = {"message": "More?", "conversation": result["conversation"]}
        assert (await wire.request("fimble/chat", more))["turn"] == 2


async def test_a_client_that_shows_documents_is_asked_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    engine = ScriptedEngine(["# It adds one. 🙂\n"])
    async with in_process(lambda model: engine) as session:
        capabilities = {"window": {"showDocument": {"support": True}}}
        wire = await opened(session, capabilities=capabilities)
        result = await command(wire, "fimble.explain", URI)
        await wire.until(lambda: bool(wire.sent("window/showDocument")))
        for _ in range(24):
            await command(wire, "fimble.explain", URI)
    shown = wire.sent("window/showDocument")[0]["uri"]
    assert result["document"] == shown
    files = sorted(answers_dir().iterdir())
    assert len(files) == 20
    assert files[0].read_text(encoding="utf-8") == "# It adds one. 🙂\n"
    assert all(file.suffix == ".md" for file in files)


async def test_an_answer_that_cannot_be_kept_is_still_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    answers_dir().write_text("a file where the folder should be", encoding="utf-8")
    async with in_process(lambda model: ScriptedEngine(["It adds one."])) as session:
        capabilities = {"window": {"showDocument": {"support": True}}}
        wire = await opened(session, capabilities=capabilities)
        result = await command(wire, "fimble.explain", URI)
    assert (result["text"], result["document"]) == ("It adds one.", None)


@pytest.mark.parametrize("name", ["fimble.review", "fimble.commitMessage"])
async def test_a_review_without_changes_says_so(name: str, tmp_path: Path) -> None:
    async with in_process(lambda model: ScriptedEngine(["a"])) as session:
        folder = {"uri": system.uri_from_path(tmp_path), "name": "none"}
        wire = await opened(session, workspaceFolders=[folder])
        asked = {"command": name, "arguments": []}
        error = (await wire.answer(wire.ask("workspace/executeCommand", asked)))["error"]
    assert "There is nothing to" in error["message"]


@pytest.mark.parametrize("name", CHAT_COMMANDS)
@pytest.mark.parametrize("arguments", [[5], [URI, 5], [URI, span(0, 0, 0), 5], [{"uri": 5}]])
async def test_arguments_that_cannot_be_meant(name: str, arguments: list[Any]) -> None:
    async with in_process(lambda model: ScriptedEngine(["a"])) as session:
        wire = await opened(session)
        asked = {"command": name, "arguments": arguments}
        error = (await wire.answer(wire.ask("workspace/executeCommand", asked)))["error"]
    assert error["code"] == -32602


# --- completion --------------------------------------------------------------------------


async def test_names_are_completed(tmp_path: Path) -> None:
    root = tree(tmp_path / "shop")
    async with in_process(lambda model: ScriptedEngine(["a"])) as session:
        folder = {"uri": system.uri_from_path(root), "name": "shop"}
        wire = await opened(session, workspaceFolders=[folder])
        host = session.server.workspace_host
        await wire.until(lambda: host.workspace is not None)
        workspace = host.workspace
        assert workspace is not None
        await asyncio.to_thread(workspace.index.wait, 60)

        async def complete(text: str, **more: Any) -> tuple[list[str], int, int]:
            found = await wire.request("fimble/chatComplete", {"text": text, **more})
            assert all(item["detail"] for item in found["items"])
            return [item["text"] for item in found["items"]], found["start"], found["end"]

        assert await complete("/ex") == (["/explain"], 0, 3)
        assert (await complete("/"))[0][-2:] == ["/clear", "/help"]
        assert await complete("see @w") == (["@workspace"], 4, 6)
        assert await complete("#") == (["#selection"], 0, 1)
        # Two UTF-16 code units of an emoji, in front of the word and behind it.
        assert await complete("🙂 @file:cart 🙂", character=13) == (["@file:shop/cart.py"], 3, 13)
        assert (await complete('@file:"my'))[0] == ['@file:"my notes.txt"']
        assert (await complete("@symbol:Ca"))[0] == ["@symbol:Cart"]
        assert (await complete("@symbol:Cart.to"))[0] == ["@symbol:Cart.total"]
        assert await complete("a word") == ([], 6, 6)
        # Nothing that may not be used is even named.
        for hidden in (".env", "private"):
            assert (await complete(f"@file:{hidden}"))[0] == []
        assert (await complete("@symbol:hidden"))[0] == []
        bad = await wire.answer(wire.ask("fimble/chatComplete", {"text": 5}))
        assert bad["error"]["code"] == -32602
