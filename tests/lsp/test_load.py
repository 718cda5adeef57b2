"""Many documents, many changes and large pastes: every request is answered, every text right."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.lsp.wire import in_process
from tests.support.scripted_engine import ScriptedEngine

DOCUMENTS = 1_000
CHANGES = 1_000
TEXT = "first = 1\nsecond = 2\nthird = 3\n"
OFF = {"completion": {"enabled": False}}


def uri(number: int) -> str:
    return f"untitled:document-{number}"


def insertion(line: int, character: int, text: str) -> dict[str, Any]:
    place = {"line": line, "character": character}
    return {"range": {"start": place, "end": place}, "text": text}


def params_of(document: str) -> dict[str, Any]:
    place = {"line": 0, "character": 0}
    return {
        "textDocument": {"uri": document},
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }


async def test_a_thousand_documents_and_changes_and_a_megabyte_pasted() -> None:
    expected = {uri(number): TEXT for number in range(DOCUMENTS)}
    versions = dict.fromkeys(expected, 1)
    chance = random.Random(0)
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire, asked = session.wire, list[int]()

        async def asks(document: str) -> None:
            """Lets the server read as well: a pipe holds 64 KiB."""
            asked.append(wire.ask("textDocument/codeAction", params_of(document)))
            await wire.answer(asked[-1])

        await wire.initialize(initializationOptions=OFF)
        for number, document in enumerate(expected):
            wire.open(document, TEXT)
            if number % 50 == 0:
                await asks(document)
        for turn in range(CHANGES):
            document, line = chance.choice(list(expected)), chance.randrange(3)
            lines = expected[document].split("\n")
            lines[line] = f"é😀{turn}{lines[line]}"
            expected[document] = "\n".join(lines)
            versions[document] += 1
            wire.change(document, versions[document], insertion(line, 0, f"é😀{turn}"))
            if turn % 20 == 0:
                await asks(document)
        pasted = uri(0)
        megabyte = "pasted = 'é😀'\n" * 65_536
        expected[pasted] = megabyte + expected[pasted]
        change = insertion(0, 0, megabyte)
        # In a thread: it is more than the pipe holds, and the server reads it on this loop.
        await asyncio.to_thread(wire.change, pasted, versions[pasted] + 1, change)
        await asks(pasted)
        documents = session.server.documents
        for document, text in expected.items():
            found = documents.get(document)
            assert found is not None and found.text == text
        assert [len(wire.answers(each)) for each in asked] == [1] * len(asked)
