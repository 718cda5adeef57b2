"""``fimble context``: the sections of a prompt, on the command line, without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CommandLine


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (folder / "prices.py").write_text(
        'def parse_price(text: str) -> int:\n    """Reads a price."""\n    return int(text)\n',
        encoding="utf-8",
    )
    (folder / "main.py").write_text(
        "from prices import parse_price\n\nprice = parse_price()\n", encoding="utf-8"
    )
    (folder / ".env").write_text("SECRET=1\n", encoding="utf-8")
    return folder


def test_sections_with_their_reasons(bare: CommandLine, project: Path) -> None:
    ran = bare("context", f"{project / 'main.py'}:3:21")
    assert ran.code == 0
    assert "definition: prices.py" in ran.out
    assert "defines parse_price (imported and used here)" in ran.out
    assert "def parse_price(text: str) -> int:" in ran.out
    assert "prefix: main.py" in ran.out


def test_as_json(bare: CommandLine, project: Path) -> None:
    found = bare("context", f"{project / 'main.py'}:3:21", "--budget", "300", "--json").json
    assert [item["kind"] for item in found["sections"]] == ["definition", "prefix", "suffix"]
    assert found["sections"][0]["path"] == "prices.py"
    assert sum(item["tokens"] for item in found["sections"]) == found["estimated_tokens"] <= 300
    assert found["budget_tokens"] == 300
    assert found["repository"] == "project"


def test_a_secret_file_is_refused(bare: CommandLine, project: Path) -> None:
    ran = bare("context", f"{project / '.env'}:1:1")
    assert ran.code == 1
    assert "SECRET" not in ran.out + ran.err


def test_a_place_outside_the_file(bare: CommandLine, project: Path) -> None:
    ran = bare("context", f"{project / 'main.py'}:300:1")
    assert ran.code == 1
    assert "main.py" in ran.err
