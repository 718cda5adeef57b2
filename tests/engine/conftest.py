"""Real packages and a real engine process for the engine's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.process import RunningEngine, running_engine
from tests.support.tiny import make_tiny_package


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny random package: 512 tokens, window 2048."""
    return make_tiny_package(tmp_path_factory.mktemp("packages") / "tiny")


@pytest.fixture(scope="module")
def engine(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """An engine process with the tiny package loaded, for the tests of one module."""
    with running_engine(tmp_path_factory.mktemp("home"), tiny) as engine:
        yield engine
