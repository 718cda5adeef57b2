"""A session's statistics: what is counted, that it reaches the disk, and that nothing else does."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from fimble.assist import statistics_store
from fimble.assist.outcomes import KEPT_AFTER_SECONDS
from tests.lsp.process import ended_engine, served, server_env
from tests.lsp.wire import Session, Wire, in_process
from tests.support.scripted_engine import ScriptedEngine
from tests.support.tiny import make_tiny_package

URI = "file:///p/a.py"
SECRET = "hunter2SECRET"
SOURCE = f"def {SECRET}(width, height):\n    return \n"

#: The real server on the real engine; only its clock is ahead by what a file says.
SERVE = """
import sys, time
from pathlib import Path
from fimble.lsp import serve
ahead = Path(sys.argv[1])
sys.exit(serve("tiny", clock=lambda: time.monotonic() + float(ahead.read_text())))
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("stats-home")
    make_tiny_package(home / "models" / "tiny")
    with ended_engine(home):
        yield home


def insert(character: int, text: str) -> dict[str, Any]:
    place = {"line": 1, "character": character}
    return {"range": {"start": place, "end": place}, "text": text}


async def shown(wire: Wire, uri: str) -> tuple[str, str]:
    """Opens a document of its own and asks in it: the suggestion and its offer's id."""
    wire.open(uri, SOURCE.replace("width", uri[-4]))
    (item,) = await wire.complete(uri, 1, 11, patience=120)
    return item["insertText"], item["command"]["arguments"][0]


async def tell(wire: Wire, command: str, *arguments: Any) -> None:
    params = {"command": f"fimble.{command}", "arguments": list(arguments)}
    await wire.request("workspace/executeCommand", params)


async def session_with_each_outcome(home: Path, clock: Path, **settings: Any) -> None:
    """Accepts a, accepts the first character of b, types something else in c, types d."""
    clock.write_text("0", encoding="utf-8")
    # Nothing that a model with random weights says is sure.
    completion = {"ahead": False, "maxTokens": 8, "minConfidence": 0.0}
    options = {"completion": completion, **settings}
    async with served(home, [sys.executable, "-c", SERVE, str(clock)]) as server:
        wire = server.wire
        await wire.initialize(initializationOptions=options)
        a, b, c, d = (f"file:///p/{SECRET}-{name}.py" for name in "abcd")
        text, offer = await shown(wire, a)
        wire.change(a, 2, insert(11, text))
        await tell(wire, "accepted", offer)
        text, offer = await shown(wire, b)
        wire.change(b, 2, insert(11, text[0]))
        await tell(wire, "partiallyAccepted", offer, len(text[0].encode("utf-16-le")) // 2)
        text, _ = await shown(wire, c)
        other = "(" if text[0] != "(" else "["
        wire.change(c, 2, insert(11, other))
        assert len(await wire.complete(c, 1, 12)) == 1
        text, _ = await shown(wire, d)
        at = 11
        for version, character in enumerate(text, 2):
            wire.change(d, version, insert(at, character))
            at += len(character.encode("utf-16-le")) // 2
        await tell(wire, "snooze", 0)  # when that is answered, all of it has come
        clock.write_text(str(KEPT_AFTER_SECONDS), encoding="utf-8")
        await wire.quit()
        assert await server.ended() == 0
        assert await server.stderr() == ""


def stats(home: Path, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "fimble", "stats", "--json", *arguments],
        env=server_env(home),
        capture_output=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)


async def test_a_session_is_counted_without_a_word_of_it(home: Path, tmp_path: Path) -> None:
    await session_with_each_outcome(home, tmp_path / "clock")
    found = stats(home, "--days", "1")
    total = found["total"]
    assert total["shown"] == 5  # a, b, c twice, d
    assert total["accepted"] == 1
    assert total["partially_accepted"]["suggestions"] == 1
    assert total["typed"] == 1
    assert total["dismissed"] == 2
    kept = {"after_seconds": 30, "measured": 1, "unchanged": 1, "mostly": 0}
    assert total["kept"] == kept
    assert total["answers"] == {"memory": 0, "ahead": 0, "engine": 5}
    assert total["model_calls"] == 5
    assert total["prompt_tokens"]["computed"] > 5
    assert total["latency_ms"]["request"]["count"] == 5
    assert total["latency_ms"]["keystroke"]["count"] == 1  # of c
    assert list(found["by_model"]) == ["tiny"]
    assert list(found["by_language"]) == ["python"]
    assert found["by_model"]["tiny"] == found["by_language"]["python"] == total
    files = sorted((home / "statistics").iterdir())
    assert [file.name for file in files] == [statistics_store.statistics_file().name]
    for word in (SECRET, "return", "a.py", "width", "/p/"):
        assert word.encode() not in files[0].read_bytes()


