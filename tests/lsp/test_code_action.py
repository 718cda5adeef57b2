"""Code actions from a client that speaks JSON-RPC and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fimble import system
from fimble.engine.protocol import CompletionRequest
from fimble.errors import EngineUnavailable
from fimble.lsp.chat import answers_dir
from tests.edit.places import fence
from tests.edit.test_test_files import tree
from tests.lsp.conformance import FOUND
from tests.lsp.wire import Session, Wire, in_process
from tests.support.scripted_engine import ScriptedEngine

TEXT = "s = '🙂'; x = 1\n\n\nclass A:\n    def f(self, n):\n        y = n\n        return y\n"
URI = "file:///p/a.py"
EDIT = {
    "documentChanges": True,
    "resourceOperations": ["create", "rename", "delete"],
    "changeAnnotationSupport": {"groupsOnLabel": True},
}
ACTION = {
    "codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}},
    "dataSupport": True,
    "disabledSupport": True,
    "isPreferredSupport": True,
    "resolveSupport": {"properties": ["edit"]},
}
#: What a modern editor says of itself.
MODERN: dict[str, Any] = {
    "textDocument": {"codeAction": ACTION},
    "workspace": {"workspaceEdit": EDIT, "applyEdit": True},
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
}


def span(line: int, start: int, end: int) -> dict[str, Any]:
    return {
        "start": {"line": line, "character": start},
        "end": {"line": line, "character": end},
    }


HERE = span(5, 8, 8)


async def opened(
    session: Session, capabilities: dict[str, Any] = MODERN, text: str = TEXT, **more: Any
) -> Wire:
    await session.wire.initialize(capabilities=capabilities, **more)
    session.wire.open(URI, text)
    return session.wire


async def offered(
    wire: Wire,
    place: dict[str, Any] = HERE,
    *,
    only: Sequence[str] = (),
    diagnostics: Sequence[dict[str, Any]] = (),
    trigger: int = 1,
    uri: str = URI,
) -> list[dict[str, Any]]:
    context: dict[str, Any] = {"diagnostics": list(diagnostics), "triggerKind": trigger}
    if only:
        context["only"] = list(only)
    params = {"textDocument": {"uri": uri}, "range": place, "context": context}
    found: list[dict[str, Any]] = await wire.request("textDocument/codeAction", params)
    return found


async def action(wire: Wire, title: str, **more: Any) -> dict[str, Any]:
    found = [each for each in await offered(wire, **more) if each["title"] == title]
    assert len(found) == 1, title
    return found[0]


def applied(text: str, edits: Sequence[dict[str, Any]]) -> str:
    """``text`` with text edits applied as an editor does, in UTF-16 code units."""
    lines = [len(line.encode("utf-16-le")) // 2 for line in text.splitlines(keepends=True)]
    units = text.encode("utf-16-le")

    def place(position: dict[str, int]) -> int:
        return 2 * (sum(lines[: position["line"]]) + position["character"])

    for edit in sorted(edits, key=lambda each: -place(each["range"]["start"])):
        start, end = place(edit["range"]["start"]), place(edit["range"]["end"])
        units = units[:start] + edit["newText"].encode("utf-16-le") + units[end:]
    return units.decode("utf-16-le")


# --- offered -----------------------------------------------------------------------------


async def test_what_is_offered_names_the_symbol_and_asks_no_model() -> None:
    engine = ScriptedEngine(["never"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        found = await offered(wire)
        known = {each["title"]: each for each in found}
    assert known["Simplify A.f"]["kind"] == "refactor.rewrite.simplify"
    assert known["Write tests for A.f"]["kind"] == "source.tests"
    assert known["Document A.f"]["kind"] == "refactor.rewrite.document"
    assert known["Explain this code"]["command"]["command"] == "fimble.explain"
    assert known["Split this code" if "Split this code" in known else "Split A.f"]["disabled"]
    assert "edit" not in known["Simplify A.f"] and known["Simplify A.f"]["data"]["version"] == 1
    assert not engine.requests


@pytest.mark.parametrize(
    ("only", "kinds"),
    [
        (["quickfix"], {"quickfix"}),
        (["source"], {"source.tests", "source.explain"}),
        (["source.tests"], {"source.tests"}),
        (["refactor.rewrite.types"], {"refactor.rewrite.types"}),
        (["refactor.extract"], set()),
        (["quick"], set()),
    ],
)
async def test_only_what_is_asked_for(only: list[str], kinds: set[str]) -> None:
    diagnostic = {"range": HERE, "message": "m"}
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session)
        found = await offered(wire, only=only, diagnostics=[diagnostic])
    assert {each["kind"] for each in found} == kinds


async def test_a_fix_for_each_problem_and_for_all() -> None:
    one = {"range": span(5, 12, 13), "message": "n is odd", "source": "lint"}
    two = {"range": span(6, 8, 14), "message": "long " * 40}
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session)
        (alone,) = await offered(wire, only=["quickfix"], diagnostics=[one])
        both = await offered(wire, only=["quickfix"], diagnostics=[one, two])
    assert alone["title"] == "Fix: n is odd" and alone["isPreferred"] is True
    assert [each["diagnostics"] for each in both] == [[one], [two], [one, two]]
    assert both[2]["title"] == "Fix all 2 problems" and len(both[1]["title"]) < 80
    assert not any(each["isPreferred"] for each in both)


async def test_a_cursor_that_moves_lights_no_lamp() -> None:
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session)
        assert await offered(wire, trigger=2) == []
        assert await offered(wire, span(5, 8, 13), trigger=2)


async def test_a_secret_file_has_the_reason_and_nothing_else() -> None:
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session)
        wire.open("file:///p/.env", "A=1\n", "plaintext")
        found = await offered(wire, span(0, 0, 1), uri="file:///p/.env")
        assert found and all("secret" in each["disabled"]["reason"] for each in found)
        assert await offered(wire, uri="file:///p/closed.py") == []


async def test_an_editor_that_can_ask_for_words_is_offered_it() -> None:
    able = {**MODERN, "experimental": {"fimble": {"promptForInstruction": True}}}
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session, able)
        found = await action(wire, "Edit with an instruction …")
    assert found["command"]["command"] == "fimble.promptEdit"
    assert found["command"]["arguments"] == [{"uri": URI, "range": HERE}]


PREVIEWS = {**MODERN, "experimental": {"fimble": {"previewEdits": True}}}


async def test_an_editor_that_shows_changes_itself_has_them_made_and_applies_them() -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, PREVIEWS)
        found = await action(wire, "Simplify A.f")
        assert "data" not in found and found["command"]["command"] == "fimble.previewEdit"
        assert await wire.request("codeAction/resolve", found) == found and not engine.requests
        (data,) = found["command"]["arguments"]
        made = await wire.request("codeAction/resolve", {"title": "Edit", "data": data})
        assert not wire.sent("workspace/applyEdit")

        wire.change(URI, 2, {"text": "z = 1\n"})
        late = await wire.answer(wire.ask("codeAction/resolve", {"title": "Edit", "data": data}))
    (change,) = made["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert "return n" in applied(TEXT, change["edits"])
    assert late["error"]["data"]["name"] == "moved"


async def test_it_shows_nothing_where_nothing_is_to_be_confirmed() -> None:
    options = {"edit": {"confirm": False}}
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session, PREVIEWS, initializationOptions=options)
        found = await action(wire, "Simplify A.f")
    assert "command" not in found and found["data"]["task"] == "simplify"


# --- made --------------------------------------------------------------------------------


async def test_an_action_is_made_on_resolve() -> None:
    answer = fence("def f(self, n):\n    return n")
    engine = ScriptedEngine([answer], piece=4, gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        id, gate = await ready(engine, wire)
        await wire.until(lambda: begun(wire) is not None)
        gate.set()
        made = (await wire.answer(id))["result"]
        progress = [sent["value"] for sent in wire.sent("$/progress")]
    (change,) = made["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    assert applied(TEXT, change["edits"]) == TEXT.replace(
        "        y = n\n        return y", "        return n"
    )
    assert {edit["annotationId"] for edit in change["edits"]} == {"fimble"}
    annotation = made["edit"]["changeAnnotations"]["fimble"]
    assert annotation["label"] == "Simplify A.f" and annotation["needsConfirmation"] is True
    said = [each for each in progress if each.get("title") == "Simplify A.f"]
    assert said and any("tokens so far" in each.get("message", "") for each in progress)
    assert progress[-1]["kind"] == "end"


async def test_columns_are_utf_16() -> None:
    engine = ScriptedEngine([fence("x = 2")])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        result = await wire.request(
            "workspace/executeCommand",
            {
                "command": "fimble.edit",
                "arguments": [URI, span(0, 10, 15), "use two"],
                "workDoneToken": "w",
            },
        )
        shown = [sent["value"] for sent in wire.sent("$/progress") if sent["token"] == "w"]
    assert (shown[0]["kind"], shown[-1]["kind"]) == ("begin", "end")
    (change,) = result["edit"]["documentChanges"]
    assert applied(TEXT, change["edits"]) == TEXT.replace("x = 1", "x = 2")
    assert change["edits"][0]["range"] == span(0, 14, 15)
    assert "use two" in engine.requests[0].messages[-1].content


async def test_a_command_has_the_editor_apply_the_edit() -> None:
    engine = ScriptedEngine([fence("x = 2")])
    able = {"workspace": MODERN["workspace"]}
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, able)
        wire.silent = True
        arguments = [{"uri": URI, "range": span(0, 10, 15), "instruction": "two", "version": 1}]
        params = {"command": "fimble.edit", "arguments": arguments}
        id = wire.ask("workspace/executeCommand", params)
        await wire.until(lambda: bool(wire.sent("workspace/applyEdit")))
        (asked,) = (m for m in wire.messages if m.get("method") == "workspace/applyEdit")
        wire.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"applied": True}})
        result = (await wire.answer(id))["result"]
    assert asked["params"] == {"label": "Edit line 1", "edit": result["edit"]}
    assert result["applied"] is True and result["notes"] == []


async def test_an_editor_without_anything_gets_commands_and_plain_changes() -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, {})
        found = {each["title"]: each for each in await offered(wire)}
        command = found["Simplify A.f"]
        assert command["command"] == "fimble.edit"
        result = await wire.request(
            "workspace/executeCommand",
            {"command": command["command"], "arguments": command["arguments"]},
        )
        asked = wire.sent("workspace/applyEdit")
    assert set(result["edit"]["changes"]) == {URI} and result["applied"] is False
    assert not asked and "return n" in applied(TEXT, result["edit"]["changes"][URI])


#: Announces neither ``applyEdit`` nor ``codeAction/resolve``, and applies what it is sent.
KATE: dict[str, Any] = {
    "textDocument": {
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}
    }
}


@pytest.mark.parametrize(
    ("answer", "applied"),
    [
        ({"result": {"applied": True}}, True),
        ({"error": {"code": -32601, "message": "Method not found"}}, False),
    ],
)
async def test_kate_is_asked_to_apply_although_it_never_said_that_it_can(
    answer: dict[str, Any], applied: bool
) -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, KATE)
        wire.silent = True
        command = (await action(wire, "Simplify A.f"))["command"]
        id = wire.ask("workspace/executeCommand", command)
        await wire.until(lambda: bool(wire.sent("workspace/applyEdit")))
        (asked,) = (m for m in wire.messages if m.get("method") == "workspace/applyEdit")
        wire.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
        result = (await wire.answer(id))["result"]
    assert (result["applied"], asked["params"]["edit"]) == (applied, result["edit"])
    found, FOUND[:] = list(FOUND), []
    assert found == ["workspace/applyEdit: the client did not announce workspace.applyEdit"]


async def test_kate_shows_no_error_of_a_command_so_a_message_says_it() -> None:
    async with in_process(lambda model: ScriptedEngine(["No."])) as session:
        wire = await opened(session, KATE)
        command = (await action(wire, "Simplify A.f"))["command"]
        id = wire.ask("workspace/executeCommand", command)
        error = (await wire.answer(id))["error"]
        (said,) = wire.sent("window/showMessage")
    assert said["message"] == f"fimble: {error['message']}"


async def test_a_new_test_file_is_made_by_the_edit(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.py", "tests/test_b.py")
    code = "from a import f\n\n\ndef test_f():\n    assert f() == 1"
    uri = system.uri_from_path(root / "a.py")
    folder = {"uri": system.uri_from_path(root), "name": "p"}
    async with in_process(lambda model: ScriptedEngine([fence(code)])) as session:
        wire = await opened(session, workspaceFolders=[folder])
        wire.open(uri, "def f():\n    return 1\n")
        found = await action(wire, "Write tests for f", place=span(0, 4, 4), uri=uri)
        made = await wire.request("codeAction/resolve", found)
    create, change = made["edit"]["documentChanges"]
    new = system.uri_from_path(root / "tests" / "test_a.py")
    assert (create["kind"], create["uri"]) == ("create", new)
    assert change["textDocument"] == {"uri": new, "version": None}
    assert applied("", change["edits"]) == code + "\n"


async def test_an_editor_that_makes_no_files_is_told(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.py", "tests/test_b.py")
    uri = system.uri_from_path(root / "a.py")
    code = "def test_f():\n    assert 1"
    async with in_process(lambda model: ScriptedEngine([fence(code)])) as session:
        less = {"textDocument": {"codeAction": ACTION}}
        wire = await opened(session, less)
        wire.open(uri, "def f():\n    return 1\n")
        found = await action(wire, "Write tests for f", place=span(0, 4, 4), uri=uri)
        answer = await wire.answer(wire.ask("codeAction/resolve", found))
    assert answer["error"]["data"]["name"] == "no-file"


async def test_the_setting_spares_the_question() -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")])
    options = {"edit": {"confirm": False}}
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, initializationOptions=options)
        made = await wire.request("codeAction/resolve", await action(wire, "Simplify A.f"))
    assert made["edit"]["changeAnnotations"]["fimble"]["needsConfirmation"] is False


# --- refused -----------------------------------------------------------------------------


async def test_a_refused_answer_is_shown_and_changes_nothing() -> None:
    engine = ScriptedEngine(["I would rather not."])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        found = await action(wire, "Simplify A.f")
        answer = await wire.answer(wire.ask("codeAction/resolve", found))
        await wire.until(lambda: bool(wire.sent("window/showDocument")))
        (shown,) = wire.sent("window/showDocument")
    error = answer["error"]
    assert error["code"] == -32803 and error["message"].startswith("Nothing was changed.")
    assert (error["data"]["name"], error["data"]["answer"]) == ("prose", "I would rather not.")
    path = system.path_from_uri(shown["uri"])
    assert path is not None and Path(path).parent == answers_dir()
    assert "I would rather not." in Path(path).read_text(encoding="utf-8")


async def test_a_refused_answer_is_in_a_file_where_the_editor_shows_none() -> None:
    engine = ScriptedEngine(["I would rather not."])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, {**MODERN, "window": {}})
        found = await action(wire, "Simplify A.f")
        answer = await wire.answer(wire.ask("codeAction/resolve", found))
        assert not wire.sent("window/showDocument") and not wire.sent("window/showMessage")
    said, _, path = answer["error"]["message"].rpartition(" It is in ")
    assert said.endswith("See the answer, and take of it what is right.")
    assert "I would rather not." in Path(path.rstrip(".")).read_text(encoding="utf-8")


async def test_a_refused_answer_that_cannot_be_kept_is_still_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path))
    answers_dir().write_text("a file where the folder should be", encoding="utf-8")
    engine = ScriptedEngine(["I would rather not."])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, {**MODERN, "window": {}})
        found = await action(wire, "Simplify A.f")
        answer = await wire.answer(wire.ask("codeAction/resolve", found))
    assert answer["error"]["data"]["answer"] == "I would rather not."


async def test_an_action_of_an_older_version_is_refused() -> None:
    engine = ScriptedEngine(["never"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        found = await action(wire, "Simplify A.f")
        wire.change(URI, 2, {"text": "z = 1\n"})
        answer = await wire.answer(wire.ask("codeAction/resolve", found))
    assert answer["error"]["data"]["name"] == "moved" and not engine.requests


async def ready(engine: ScriptedEngine, wire: Wire) -> tuple[int, asyncio.Event]:
    """A resolve that waits for the engine's first token."""
    found = await action(wire, "Simplify A.f")
    id = wire.ask("codeAction/resolve", found)
    await wire.until(lambda: bool(engine.requests))
    assert engine.gate is not None
    return id, engine.gate


