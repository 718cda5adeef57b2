"""What we noted of a package's origin when we made or fetched it.

The note lies beside genai_config.json. A package from elsewhere has none.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fimble.models.package_json import as_table, read_json_object
from fimble.models.store import Package

__all__ = ["PROVENANCE_FILE", "Provenance", "read_provenance", "write_pull_note"]

PROVENANCE_FILE = "fimble_package.json"
"""Written by gguf_import/package.py for imports, and here for what was pulled whole."""

_LARGEST = 4 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Provenance:
    """Empty strings for what is not known.

    An imported package has ``precision`` and the GGUF file in ``source_file`` and
    ``source_sha256``; a pulled one has ``repo`` (owner/name) and ``revision`` (commit).
    """

    name: str = ""
    precision: str = ""
    source_file: str = ""
    source_sha256: str = ""
    repo: str = ""
    revision: str = ""
    licence: str = ""

    def describe(self) -> str:
        """In a few words, for a message."""
        if self.repo:
            return f"{self.repo}, revision {self.revision[:12] or 'unknown'}"
        if not self.source_sha256:
            return "not made by fimble"
        return f"{self.source_file}, {self.precision}"


def read_provenance(package: Package) -> Provenance:
    """The note in the package; PackageError where it is damaged."""
    path = package.path / PROVENANCE_FILE
    note = read_json_object(path, largest=_LARGEST) if path.is_file() else {}
    source = as_table(note.get("source"))
    return Provenance(
        name=str(note.get("name", "")),
        precision=str(note.get("precision", "")),
        source_file=str(source.get("file", "")),
        source_sha256=str(source.get("sha256", "")),
        repo=str(source.get("repo", "")),
        revision=str(source.get("revision", "")),
        licence=str(note.get("license") or ""),
    )


def write_pull_note(folder: Path, *, repo: str, revision: str, licence: str) -> None:
    """Notes that the package is the hub's ``repo`` at commit ``revision``."""
    note = {
        "format_version": 1,
        "kind": "pulled",
        "license": licence,
        "name": repo.rpartition("/")[2],
        "source": {"repo": repo, "revision": revision},
    }
    text = json.dumps(note, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    (folder / PROVENANCE_FILE).write_text(text, encoding="utf-8", newline="\n")
