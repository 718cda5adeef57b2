"""Homes and packages for the tests of what fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lsp.process import ended_engine
from tests.support.slow import make_slow_package
from tests.support.tiny import make_tiny_package


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A FIMBLE_HOME of its own, for the test as for what it starts; its engine ends with it."""
    home = tmp_path / "home"
    monkeypatch.setenv("FIMBLE_HOME", str(home))
    with ended_engine(home):
        yield home


@pytest.fixture(scope="package")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_package(tmp_path_factory.mktemp("packages") / "tiny")


@pytest.fixture(scope="package")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its work takes long enough to be caught at it."""
    return make_slow_package(tmp_path_factory.mktemp("packages") / "slow")