def insert(line: int, character: int, text: str) -> dict[str, Any]:
    return {"range": span(line, character, character), "text": text}


async def test_what_is_typed_elsewhere_moves_the_edit_along() -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        id, gate = await ready(engine, wire)
        wire.change(URI, 2, insert(0, 0, "import os\n"))
        wire.change(URI, 3, insert(1, 0, "# 🙂\n"))
        document = session.server.documents.get(URI)
        await wire.until(lambda: document is not None and document.version == 3)
        gate.set()
        made = (await wire.answer(id))["result"]
    (change,) = made["edit"]["documentChanges"]
    assert change["textDocument"]["version"] == 3
    now = "import os\n# 🙂\n" + TEXT
    assert applied(now, change["edits"]) == now.replace(
        "        y = n\n        return y", "        return n"
    )


@pytest.mark.parametrize("end", ["typed", "closed", "another"])
async def test_what_is_typed_there_refuses_it(end: str) -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        id, gate = await ready(engine, wire)
        if end == "typed":
            wire.change(URI, 2, insert(5, 8, "z"))
        else:
            wire.notify("textDocument/didClose", {"textDocument": {"uri": URI}})
        if end == "another":
            wire.open(URI, TEXT, version=1)
        await wire.request("textDocument/codeAction", {
            "textDocument": {"uri": URI}, "range": HERE, "context": {"diagnostics": []},
        })  # fmt: skip
        gate.set()
        error = (await wire.answer(id))["error"]
    assert error["data"]["name"] == "moved"


