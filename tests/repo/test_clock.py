"""Nothing waits, ends or counts by the hour of the day: clocks are put right, forward and back.

How long something takes, and when it is due, is told by ``time.monotonic`` or ``perf_counter``.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import fimble
import fimble_context

SOURCES = [Path(package.__path__[0]) for package in (fimble, fimble_context)]
#: Where the hour itself is meant: what OpenAI's protocol calls ``created``, the age of files, and
#: the days that statistics are kept by.
MEANT = {
    "fimble/engine/answers.py",
    "fimble_context/index/build.py",
    "fimble/assist/statistics.py",
    "fimble/cli/stats.py",
    "fimble/lsp/statistics.py",
}
HOUR = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}


def hours_read(source: str) -> list[int]:
    """The lines that read the hour of the day."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            of = node.value
            name = of.id if isinstance(of, ast.Name) else getattr(of, "attr", "")
            if node.attr in HOUR.get(name, ()):
                lines.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module == "time":
            lines += [node.lineno for alias in node.names if alias.name in HOUR["time"]]
    return lines


def test_only_who_means_the_hour_reads_it() -> None:
    found = {
        path.relative_to(root.parent).as_posix()
        for root in SOURCES
        for path in root.rglob("*.py")
        if hours_read(path.read_text(encoding="utf-8"))
    }
    assert found == MEANT


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import time\nbegun = time.time()\n", [2]),
        ("from time import time\n", [1]),
        ("import datetime\nnow = datetime.datetime.now()\n", [2]),
        ("import time\nbegun = time.monotonic()\ntime.sleep(1)\n", []),
    ],
)
def test_reading_the_hour_is_found(source: str, lines: list[int]) -> None:
    assert hours_read(source) == lines
