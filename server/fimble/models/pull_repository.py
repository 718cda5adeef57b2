"""A package that is ready-made in a repository of the hub, such as AMD's: all its files.

May be interrupted at any byte; the next pull goes on from there, also when the repository
changed meanwhile: files that are still the same are kept. Everything comes from one commit,
and each file is checked against the hub's own checksum before it counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fimble.errors import DownloadError, ModelError, PackageError
from fimble.models import hub as hub_files
from fimble.models.catalogue import HubFile
from fimble.models.hub import Hub
from fimble.models.hub_listing import ListedFile, Listing, list_repository
from fimble.models.inspection import inspect_package
from fimble.models.names import check_name, name_from_stem
from fimble.models.package_json import is_lfs_pointer
from fimble.models.provenance import read_provenance, write_pull_note
from fimble.models.pull_common import SPARE_BYTES, alone, check_space, disk_errors, gigabytes
from fimble.models.store import Package, Store
from fimble.progress import Progress, ProgressEvent, ignore_progress
from fimble.system import free_disk_bytes

__all__ = ["is_repository", "pull_repository"]

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,95}/[A-Za-z0-9][A-Za-z0-9_.-]{0,95}")


def is_repository(name: str) -> bool:
    """Whether ``name`` is the name of a repository, owner/name."""
    return _REPOSITORY.fullmatch(name) is not None and ".." not in name


def pull_repository(
    repo: str,
    *,
    store: Store,
    name: str | None = None,
    progress: Progress = ignore_progress,
    say: Callable[[str], None],
    hub: Hub | None = None,
    free_bytes: Callable[[Path], int] = free_disk_bytes,
) -> Package:
    """Installs the package in ``repo`` as ``name``, by default the repository's own.

    Does nothing where it is installed already and whole, and asks nobody then. Raises
    HubUnreachable, DownloadError, PackageError or another ModelError.
    """
    chosen = name_from_stem(repo.rpartition("/")[2]) if name is None else check_name(name)
    job = _Pull(repo, chosen, store, hub or Hub.from_environment(), progress, say, free_bytes)
    with alone(store, chosen, say):
        installed = job.installed()
        if installed is not None:
            say(f"{chosen} is installed already.")
            return installed
        listing = list_repository(repo, job.hub)
        job.announce(listing)
        with disk_errors(store.root):
            package = job.place(listing)
    say(f"{chosen} is installed.")
    return package


@dataclass(frozen=True, slots=True)
class _Pull:
    """One pull: what is to be had, and where it is put together."""

    repo: str
    name: str
    store: Store
    hub: Hub
    progress: Progress
    say: Callable[[str], None]
    free_bytes: Callable[[Path], int]

    @property
    def folder(self) -> Path:
        return self.store.partial(self.name)

    @property
    def staging(self) -> Path:
        return self.folder / "repository"

    def installed(self) -> Package | None:
        """The package that is there, if it is whole; ModelError if it is of other origin."""
        package = next((p for p in self.store.packages() if p.name == self.name), None)
        if package is None:
            return None
        try:
            origin = read_provenance(package)
            problem = inspect_package(package).problem
        except ModelError as error:
            self.say(f"The installed {self.name} is not whole and is replaced: {error.message}")
            return None
        if origin.repo != self.repo:
            raise ModelError(
                f"The name {self.name} is taken by another package ({origin.describe()}).",
                next_step=f"Give another with --name, or run `fimble model remove {self.name}`.",
            )
        if problem:
            self.say(f"The installed {self.name} is not whole and is replaced: {problem}")
            return None
        return package

    def announce(self, listing: Listing) -> None:
        """Says what comes, how much of it and under which licence, before any of it comes."""
        licence = listing.licence or "not stated; see the model card"
        self.say(
            f"{self.repo}: {len(listing.files)} files, {gigabytes(listing.size)}. "
            f"Licence: {licence}. Source: {self.hub.endpoint}/{self.repo}"
        )
        for file in sorted(listing.files, key=lambda each: -each.size)[:5]:
            self.say(f"  {file.path}  {file.size:,} bytes")
        if listing.gated and self.hub.token is None:
            self.say(
                f"It is gated: accept its terms at {self.hub.endpoint}/{self.repo}, then run "
                "`hf auth login` or set HF_TOKEN."
            )

    def place(self, listing: Listing) -> Package:
        """Downloads what is missing, checks the whole, and puts it into the store."""
        self._forget_others(listing)
        missing = [file for file in listing.files if not self._is_there(file)]
        needed = sum(file.size for file in missing) + SPARE_BYTES - self._parts_bytes(missing)
        check_space(self.name, self.store.root, needed, self.free_bytes(self.store.root))
        done = listing.size - sum(file.size for file in missing)
        # Small files first: what is refused is refused before the gigabytes.
        for file in missing:
            self._fetch(file, listing, done)
            done += file.size
        self.progress(ProgressEvent("download", listing.size, listing.size, "bytes"))
        folder = (self.staging / listing.config).parent
        write_pull_note(folder, repo=self.repo, revision=listing.revision, licence=listing.licence)
        problem = inspect_package(Package(self.name, folder)).problem
        if problem:
            raise PackageError(
                f"All files of {self.repo} are here, and they are no whole package: {problem}",
                next_step=f"Tell its owner ({self.hub.endpoint}/{self.repo}/discussions), or use "
                "another package.",
            )
        return self.store.place(self.name, self.staging)

    # --- one file ------------------------------------------------------------------------

    def _fetch(self, file: ListedFile, listing: Listing, before: int) -> None:
        def report(event: ProgressEvent) -> None:
            if event.stage == "download" and event.done < (event.total or 0):
                done = before + event.done
                self.progress(replace(event, done=done, total=listing.size))

        target = HubFile(self.repo, file.path, listing.revision, file.sha256 or None)
        part = self._part(file)
        if file.size == 0:
            # Nothing to ask for: the hub answers a range of nothing with an error.
            part.mkdir(parents=True, exist_ok=True)
            received = part / "hub.part"
            received.write_bytes(b"")
        else:
            received, _remote = hub_files.fetch(
                target, part, hub=self.hub, progress=report, known_to_answer=True
            )
        self._check(file, received)
        place = self.staging / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        received.replace(place)
        self._checked(file).touch()

    def _check(self, file: ListedFile, received: Path) -> None:
        if is_lfs_pointer(received):
            received.unlink()
            raise DownloadError(
                f"{self.hub.endpoint} sent a Git LFS pointer in place of {file.path}: it has the "
                "repository, but not its large files.",
                next_step="Unset HF_ENDPOINT, or set it to a mirror that serves LFS files.",
            )
        if not file.matches(received, self.progress):
            received.unlink()
            raise DownloadError(
                f"What was downloaded as {file.path} is not what {self.hub.endpoint} says it is "
                "(its checksum or size is another); it was deleted.",
                next_step="Run the same command again; if it happens again, something between "
                "you and the host changes the file.",
            )

    # --- what is there of an earlier pull --------------------------------------------------

    def _part(self, file: ListedFile) -> Path:
        """Where the file is while it comes; another place for another content."""
        key = file.checksum[:32] or re.sub(r"[^A-Za-z0-9]", "-", file.path)[-64:]
        return self.folder / "parts" / key

    def _checked(self, file: ListedFile) -> Path:
        """A mark that the file in staging was checked, and against what.

        Files of the same content share a folder, so the path is in the mark's name.
        """
        path = hashlib.sha256(file.path.encode("utf-8", "replace")).hexdigest()[:16]
        return self._part(file) / f"checked-{path}"

    def _is_there(self, file: ListedFile) -> bool:
        place = self.staging / file.path
        if not file.checksum or not place.is_file() or place.stat().st_size != file.size:
            return False
        return self._checked(file).is_file()

    def _parts_bytes(self, missing: list[ListedFile]) -> int:
        parts = (self._part(file) / "hub.part" for file in missing)
        return sum(part.stat().st_size for part in parts if part.is_file())

    def _forget_others(self, listing: Listing) -> None:
        """Deletes what an earlier revision had and this one has not."""
        wanted = {file.path for file in listing.files}
        for path in sorted(self.staging.rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(self.staging).as_posix() not in wanted:
                path.unlink()
