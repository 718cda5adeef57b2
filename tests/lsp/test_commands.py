"""Commands and what goes with requests: offers, accepting, snoozing, prompts shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from fimble.assist.policy import RefusalName
from tests.lsp.wire import Session, Wire, completion_params, in_process
from tests.support.scripted_engine import Answer, ScriptedEngine, prompt_as_text
from tests.support.waiting import eventually

URI = "file:///p/a.py"


def insert(line: int, character: int, text: str) -> dict[str, Any]:
    place = {"line": line, "character": character}
    return {"range": {"start": place, "end": place}, "text": text}


async def command(wire: Wire, name: str, *arguments: Any) -> Any:
    return await wire.request(
        "workspace/executeCommand", {"command": name, "arguments": list(arguments)}
    )


async def invoke(wire: Wire, line: int, character: int, **context: Any) -> list[dict[str, Any]]:
    params = completion_params(URI, line, character)
    params["context"] = {"triggerKind": 1, **context}
    result = await wire.request("textDocument/inlineCompletion", params)
    items: list[dict[str, Any]] = result["items"]
    return items


async def opened(session: Session, text: str, **options: Any) -> Wire:
    await session.wire.initialize(initializationOptions={"completion": options})
    session.wire.open(URI, text)
    await session.wire.until(lambda: "ready" in states(session.wire))
    return session.wire


def states(wire: Wire) -> list[str]:
    return [sent["state"] for sent in wire.sent("fimble/status")]


async def until_calls(engine: ScriptedEngine, count: int) -> None:
    await eventually(lambda: len(engine.requests) >= count)


async def test_the_commands_are_announced() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        result = await session.wire.initialize()
    assert sorted(result["capabilities"]["executeCommandProvider"]["commands"]) == [
        "fimble.accepted",
        "fimble.commitMessage",
        "fimble.document",
        "fimble.edit",
        "fimble.explain",
        "fimble.fix",
        "fimble.partiallyAccepted",
        "fimble.review",
        "fimble.showPrompt",
        "fimble.snooze",
        "fimble.tests",
    ]


async def test_the_next_suggestion_is_made_after_accepting() -> None:
    engine = ScriptedEngine(["1", "\ny = 2"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n")
        (item,) = await wire.complete(URI, 0, 4)
        wire.change(URI, 2, insert(0, 4, "1"))
        await command(wire, *[item["command"]["command"], *item["command"]["arguments"]])
        await until_calls(engine, 2)
        assert engine.requests[1].priority == "warmup"
        suggestions = session.server.suggestions
        name = suggestions.name_of(URI)
        await wire.until(lambda: not suggestions.service.is_at_work(name))
        # It is at hand when it is asked for: after Return the answer goes on.
        wire.change(URI, 3, insert(0, 5, "\n"))
        (item,) = await wire.complete(URI, 1, 0)
        assert item["insertText"] == "y = 2"
    assert [request.priority for request in engine.requests] == ["completion", "warmup"]


async def test_the_next_suggestion_is_made_after_a_pause() -> None:
    engine = ScriptedEngine(["value"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n")
        wire.change(URI, 2, insert(0, 4, "a."))
        await until_calls(engine, 1)
        (item,) = await wire.complete(URI, 0, 6)
        assert item["insertText"] == "value"
    assert [request.priority for request in engine.requests] == ["warmup"]


@pytest.mark.parametrize(("character", "made"), [(5, True), (2, False)])
async def test_the_next_suggestion_is_made_where_the_cursor_went(
    character: int, made: bool
) -> None:
    engine = ScriptedEngine(["value"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = a\n")
        position = {"line": 0, "character": character}
        wire.notify("fimble/cursor", {"uri": URI, "position": position})
        if made:
            await until_calls(engine, 1)
        else:
            await command(wire, "fimble.snooze", 0)
            assert not engine.requests


async def test_nothing_is_made_ahead_where_the_setting_says_so() -> None:
    engine = ScriptedEngine(["1"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n", ahead=False)
        (item,) = await wire.complete(URI, 0, 4)
        wire.change(URI, 2, insert(0, 4, "1"))
        await command(wire, "fimble.accepted", item["command"]["arguments"][0])
        await command(wire, "fimble.snooze", 0)
    assert len(engine.requests) == 1


async def test_accepting_a_part_costs_no_call() -> None:
    engine = ScriptedEngine(["µ😀 second"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "# \n")
        (item,) = await wire.complete(URI, 0, 2)
        wire.change(URI, 2, insert(0, 2, "µ😀 "))
        await command(wire, "fimble.partiallyAccepted", item["command"]["arguments"][0], 4)
        (item,) = await wire.complete(URI, 0, 6)
        assert item["insertText"] == "second"
    assert len(engine.requests) == 1


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fimble.accepted", []),
        ("fimble.accepted", [{}]),
        ("fimble.partiallyAccepted", ["1"]),
        ("fimble.partiallyAccepted", ["1", "x"]),
        ("fimble.snooze", ["long"]),
        ("fimble.snooze", [-1]),
        ("fimble.showPrompt", []),
        ("fimble.showPrompt", [URI, 3]),
    ],
)
async def test_arguments_that_cannot_be_meant(name: str, arguments: list[Any]) -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = await opened(session, "x")
        params = {"command": name, "arguments": arguments}
        answer = await wire.answer(wire.ask("workspace/executeCommand", params))
        assert answer["error"]["code"] == -32602
        assert "[" in answer["error"]["message"] or "id" in answer["error"]["message"]


async def test_an_offer_that_is_long_gone_is_no_error() -> None:
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        assert await command(await opened(session, "x"), "fimble.accepted", "999") is None


async def test_snoozing() -> None:
    engine = ScriptedEngine(["1"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n")
        await command(wire, "fimble.snooze", 10)
        assert await wire.complete(URI, 0, 4) == []
        assert wire.sent("fimble/status")[-1]["state"] == "disabled"
        assert wire.sent("fimble/status")[-1]["message"] == "Completions are snoozed."
        shown = await command(wire, "fimble.showPrompt", URI, {"line": 0, "character": 4})
        assert shown["refusal"]["name"] == "snoozed"
        await command(wire, "fimble.snooze", 0)
        assert len(await wire.complete(URI, 0, 4)) == 1
    assert len(engine.requests) == 1


async def test_snoozing_ends_by_itself() -> None:
    async with in_process(lambda model: ScriptedEngine(["1"])) as session:
        wire = await opened(session, "x = \n")
        await command(wire, "fimble.snooze", 60)
        await command(wire, "fimble.snooze", 0.002)  # a tenth of a second, and not an hour
        await wire.until(lambda: states(wire)[-1] == "ready")
        assert states(wire)[-2] == "disabled"
        assert len(await wire.complete(URI, 0, 4)) == 1


async def test_the_budget_that_is_shown_follows_the_latency() -> None:
    engine = ScriptedEngine(["1"])
    engine.info = replace(engine.info, prefill_tokens_per_s=500, decode_tokens_per_s=100)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n", latencyMs=300)
        for latency in (200, 400):
            settings = {"completion": {"latencyMs": latency}}
            wire.notify("workspace/didChangeConfiguration", {"settings": {"fimble": settings}})
        await wire.until(lambda: wire.sent("fimble/status")[-1]["budget"]["prompt"] == 2000)
        budgets = [sent["budget"] for sent in wire.sent("fimble/status") if sent["budget"]]
    # Ten times the latency for a prompt, four times for an answer, within their bounds.
    shown = list(dict.fromkeys((budget["prompt"], budget["answer"]) for budget in budgets))
    assert shown == [(1500, 64), (1000, 64), (2000, 64)]


async def test_the_prompt_is_shown_with_its_sections() -> None:
    engine = ScriptedEngine(["1"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n")
        await wire.complete(URI, 0, 4)
        shown = await command(wire, "fimble.showPrompt", URI, {"line": 0, "character": 4})
        other = await command(
            wire, "fimble.showPrompt", {"uri": URI, "position": {"line": 1, "character": 0}}
        )
    assert shown["refusal"] is None
    assert [(part["kind"], part["text"]) for part in shown["sections"]] == [
        ("prefix", "x = "),
        ("suffix", "\n"),
    ]
    assert all(part["reason"] and part["tokens"] for part in shown["sections"])
    assert shown["left_out"] == []
    assert [part["text"] for part in other["sections"]] == ["x = \n", ""]
    assert len(engine.requests) == 1


#: refusal, document, its text, settings
REFUSED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("disabled", URI, "x", {"enabled": False}),
    ("language", URI, "x", {"disabledLanguages": ["python"]}),
    ("pattern", URI, "x", {"excludePatterns": ["a.py"]}),
    ("secret", "file:///p/.env", "KEY=1", {}),
    ("secret", "untitled:1", "-----BEGIN PRIVATE KEY-----\nabc", {}),
    ("size", URI, "x" * 2_000_001, {}),
    ("binary", URI, "a\0b", {}),
    ("mid-word", URI, "word", {}),
]


@pytest.mark.parametrize(("name", "uri", "text", "options"), REFUSED)
async def test_each_refusal_is_named(
    name: str, uri: str, text: str, options: dict[str, Any]
) -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": options})
        wire.open(uri, text)
        assert await wire.complete(uri, 0, 1) == []
        shown_at = {"line": 0, "character": 1}
        shown = await command(wire, "fimble.showPrompt", uri, shown_at)
        assert shown["refusal"]["name"] == name
        assert shown["refusal"]["reason"].endswith(".")
        assert (
            await command(wire, "fimble.showPrompt", "untitled:x", {"line": 0, "character": 0})
        )["refusal"]["name"] == "closed"
    assert not engine.requests


async def test_every_refusal_has_a_test() -> None:
    named = {case[0] for case in REFUSED} | {"closed", "ignored", "snoozed", "read-only"}
    assert named | {"confidence"} == set(get_args(RefusalName))


async def test_an_ignored_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("made.py\n", encoding="utf-8")
    file = tmp_path / "made.py"
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        folder = {"uri": tmp_path.as_uri(), "name": "p"}
        await wire.initialize(workspaceFolders=[folder])
        wire.open(file.as_uri(), "x = ")
        assert await wire.complete(file.as_uri(), 0, 4) == []
        shown = await command(wire, "fimble.showPrompt", file.as_uri(), {"line": 0, "character": 4})
    assert shown["refusal"]["name"] == "ignored"
    assert shown["sections"] == []
    assert not engine.requests


async def test_a_read_only_file_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "a.py"
    file.write_text("x", encoding="utf-8")
    # Whoever runs the tests may be allowed to write to anything.
    monkeypatch.setattr("fimble.assist.policy.os.access", lambda path, mode: False)
    async with in_process(lambda model: ScriptedEngine(["x"])) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(file.as_uri(), "x")
        shown = await command(wire, "fimble.showPrompt", file.as_uri(), {"line": 0, "character": 1})
    assert shown["refusal"]["name"] == "read-only"


async def test_the_middle_of_a_word_is_answered_when_the_user_asks() -> None:
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "word", candidates=1)
        assert await wire.complete(URI, 0, 2) == []
        assert len(await invoke(wire, 0, 2)) == 1


async def test_several_candidates_when_the_user_asks() -> None:
    def answers(request: Any) -> Any:
        return ["1", "2", "1", "3"][: request.n] if request.temperature else "1"

    engine = ScriptedEngine(answers)
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n", candidates=4)
        assert [item["insertText"] for item in await wire.complete(URI, 0, 4)] == ["1"]
        assert [item["insertText"] for item in await invoke(wire, 0, 4)] == ["1", "2"]
        assert len(engine.requests) == 2
        # Cycling asks again and again.
        assert [item["insertText"] for item in await invoke(wire, 0, 4)] == ["1", "2"]
    assert [(request.n, bool(request.temperature)) for request in engine.requests] == [
        (1, False),
        (3, True),
    ]


async def test_the_selected_item_of_the_editors_list_is_obeyed() -> None:
    engine = ScriptedEngine(["(path)"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = os.re\n", candidates=1)
        span = {"start": {"line": 0, "character": 7}, "end": {"line": 0, "character": 9}}
        (item,) = await invoke(wire, 0, 9, selectedCompletionInfo={"range": span, "text": "remove"})
    assert item["insertText"] == item["filterText"] == "remove(path)"
    assert item["range"] == span
    assert prompt_as_text(engine.requests[0].prompt) == (
        "<fim_prefix>x = os.remove<fim_suffix>\n<fim_middle>"
    )


async def test_low_confidence_is_silent_unless_asked() -> None:
    engine = ScriptedEngine([Answer("a doubtful answer", mean_logprob=-3.0)])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, "x = \n", minConfidence=0.5, candidates=1)
        assert await wire.complete(URI, 0, 4) == []
        shown = await command(wire, "fimble.showPrompt", URI, {"line": 0, "character": 4})
        assert shown["refusal"]["name"] == "confidence"
        assert "0.05 sure" in shown["refusal"]["reason"]
        assert "completion.minConfidence is 0.5" in shown["refusal"]["reason"]
        assert [part["text"] for part in shown["sections"]] == ["x = ", "\n"]
        assert len(await invoke(wire, 0, 4)) == 1
