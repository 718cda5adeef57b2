"""``fimble stats`` as a user runs it; what is counted is held by the language server's tests."""

from __future__ import annotations

import pytest

from fimble.assist import statistics_store
from tests.cli.conftest import CommandLine


def test_without_any_statistics(bare: CommandLine) -> None:
    assert bare("stats", "--json").json["total"]["shown"] == 0
    assert "suggestions shown       0" in bare("stats").out
    assert bare("stats", "--clear", "--json").json == {"cleared": True}
    assert not (bare.home / "statistics").exists()


@pytest.mark.parametrize("days", ["0", "91", "x"])
def test_days_that_are_not_kept(bare: CommandLine, days: str) -> None:
    assert bare("stats", "--days", days).code == 2


def test_damage_is_named_and_cleared(bare: CommandLine) -> None:
    file = bare.home / "statistics" / statistics_store.statistics_file().name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database " * 999)
    ran = bare("stats", "--json")
    assert ran.code == 1
    assert "damaged" in ran.json["error"]["message"]
    assert "fimble stats --clear" in ran.json["error"]["next_step"]
    assert bare("stats", "--clear").code == 0
    assert bare("stats", "--json").json["total"]["shown"] == 0
