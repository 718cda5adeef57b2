"""Collected numbers, the file they are added to, and the report that is made of them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from fimble.assist import statistics_store as store
from fimble.assist.answer import ModelCall
from fimble.assist.statistics import MEASURES, Batch, Key, Statistics
from fimble.assist.statistics_report import report
from fimble.engine.protocol import Usage
from fimble.errors import StatisticsError

TODAY = date(2030, 1, 2)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIMBLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def collected() -> Statistics:
    statistics = Statistics(today=lambda: TODAY)
    statistics.enabled = True
    return statistics


def key(measure: str = "shown", *, day: date = TODAY, bucket: int = 0) -> Key:
    return Key(day.isoformat(), "m", "python", measure, bucket)


def stored(since: date = date(2000, 1, 1)) -> dict[Key, int]:
    return store.read(since)


# --- collecting ------------------------------------------------------------------------------


def test_counts_by_day_model_and_language() -> None:
    statistics = collected()
    statistics.count("shown", "m", "python")
    statistics.count("shown", "m", "python", 2)
    statistics.count("shown", "m", "go", 0)
    statistics.called(ModelCall("m", "python", Usage(9, 5, 4, 3)))
    assert statistics.take() == {
        key("shown"): 3,
        key("model_calls"): 1,
        key("computed_tokens"): 4,
        key("reused_tokens"): 5,
    }
    assert statistics.take() == {}


@pytest.mark.parametrize(
    ("model", "language", "name", "identifier"),
    [
        ("qwen2.5-coder-0.5b", "c++", "qwen2.5-coder-0.5b", "c++"),
        ("Qwen/Qwen2.5-Coder:7b", None, "Qwen2.5-Coder:7b", "other"),
        ("/home/me/a secret project", "my secret text", "other", "other"),
        ("C:\\models\\tiny\\", "", "tiny", "other"),
        ("größer", "x" * 99, "größer", "other"),
    ],
)
def test_only_names_are_written_down(
    model: str, language: str | None, name: str, identifier: str
) -> None:
    statistics = collected()
    statistics.count("shown", model, language)
    assert list(statistics.take()) == [Key("2030-01-02", name, identifier, "shown")]


def test_switched_off_it_counts_and_keeps_nothing() -> None:
    told: list[bool] = []
    statistics = Statistics(on_count=lambda: told.append(True))
    statistics.count("shown", "m", "python")
    statistics.enabled = True
    statistics.count("shown", "m", "python")
    batch = statistics.take()
    statistics.count("shown", "m", "python")
    statistics.enabled = False
    statistics.put_back(batch)
    assert statistics.take() == {}
    assert told == [True, True]


def test_what_could_not_be_handed_over_is_added_to_what_came_since() -> None:
    statistics = collected()
    statistics.count("shown", "m", "python")
    batch = statistics.take()
    statistics.count("shown", "m", "python")
    statistics.put_back(batch)
    assert statistics.take() == {key(): 2}


# --- the file --------------------------------------------------------------------------------


def test_batches_are_added_up_and_old_days_go(home: Path) -> None:
    assert stored() == {}
    assert not home.exists()
    last = TODAY - timedelta(days=store.KEPT_DAYS - 1)
    old = Counter({key(day=last): 1, key(day=last - timedelta(days=1)): 1})
    store.add(old, TODAY)
    store.add({key(): 2, key("request_ms", bucket=7): 1}, TODAY)
    store.add({key(): 3}, TODAY)
    assert stored() == {key(day=last): 1, key(): 5, key("request_ms", bucket=7): 1}
    assert stored(since=TODAY) == {key(): 5, key("request_ms", bucket=7): 1}


ADDING = """
import sys
from datetime import date
from fimble.assist import statistics_store
from fimble.assist.statistics import Key
key = Key("2030-01-02", "m", "python", "shown", 0)
for _ in range(20):
    statistics_store.add({key: 1}, date(2030, 1, 2))
