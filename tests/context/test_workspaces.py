"""Contexts of small workspaces, as told by the files under ``workspaces/``.

With FIMBLE_UPDATE_FIXTURES=1 in the environment the expectations are rewritten from the
results, to be looked at with ``git diff``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.context.workspace_fixture import OWN, Counter, Fixture, as_prompt, opened, show

FOLDER = Path(__file__).parent / "workspaces"
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_context(file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    fixture = Fixture.parse(text)
    found = {}
    with opened(fixture, tmp_path) as case:
        for budget in fixture.expected:
            context = case.assemble(budget)
            found[budget] = "".join(f"{line}\n" for line in show(context))
            # Whatever else is expected, these hold for every prompt.
            assert Counter()([as_prompt(context)])[0] <= context.tokens <= budget
            paths = [item.path for item in context.sections if item.kind not in OWN]
            assert len(paths) == len(set(paths))
    if os.environ.get("FIMBLE_UPDATE_FIXTURES"):
        head = re.split(r"^=== context ", text, flags=re.MULTILINE)[0]
        tail = "".join(f"=== context {budget}\n{shown}" for budget, shown in found.items())
        file.write_text(head + tail, encoding="utf-8", newline="\n")
        return
    assert found == fixture.expected


@pytest.mark.parametrize("name", ["python_imports", "python_recent", "typescript_paths"])
def test_line_ends_do_not_change_the_context(name: str, tmp_path: Path) -> None:
    fixture = Fixture.parse((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))
    with opened(fixture, tmp_path / "crlf", newline="\r\n") as case:
        for budget, expected in fixture.expected.items():
            context = case.assemble(budget)
            assert "".join(f"{line}\n" for line in show(context)) == expected
            assert "\r" not in as_prompt(context)
