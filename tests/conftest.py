"""Fixtures for all tests: a home of their own, and the real model.

The real model's helpers are imported where they are used: most runs need none of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from fimble.models.store import Package

# The same cases each time, so that a change never fails for what it did not touch.
# `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same")


@pytest.fixture(autouse=True, scope="session")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test ever touches the user's own FIMBLE_HOME."""
    home = tmp_path_factory.mktemp("fimble-home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIMBLE_HOME", str(home))
        yield home


@pytest.fixture(scope="session")
def gguf_file() -> Path:
    """The real GGUF file of the default model."""
    from tests.support.real_model import real_gguf

    return real_gguf()


@pytest.fixture(scope="session")
def real_package() -> Path:
    """The folder of the real default model's package."""
    from tests.support.real_model import real_model_package

    return real_model_package().path


@pytest.fixture(scope="session")
def real_home(tmp_path_factory: pytest.TempPathFactory, real_package: Path) -> Path:
    """A FIMBLE_HOME in which the real default model is installed."""
    from tests.support.real_model import home_with_package

    home = tmp_path_factory.mktemp("real-home")
    return home_with_package(home, Package(real_package.name, real_package))