async def test_switched_off_nothing_is_written(home: Path, tmp_path: Path) -> None:
    stats(home, "--clear")
    await session_with_each_outcome(home, tmp_path / "clock", statistics=False)
    assert list((home / "statistics").iterdir()) == []
    assert stats(home)["total"]["shown"] == 0


@pytest.mark.skipif(
    not hasattr(os, "geteuid"), reason="rights of folders are another matter on Windows"
)
async def test_a_home_that_cannot_be_written_to_disturbs_nothing(
    home: Path, tmp_path: Path
) -> None:
    stats(home, "--clear")
    (home / "statistics").rmdir()
    (home / "statistics").write_bytes(b"a file where the folder should be")
    await session_with_each_outcome(home, tmp_path / "clock")
    log = (home / "logs" / "server.log").read_text(encoding="utf-8")
    assert log.count("no statistics are written") == 1
    (home / "statistics").unlink()


# --- on a scripted engine ---------------------------------------------------------------------


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "own"))
    return tmp_path / "own"


def counted(measure: str) -> int:
    numbers = statistics_store.read(date.today())
    return sum(number for key, number in numbers.items() if key.measure == measure)


async def opened(session: Session, **options: Any) -> Wire:
    wire = session.wire
    await wire.initialize(initializationOptions=options)
    wire.open(URI, "x = \ny = \n")
    await wire.until(lambda: "ready" in [sent["state"] for sent in wire.sent("fimble/status")])
    return wire


async def test_where_answers_come_from(own_home: Path) -> None:
    engine = ScriptedEngine(["first", "second"])
    async with in_process(lambda model: engine) as session:
        wire = await opened(session)
        for character in (4, 4):
            await wire.complete(URI, 0, character)
        wire.notify("fimble/cursor", {"uri": URI, "position": {"line": 1, "character": 4}})
        await wire.until(lambda: len(engine.requests) == 2)
        for _ in range(3):
            await wire.complete(URI, 1, 4)
    sources = ("from_engine", "from_memory", "from_ahead")
    assert [counted(source) for source in sources] == [1, 3, 1]
    # Asking again shows nothing new.
    assert counted("shown") == 2
    assert counted("model_calls") == 2


async def test_what_is_superseded_or_cancelled_was_not_shown(own_home: Path) -> None:
    engine = ScriptedEngine(["first"], gate=asyncio.Event())
    async with in_process(lambda model: engine) as session:
        wire = await opened(session, completion={"ahead": False})
        superseded = wire.ask_completion(URI, 0, 4)
        await wire.until(lambda: len(engine.requests) == 1)
        wire.change(URI, 2, {"text": "other"})
        await wire.answer(superseded)
        cancelled = wire.ask_completion(URI, 0, 5)
        await wire.until(lambda: len(engine.requests) == 2)
        wire.notify("$/cancelRequest", {"id": cancelled})
        await wire.answer(cancelled)
    assert counted("shown") == 0
    assert counted("request_ms") == 0
    assert counted("model_calls") == 2


async def test_an_empty_answer_shows_nothing(own_home: Path) -> None:
    async with in_process(lambda model: ScriptedEngine([""])) as session:
        wire = await opened(session)
        assert await wire.complete(URI, 0, 4) == []
    assert counted("shown") == counted("from_engine") == 0


async def test_switching_off_works_at_once(own_home: Path) -> None:
    async with in_process(lambda model: ScriptedEngine(["1"])) as session:
        wire = await opened(session)
        await wire.complete(URI, 0, 4)
        wire.notify(
            "workspace/didChangeConfiguration", {"settings": {"fimble": {"statistics": False}}}
        )
        await wire.complete(URI, 1, 4)
    assert not own_home.joinpath("statistics").exists()


async def test_nothing_is_written_while_somebody_types(
    own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = []
    monkeypatch.setattr(statistics_store, "add", lambda batch, today: batches.append(dict(batch)))
    async with in_process(lambda model: ScriptedEngine(["value"])) as session:
        wire = await opened(session)
        for version, character in enumerate("value", 2):
            await wire.complete(URI, 0, 2 + version)
            place = {"line": 0, "character": 2 + version}
            wire.change(URI, version, {"range": {"start": place, "end": place}, "text": character})
        await wire.complete(URI, 1, 4)
        assert not batches
    assert len(batches) == 1
