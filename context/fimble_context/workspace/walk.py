"""The files of all folders of a workspace, found lazily, within limits, each once.

Folders that the policy refuses, and folders of installed packages and build output, are not
entered. Links are followed as long as they stay in the workspace; a folder is entered once,
however many links lead to it, so loops end. Nothing that a file system does raises here: what
cannot be read is left out.

A walk yields after every folder too (an empty step), so that its caller can stop or rest.
"""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fimble_context.workspace.files import Limits, generated_name
from fimble_context.workspace.ignore import FolderRules, Policy, Reason, Refusal

__all__ = ["VENDORED_FOLDERS", "Found", "Walk", "is_vendored"]

#: Installed packages, build output and tools' own folders, also where git is not told so.
VENDORED_FOLDERS = frozenset(
    (
        ".git", ".hg", ".svn", ".jj", ".bzr", ".idea", ".vs", ".cache", ".direnv", ".devenv",
        "node_modules", "bower_components", "jspm_packages", ".yarn", ".pnpm-store", ".pnp",
        ".next", ".nuxt", ".svelte-kit", ".turbo", ".parcel-cache", ".angular", ".docusaurus",
        "site-packages", "dist-packages", "__pycache__", "__pypackages__", ".venv", ".tox", ".nox",
        ".eggs", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis",
        ".ipynb_checkpoints", ".gradle", ".mvn", ".bundle", ".terraform", ".serverless",
        ".dart_tool", ".build", "deriveddata", "carthage", ".stack-work", ".cargo", ".rustup",
        "htmlcov", ".nyc_output", ".coverage",
    )
)  # fmt: skip
_VENDORED_ENDINGS = (".egg-info", ".dist-info", ".xcassets", ".xcodeproj", ".framework")
# Code of one's own may be in a folder of such a name, so something must say what it is.
_MARKED = {
    "vendor": ("modules.txt", "autoload.php"),
    "target": ("CACHEDIR.TAG", ".rustc_info.json"),
    "venv": ("pyvenv.cfg",),
    "env": ("pyvenv.cfg",),
    "virtualenv": ("pyvenv.cfg",),
}
_ANYWHERE = ("pyvenv.cfg", "CACHEDIR.TAG", "CMakeCache.txt")


@dataclass(frozen=True, slots=True)
class Found:
    """A file on the walk with its size in bytes and its time of change."""

    path: str
    size: int
    mtime_ns: int


@dataclass(slots=True)
class Walk:
    """One walk over a workspace. Iterate it once; ``None`` is a step without a file.

    ``refused`` counts what was left out by reason; ``complete`` is False where a limit ended
    the walk, and what was not found may then exist all the same.
    """

    policy: Policy
    limits: Limits = field(default_factory=Limits)
    refused: Counter[Reason] = field(default_factory=Counter)
    complete: bool = True
    files: int = 0
    bytes: int = 0
    _seen: set[object] = field(default_factory=set)

    def __iter__(self) -> Iterator[Found | None]:
        # Breadth first: where a limit ends the walk, what lies deep is what is missing.
        waiting: deque[tuple[FolderRules, int]] = deque()
        for folder in self.policy.folders:
            rules = self.policy.rules(folder)
            if rules is None:
                self.refused["secret"] += 1
            elif self._enter(str(folder)):
                waiting.append((rules, 0))
        while waiting:
            rules, depth = waiting.popleft()
            for entry in self._entries(rules.folder):
                if self.files >= self.limits.files or self.bytes >= self.limits.total_bytes:
                    self.complete = False
                    return
                if not self._is_folder(entry):
                    found = self._file(entry, rules)
                    if found is not None:
                        self.files += 1
                        self.bytes += found.size
                        yield found
                elif self._may_enter(entry, rules, depth):
                    waiting.append((rules.child(entry.name), depth + 1))
            yield None

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        """The entries in a stable order, no more than the limit of them."""
        entries: list[os.DirEntry[str]] = []
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    if len(entries) == self.limits.entries:
                        self.complete = False
                        break
                    entries.append(entry)
        except OSError:
            self._refuse("unreadable")
            # What is known of its files may still be right.
            self.complete = False
        return sorted(entries, key=lambda entry: entry.name)

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:
            return False

    def _may_enter(self, entry: os.DirEntry[str], rules: FolderRules, depth: int) -> bool:
        refused = rules.refusal(entry.name, is_folder=True)
        if refused is not None:
            return self._refuse(refused.reason)
        if is_vendored(entry.path):
            return self._refuse("vendored")
        if depth >= self.limits.depth:
            self.complete = False
            return False
        return self._link_refusal(entry) is None and self._enter(entry.path)

    def _file(self, entry: os.DirEntry[str], rules: FolderRules) -> Found | None:
        refused = rules.refusal(entry.name, is_folder=False)
        if refused is not None:
            self._refuse(refused.reason)
            return None
        if generated_name(entry.name):
            self._refuse("generated")
            return None
        if self._link_refusal(entry) is not None:
            return None
        try:
            status = entry.stat()
            regular = entry.is_file()
        except OSError:
            self._refuse("unreadable")
            return None
        if not regular:
            self._refuse("unreadable")
            return None
        if status.st_size > self.limits.file_bytes:
            self._refuse("too large")
            return None
        # Two names of one file are one file; without links it is not worth a look.
        if entry.is_symlink() and not self._enter(entry.path):
            return None
        return Found(entry.path, status.st_size, status.st_mtime_ns)

    def _link_refusal(self, entry: os.DirEntry[str]) -> Refusal | None:
        """Why a link is not followed, or None; anything else is no link."""
        if not entry.is_symlink():
            return None
        refused = self.policy.refusal(entry.path)
        if refused is not None:
            self._refuse(refused.reason)
        return refused

    def _enter(self, path: str) -> bool:
        """Whether this file or folder has not been met yet under any name."""
        try:
            status = os.stat(path)  # noqa: PTH116 - on every folder of the walk
            # Some file systems have no inode numbers.
            key: object = (
                (status.st_dev, status.st_ino)
                if status.st_ino
                else os.path.normcase(os.path.realpath(path))
            )
        except OSError:
            return self._refuse("unreadable")
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _refuse(self, reason: Reason) -> bool:
        self.refused[reason] += 1
        return False


def is_vendored(folder: str) -> bool:
    """Whether a folder holds installed packages, build output or a tool's own files."""
    path = Path(folder)
    name = path.name.lower()
    if name in VENDORED_FOLDERS or name.endswith(_VENDORED_ENDINGS):
        return True
    markers = _MARKED.get(name, ()) + _ANYWHERE
    return any(os.path.lexists(os.path.join(folder, marker)) for marker in markers)  # noqa: PTH118
