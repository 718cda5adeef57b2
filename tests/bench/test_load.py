"""``fimble bench load`` in short form: counts and memory, never times."""

from __future__ import annotations

from pathlib import Path

import pytest

from fimble.bench.load import WINDOW_LIMIT, Client, Load
from tests.cli.conftest import CommandLine
from tests.support.tiny import make_tiny_package


def client(*seconds: float, lost: int = 0) -> Client:
    return Client(asked=5 * len(seconds), lost=lost, doubled=0, seconds=seconds, bytes=50)


def test_fairness_is_the_slowest_clients_median_to_the_fastests() -> None:
    clients = (client(0.1, 0.1, 0.4), client(0.3, 0.2, 0.3), client(0.2, lost=1))
    found = Load(clients, 2, 30, 0, engine_bytes=7, planned_bytes=9).to_json()
    assert found["fairness"] == 3.0
    assert found["clients"][0]["latency_ms"] == {"p50": 100.0, "p95": 400.0, "p99": 400.0}
    assert (found["asked"], found["lost"], found["doubled"]) == (35, 1, 0)


def test_windows_that_type_at_once_lose_nothing(tmp_path: Path) -> None:
    package = make_tiny_package(tmp_path / "tiny")
    fimble = CommandLine(tmp_path / "home")
    answer = fimble("bench", "load", "--editors", "1,3", "--bursts", "2", "--model", str(package),
                    "--json")  # fmt: skip
    assert answer.code == 0, answer.err
    one, three = answer.json["runs"]
    for run, editors in ((one, 1), (three, 3)):
        assert run["asked"] == editors * 2 * 5
        assert run["lost"] == run["doubled"] == run["messages"] == 0
        assert len(run["clients"]) == editors
        assert 0 < run["window_bytes_max"] < WINDOW_LIMIT
        assert 0 < run["engine_bytes"] < run["engine_planned_bytes"]


@pytest.mark.parametrize("editors", ["65", "1,two"])
def test_a_wrong_number_of_windows_is_refused(tmp_path: Path, editors: str) -> None:
    answer = CommandLine(tmp_path / "home")("bench", "load", "--editors", editors)
    assert answer.code == 2
    assert "--editors 1,4,16" in answer.err
