"""What users of other assistants complain of, numbered; each is a test here or named here."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from fimble_context.syntax.tree import SyntaxTree
from tests.assist.places import MARK
from tests.lsp.wire import Session, completion_params, in_process
from tests.support.scripted_engine import ScriptedEngine, prompt_as_text

ROOT = Path(__file__).resolve().parents[2]
URI = "file:///p/a.py"

#: Complaint → tests elsewhere that hold it.
ELSEWHERE = {
    2: [
        "tests/lsp/test_inline_completion.py::test_positions_in_the_encoding_that_was_agreed_on",
        "tests/lsp/test_text_sync.py::test_deleting_an_emoji",
    ],
    5: ["tests/lsp/test_session.py::test_control_tokens_in_a_file_are_text"],
    6: ["tests/lsp/test_completion.py::test_an_item_replaces_the_word_and_begins_with_it"],
    8: [
        "tests/lsp/test_notebook.py::test_the_code_cells_above_are_the_prefix",
        "tests/lsp/test_commands.py::test_the_selected_item_of_the_editors_list_is_obeyed",
    ],
    9: ["tests/lsp/test_inline_completion.py::test_five_requests_in_200_ms_get_one_answer_each"],
    10: ["tests/lsp/test_session.py::test_a_long_file_is_cut_to_the_window"],
    12: [
        "tests/lsp/test_workspace.py::test_secret_ignored_and_excluded_files_are_in_no_prompt",
        "tests/context/test_index.py::test_ignored_and_secret_files_are_in_no_answer_and_on_no_disk",
        "tests/lsp/test_process.py::test_the_log_has_the_traceback_and_no_source_text",
    ],
    13: ["tests/engine/test_busy_engine.py", "tests/engine/test_scheduler.py"],
    14: [
        "tests/lsp/test_convert.py",
        "tests/lsp/test_workspace.py::test_folders_come_and_go",
        "tests/lsp/test_workspace.py::test_a_file_outside_of_all_folders_is_completed",
    ],
    15: [
        "tests/lsp/test_lifecycle.py::test_what_real_editors_say_of_themselves_is_understood",
        "tests/lsp/test_workspace.py::test_watching_is_registered_only_where_the_editor_can",
    ],
}


@pytest.mark.parametrize("number", sorted(ELSEWHERE))
def test_what_is_held_elsewhere_is_there(number: int) -> None:
    for name in ELSEWHERE[number]:
        file, _, test = name.partition("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^(?:async )?def {test or 'test_'}", source, re.MULTILINE), name


async def completed(
    source: str, answer: str, *, uri: str = URI, language: str = "python"
) -> tuple[str, list[str]]:
    """The prompt for a source with a cursor, and the texts inserted."""
    before, _, after = source.partition(MARK)
    line = before.count("\n") if "\n" in before else before.count("\r")
    column = len(re.split(r"\r\n|\n|\r", before)[-1])
    engine = ScriptedEngine([answer])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        session.wire.open(uri, before + after, language)
        items = await session.wire.complete(uri, line, column)
    return prompt_as_text(engine.requests[0].prompt), [item["insertText"] for item in items]


async def test_1_a_crlf_file_has_the_prompt_of_its_lf_twin_and_keeps_its_line_ends() -> None:
    source, answer = "def f():\n    │\n\nx = 1\n", "a = 1\n    return a"
    prompt, inserted = await completed(source, answer)
    crlf_prompt, crlf_inserted = await completed(source.replace("\n", "\r\n"), answer)
    assert crlf_prompt == prompt
    assert crlf_inserted == [inserted[0].replace("\n", "\r\n")]


async def test_2_deleting_an_emoji_incrementally() -> None:
    engine = ScriptedEngine(["!"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, '"µ漢😀"')
        emoji = {"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 5}}
        wire.change(URI, 2, {"range": emoji, "text": ""})
        await wire.complete(URI, 0, 3)
    assert prompt_as_text(engine.requests[0].prompt) == (
        '<fim_prefix>"µ漢<fim_suffix>"<fim_middle>'
    )


@pytest.mark.parametrize(
    ("text", "line", "character", "prompt"),
    [
        ("", 0, 0, "<fim_prefix><fim_suffix><fim_middle>"),
        ("x = 1", 0, 5, "<fim_prefix>x = 1<fim_suffix><fim_middle>"),
        ("x =\ny", 0, 99, "<fim_prefix>x =<fim_suffix>\ny<fim_middle>"),
        ("x =\ny", 99, 7, "<fim_prefix>x =\ny<fim_suffix><fim_middle>"),
    ],
)
async def test_3_empty_files_no_final_newline_and_positions_past_the_end(
    text: str, line: int, character: int, prompt: str
) -> None:
    engine = ScriptedEngine(["z"])
    async with in_process(lambda model: engine) as session:
        await session.wire.initialize()
        session.wire.open(URI, text)
        await session.wire.complete(URI, line, character)
    assert prompt_as_text(engine.requests[0].prompt) == prompt


@pytest.mark.parametrize(
    ("source", "answer", "inserted"),
    [
        ("f(│)\n", "x)", "x"),
        ("print(│)\n", "len(x)", "len(x)"),
        ("f(│)\n", "g(x)", "g(x)"),
        ("f(g(│))\n", "x))", "x"),
    ],
)
async def test_4_text_right_of_the_cursor_is_not_repeated(
    source: str, answer: str, inserted: str
) -> None:
    assert (await completed(source, answer))[1] == [inserted]


async def test_5_control_tokens_are_neither_shown_nor_made_of_text() -> None:
    prompt, inserted = await completed("A = '<|fim_middle|>'\nx = │\n", "1<|endoftext|>more")
    assert prompt.startswith("<fim_prefix>A = '<|fim_middle|>'")
    assert inserted == ["1"]


@pytest.mark.parametrize("unit", ["    ", "  ", "\t"])
@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_6_indentation_on_blank_lines(unit: str, depth: int) -> None:
    headers = [f"{unit * level}if a{level}:\n" for level in range(depth)]
    indent = unit * depth
    source = f"{''.join(headers)}{indent}│\n"
    answer = f"while b:\n{indent}{unit}c()"
    _, inserted = await completed(source, answer)
    # A client inserts it as it stands: the first line is at the cursor, the second has it all.
    assert inserted == [answer]


@pytest.mark.parametrize(
    ("uri", "language", "shown"),
    [
        ("untitled:Untitled-1", "python", True),
        ("file:///nowhere/never-saved.py", "python", True),
        ("file:///p/a.txt", "python", True),
        ("file:///p/a.py", "plaintext", True),
    ],
)
async def test_7_unsaved_buffers_and_languages_that_contradict_the_name(
    uri: str, language: str, shown: bool
) -> None:
    _, inserted = await completed("x = │\n", "1", uri=uri, language=language)
    assert bool(inserted) == shown


async def test_10_a_keystroke_in_a_large_file_asks_nobody_and_parses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parses: list[str] = []
    tree = SyntaxTree.tree

    def counted(self: SyntaxTree, text: str) -> object:
        parses.append("parsed")
        return tree(self, text)

    monkeypatch.setattr(SyntaxTree, "tree", counted)
    engine = ScriptedEngine(["x"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize(initializationOptions={"completion": {"ahead": False}})
        wire.open(
            URI, "value = compute(first_argument, second_argument)  # padding here\n" * 16_000
        )
        for number in range(20):
            place = {"line": 8_000, "character": number}
            change = {"range": {"start": place, "end": place}, "text": "x"}
            wire.change(URI, number + 2, change)
        await wire.request(
            "workspace/executeCommand", {"command": "fimble.snooze", "arguments": [0]}
        )
    assert not parses
    assert not engine.requests
    assert not engine.counted


async def test_11_no_text_is_twice_in_a_prompt_and_sections_keep_their_order(
    tmp_path: Path,
) -> None:
    names = [f"helper_{n}" for n in range(4)]
    for name in names:
        text = f"def {name}(value: int) -> int:\n    return value\n"
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    source = "".join(f"from {name} import {name}\n" for name in names)
    source += "\n\ndef main() -> None:\n" + "".join(f"    {name}(1)\n" for name in names)
    file = tmp_path / "main.py"
    file.write_text(source, encoding="utf-8")
    engine = ScriptedEngine([""])
    async with in_process(lambda model: engine) as session:
        folder = {"uri": tmp_path.as_uri(), "name": "p"}
        await session.wire.initialize(workspaceFolders=[folder])
        await until_indexed(session)
        session.wire.open(file.as_uri(), source)
        line = source.count("\n")
        for number, key in enumerate("helper"):
            place = {"line": line, "character": number}
            change = {"range": {"start": place, "end": place}, "text": key}
            session.wire.change(file.as_uri(), number + 2, change)
            await session.wire.complete(file.as_uri(), line, number + 1)
    prompts = [prompt_as_text(request.prompt) for request in engine.requests]
    heads = {prompt.partition("<fim_prefix>")[0] for prompt in prompts}
    assert len(heads) == 1
    for name in names:
        assert prompts[-1].count(f"def {name}(") == 1


async def until_indexed(session: Session) -> None:
    host = session.server.workspace_host
    await session.wire.until(
        lambda: host.workspace is not None and host.workspace.status.phase == "idle"
    )


@pytest.mark.parametrize(
    "switch", [{"disabledLanguages": ["python"]}, {"excludePatterns": ["*.py"]}]
)
async def test_12_switches_work_at_once(switch: dict[str, Any]) -> None:
    engine = ScriptedEngine(["1"])
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "x = ")
        assert len(await wire.complete(URI, 0, 4)) == 1
        wire.notify(
            "workspace/didChangeConfiguration", {"settings": {"fimble": {"completion": switch}}}
        )
        assert await wire.complete(URI, 0, 4) == []
        assert await wire.complete(URI, 0, 4) == []


async def test_9_superseded_requests_are_cancelled_at_the_engine_too() -> None:
    engine = ScriptedEngine(["x"], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = session.wire
        await wire.initialize()
        wire.open(URI, "")
        wire.ask("textDocument/inlineCompletion", completion_params(URI, 0, 0))
        await wire.until(lambda: bool(engine.requests))
        wire.change(URI, 2, {"text": "something else"})
        await wire.until(lambda: len(engine.cancelled) == 1)
