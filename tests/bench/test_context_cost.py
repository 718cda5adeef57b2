"""``fimble bench context`` measures what it says, on a small workspace."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from fimble.bench import typist
from fimble.bench.context_cost import measure_context


def test_all_figures_of_a_small_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typist, "OPEN_CHARS", 20_000)
    folder = tmp_path / "workspace"
    folder.mkdir()
    for name in ("main", "first", "second"):
        source = f"def {name}(value):\n    return value\n"
        path = folder / f"{name}.py"
        path.write_text(source, encoding="utf-8", newline="\n")
        # A file that changed a moment ago may change again at the same time stamp: it is read anew.
        an_hour_ago = time.time() - 3600
        os.utime(path, (an_hour_ago, an_hour_ago))
    said: list[str] = []

    cost = asdict(measure_context(folder, tmp_path / "index", 512, said.append, 120.0))

    assert len(said) == 4
    assert cost["files"] == 3
    assert cost["warm_files_read"] == 0
    assert cost["assemblies"] > 0 and cost["assemblies"] % 3 == 0
    assert 0 < cost["assemble_p50_ms"] <= cost["assemble_p95_ms"]
