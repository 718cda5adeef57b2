"""The tables of docs/team-server.md are those that the script prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_has_the_tables_of_the_script() -> None:
    script = ROOT / "benchmarks" / "team_sizing.py"
    done = subprocess.run([sys.executable, script], capture_output=True, check=True)
    tables = done.stdout.decode("utf-8").replace("\r\n", "\n").strip().split("\n\n")
    assert len(tables) == 2
    page = (ROOT / "docs" / "team-server.md").read_text(encoding="utf-8")
    assert all(table in page for table in tables)
