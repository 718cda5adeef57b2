"""The extension's own checks: types, style, and the tests of what knows no editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.node import run_node

pytestmark = pytest.mark.editor


def test_types_are_right(project: Path) -> None:
    run_node("node_modules/typescript/bin/tsc", "-p", ".", cwd=project)


def test_style_is_right(project: Path) -> None:
    run_node("node_modules/eslint/bin/eslint.js", ".", cwd=project)


def test_the_parts_that_know_no_editor(project: Path) -> None:
    run_node("scripts/build.mjs", cwd=project)
    tests = sorted((project / "dist" / "test").glob("*.test.js"))

    assert tests
    run_node("--test", *map(str, tests), cwd=project)
