"""SECURITY.md says which tests hold what it claims: they exist, and every threat has some."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
THREATS = [line.split("|")[1:-1] for line in TEXT.splitlines() if line.startswith("| **")]


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[^`]*)`", TEXT)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_threat_is_held_by_tests_named_in_full() -> None:
    assert len(THREATS) >= 6
    for who, *_, held in THREATS:
        listed = [name.strip() for name in held.split(",")]
        assert listed and all(re.fullmatch(r"`tests/[\w/]+\.py`", name) for name in listed), who
