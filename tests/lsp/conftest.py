"""For every test of the language server: what it sends is as LSP 3.18 says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lsp.conformance import FOUND


@pytest.fixture(autouse=True)
def conforming() -> Iterator[None]:
    """Fails a test in which a server sent what the specification or its client does not allow."""
    FOUND.clear()
    yield
    assert not FOUND, "\n".join(FOUND)