"""


def test_several_processes_add_at_once() -> None:
    processes = [subprocess.Popen([sys.executable, "-c", ADDING]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert stored() == {key(): 60}


def other_tables(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE counts (something)")
    connection.commit()
    connection.close()


def half_of_it(path: Path) -> None:
    store.add({key(day=TODAY - timedelta(days=day)): 1 for day in range(80)}, TODAY)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\x55" * (len(content) - 4096))


@pytest.mark.parametrize(
    "damage",
    [lambda path: path.write_bytes(b"no database " * 999), other_tables, half_of_it],
    ids=["garbage", "other tables", "half of it"],
)
def test_a_damaged_file_is_begun_anew_with_one_line(
    damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.statistics_file()
    path.parent.mkdir(parents=True)
    assert callable(damage)
    damage(path)
    with pytest.raises(StatisticsError, match=r"damaged.*fimble stats --clear"):
        stored()
    store.add({key(): 1}, TODAY)
    store.add({key(): 1}, TODAY)
    assert stored() == {key(): 2}
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_an_empty_file_is_one_that_somebody_is_about_to_fill() -> None:
    path = store.statistics_file()
    path.parent.mkdir(parents=True)
    path.touch()
    assert stored() == {}
    store.add({key(): 1}, TODAY)
    assert stored() == {key(): 1}


def test_a_folder_that_cannot_be_made_is_named(home: Path) -> None:
    home.write_bytes(b"a file where the folder should be")
    with pytest.raises(StatisticsError, match="cannot be used"):
        store.add({key(): 1}, TODAY)


def test_a_file_that_another_process_holds_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.add({key(): 1}, TODAY)
    monkeypatch.setattr(store, "_BUSY_SECONDS", 0.01)
    holder = sqlite3.connect(store.statistics_file(), isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StatisticsError, match="locked"):
        store.add({key(): 1}, TODAY)
    holder.execute("ROLLBACK")
    holder.close()
    store.add({key(): 1}, TODAY)
    assert stored() == {key(): 2}


def test_a_full_disk_leaves_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    store.add({key(): 1}, TODAY)
    connect = sqlite3.connect

    def full(*arguments: object, **options: object) -> sqlite3.Connection:
        """A file that may not grow is what sqlite sees of a full disk."""
        connection = connect(*arguments, **options)  # type: ignore[call-overload]
        assert isinstance(connection, sqlite3.Connection)
        connection.execute("PRAGMA max_page_count = 1").fetchone()
        return connection

    many: Batch = Counter({key("request_ms", bucket=bucket): 1 for bucket in range(2000)})
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", full)
        with pytest.raises(StatisticsError, match="full"):
            store.add(many, TODAY)
    assert stored() == {key(): 1}


def test_clearing() -> None:
    store.clear()
    store.add({key(): 1}, TODAY)
    store.clear()
    assert stored() == {}
    assert not store.statistics_file().exists()


# --- the report ------------------------------------------------------------------------------


def test_the_report_has_every_measure() -> None:
    """A measure of its own value each: wherever one is missing, so is its value."""
    values = {measure: number for number, measure in enumerate(sorted(MEASURES), 1)}
    found = report({key(measure): value for measure, value in values.items()})
    assert found["total"] == {
        "shown": values["shown"],
        "accepted": values["accepted"],
        "partially_accepted": {
            "suggestions": values["partially_accepted"],
            "words": values["partial_words"],
            "lines": values["partial_lines"],
        },
        "typed": values["typed"],
        "dismissed": values["dismissed"],
        "kept": {
            "after_seconds": 30,
            "measured": values["kept_measured"],
            "unchanged": values["kept_unchanged"],
            "mostly": values["kept_mostly"],
        },
        "answers": {
            "memory": values["from_memory"],
            "ahead": values["from_ahead"],
            "engine": values["from_engine"],
        },
        "latency_ms": {
            "keystroke": {"count": values["keystroke_ms"], "p50": 1.0, "p95": 1.0},
            "request": {"count": values["request_ms"], "p50": 1.0, "p95": 1.0},
        },
        "model_calls": values["model_calls"],
        "prompt_tokens": {
            "computed": values["computed_tokens"],
            "reused": values["reused_tokens"],
        },
    }


def test_the_report_is_by_model_language_and_day() -> None:
    numbers = {
        Key("2030-01-01", "m", "go", "shown"): 1,
        Key("2030-01-02", "n", "go", "shown"): 2,
        Key("2030-01-02", "n", "python", "shown"): 4,
    }
    found = report(numbers)

    def shown(group: str) -> dict[str, int]:
        return {name: sums["shown"] for name, sums in found[group].items()}

    assert found["total"]["shown"] == 7
    assert shown("by_model") == {"m": 1, "n": 6}
    assert shown("by_language") == {"go": 3, "python": 4}
    assert shown("by_day") == {"2030-01-01": 1, "2030-01-02": 6}
    assert found["total"]["latency_ms"]["request"] == {"count": 0, "p50": None, "p95": None}
