"""``fimble bench typing`` as a whole: its figures, its errors, and a run on the tiny package."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fimble.bench.llama_binding import LlamaBinding
from fimble.bench.player import Keystroke, Played, Work
from fimble.bench.typing import compare, figures
from fimble.errors import UsageError
from tests.cli.conftest import CommandLine
from tests.support.tiny import make_tiny_package

FIGURES = {"latency_ms", "computed_tokens_per_keystroke", "computed_tokens", "model_calls", "shown",
           "right"}  # fmt: skip


def played(tokens: list[int], latencies: list[float | None], seen: list[bool]) -> Played:
    keystrokes = [
        Keystroke("", latency_ms=latency, computed_tokens=count)
        for count, latency in zip(tokens, latencies, strict=True)
    ]
    return Played(keystrokes, [("", right) for right in seen], work=Work(sum(tokens), len(tokens)))


def test_figures_and_ratios() -> None:
    ours = figures(played([0, 1, 2], [10.0, None, 30.0], [True, True, False]))
    peer = figures(played([0, 20, 40], [40.0, 100.0, None], [True, False]))
    found = compare(ours, peer)
    assert found["ours"]["latency_ms"] == {"p50": 10.0, "p95": 30.0}
    assert found["ours"]["computed_tokens_per_keystroke"] == {"p50": 1, "p95": 2}
    assert found["ratio"] == {
        "latency_ms": {"p50": 0.25, "p95": 0.3},
        "computed_tokens_per_keystroke": {"p50": 0.05, "p95": 0.05},
        "computed_tokens": 0.05,
        "model_calls": 1.0,
        "shown": 1.5,
        "right": 2.0,
    }


def test_there_is_no_ratio_to_nothing() -> None:
    nothing = figures(played([0], [None], []))
    found = compare(figures(played([4], [1.0], [True])), nothing)
    assert found["ratio"]["latency_ms"] == {"p50": None, "p95": None}
    assert found["ratio"]["computed_tokens"] is found["ratio"]["right"] is None


def test_the_peer_without_its_binding_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(UsageError, match="cannot be used") as caught:
        LlamaBinding(tmp_path / "a.gguf", 1)
    assert "fimble[bench-peer]" in caught.value.next_step


@pytest.fixture
def tiny(tmp_path: Path) -> CommandLine:
    """A home with the tiny package in it; the benchmark's engine is in a home of its own."""
    run = CommandLine(tmp_path / "home")
    make_tiny_package(run.home / "models" / "tiny")
    return run


def test_a_session_over_stdio(tiny: CommandLine) -> None:
    ran = tiny(
        "bench", "typing", "--model", "tiny", "--keystrokes", "90", "--packages", "click", "--json"
    )  # fmt: skip
    assert ran.code == 0, ran.err
    assert list(ran.json) == ["ours"]
    ours = ran.json["ours"]
    assert set(ours) >= FIGURES
    assert 63 <= ours["keystrokes"] <= 90
    assert ours["model_calls"] > 0
    assert ours["computed_tokens"] > 0
    # The engine was one of the benchmark's own.
    assert not (tiny.home / "run").exists()


def test_the_peer_without_weights_says_how_to_give_them(tiny: CommandLine) -> None:
    ran = tiny("bench", "typing", "--model", "tiny", "--peer", "llama.cpp")
    assert ran.code == 2
    assert "--gguf" in ran.err
    assert ran.out == ""


def test_packages_with_nothing_to_type(tiny: CommandLine) -> None:
    ran = tiny(
        "bench", "typing", "--model", "tiny", "--keystrokes", "2000", "--packages", "filelock"
    )
    assert ran.code == 2
    assert "--keystrokes" in ran.err