def begun(wire: Wire) -> str | None:
    """The token under which an edit is shown, once it is."""
    for sent in wire.sent("$/progress"):
        if sent["value"].get("title", "fimble") != "fimble":
            token: str = sent["token"]
            return token
    return None


async def test_an_editor_that_answers_nothing_while_it_waits_gets_its_edit() -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        found = await action(wire, "Simplify A.f")
        wire.silent = True
        assert (await wire.request("codeAction/resolve", found))["edit"]
        assert begun(wire) is None


@pytest.mark.parametrize("how", ["request", "progress"])
async def test_cancelled_at_the_engine_too(how: str) -> None:
    engine = ScriptedEngine([fence("def f(self, n):\n    return n")], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        id, gate = await ready(engine, wire)
        await wire.until(lambda: begun(wire) is not None)
        if how == "request":
            wire.notify("$/cancelRequest", {"id": id})
        else:
            wire.notify("window/workDoneProgress/cancel", {"token": begun(wire)})
        answer = await wire.answer(id)
        await wire.until(lambda: bool(engine.cancelled))
        assert answer["error"]["code"] == -32800
        assert [sent["value"]["kind"] for sent in wire.sent("$/progress")][-1] == "end"
        gate.set()
        found = await action(wire, "Simplify A.f")
        assert (await wire.request("codeAction/resolve", found))["edit"]  # nothing is held up


async def test_one_at_a_time_and_completions_keep_running() -> None:
    gate = asyncio.Event()
    engine = ScriptedEngine(lambda request: answer_to(request))

    def answer_to(request: CompletionRequest) -> str:
        return fence("def f(self, n):\n    return n") if request.messages else "more"

    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        engine.gate = gate
        id, _ = await ready(engine, wire)
        found = await action(wire, "Add types to A.f")
        busy = await wire.answer(wire.ask("codeAction/resolve", found))
        assert busy["error"]["data"]["name"] == "busy"
        engine.gate = None
        assert await wire.complete(URI, 6, 16)
        assert not wire.answers(id)
        gate.set()
        assert (await wire.answer(id))["result"]["edit"]
    edit, *others = engine.requests
    assert edit.priority == "chat" and {each.priority for each in others} <= {
        "completion",
        "warmup",
    }


async def test_an_engine_that_is_gone() -> None:
    async with in_process(
        lambda model: ScriptedEngine([EngineUnavailable("The engine ended.")])
    ) as session:
        wire = await opened(session)
        found = await action(wire, "Simplify A.f")
        answer = await wire.answer(wire.ask("codeAction/resolve", found))
    assert answer["error"]["message"].startswith("The engine ended.")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["file:///p/a.py"],
        [{"uri": 1, "range": HERE}],
        [{"uri": URI, "range": "all"}],
        [{"uri": URI, "range": HERE, "task": 5}],
        [{"uri": URI, "range": HERE, "instruction": "x", "diagnostics": [1]}],
    ],
)
async def test_arguments_that_cannot_be_meant(arguments: list[Any]) -> None:
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session)
        params = {"command": "fimble.edit", "arguments": arguments}
        answer = await wire.answer(wire.ask("workspace/executeCommand", params))
    assert answer["error"]["code"] == -32602
