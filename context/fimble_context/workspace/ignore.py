"""One policy for every path into a prompt, a cache or a log: which files may be used at all.

A path is refused because it is secret by name, because the user excluded it, or because an
ignore file does: ``.gitignore`` and ``.ignore`` of every folder from the repository's root
down, and ``.git/info/exclude``. Git's rules hold: a deeper file wins over one further up,
``.ignore`` over ``.gitignore``, and nothing below an ignored folder can be taken back in.

Reads ignore files and resolves links; it opens no other file. What is refused for its
content is ``files``' affair.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from pathspec import GitIgnoreSpec, RegexPattern

from fimble_context.workspace.secrets import has_private_key, secret_name

__all__ = ["IGNORE_FILES", "FolderRules", "Policy", "Reason", "Refusal"]

log = logging.getLogger(__name__)

Reason: TypeAlias = Literal[
    "secret",  # by name, or a private key by its first bytes
    "excluded",  # by the user's globs
    "ignored",  # by an ignore file
    "outside",  # a link leads out of all workspace folders
    "vendored",  # in a folder of installed packages or of build output
    "generated",  # says so, or is minified, or is a lock file
    "too large",
    "binary",
    "unreadable",  # no permission, vanished, no regular file
    "changing",  # kept changing while it was read
]

#: Later ones win.
IGNORE_FILES = (".gitignore", ".ignore")
_MAX_IGNORE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file is not used. ``detail`` names the rule; it never holds file content."""

    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


@dataclass(frozen=True, slots=True)
class _Rules:
    """One ignore file: paths are matched relative to its folder.

    ``any_match`` is all patterns in one, to pass over most paths with a single look.
    """

    spec: GitIgnoreSpec
    any_match: re.Pattern[str]
    folder: str
    origin: str


class FolderRules:
    """The rules for the entries of one folder; ``child`` gives those of a folder in it.

    Valid for entries of a folder that is itself not refused.
    """

    __slots__ = ("_excluded", "_name", "_rules", "folder")

    def __init__(
        self, folder: str, rules: tuple[_Rules, ...], excluded: tuple[_Rules, ...]
    ) -> None:
        self.folder = folder
        self._name = os.path.basename(folder)  # noqa: PTH119
        self._rules = rules  # the ones that win first
        self._excluded = excluded

    def refusal(self, name: str, *, is_folder: bool) -> Refusal | None:
        """Why the entry ``name`` is refused, or None."""
        if secret_name(f"{self._name}/{name}"):
            return Refusal("secret", name)
        path = os.path.join(self.folder, name)  # noqa: PTH118 - a Path for each entry is slow
        for rules in self._excluded:
            if _verdict(rules, path, is_folder):
                return Refusal("excluded", rules.origin)
        for rules in self._rules:
            verdict = _verdict(rules, path, is_folder)
            if verdict is not None:
                return Refusal("ignored", rules.origin) if verdict else None
        return None

    def child(self, name: str) -> FolderRules:
        """The rules of a folder in this one; reads its ignore files."""
        folder = os.path.join(self.folder, name)  # noqa: PTH118
        own = tuple(_read_rules(folder))
        return FolderRules(folder, own + self._rules, self._excluded)


class Policy:
    """Which files may be used, for the folders of a workspace and for any other path.

    ``exclude_globs`` are the user's, in .gitignore syntax, relative to each folder. Ignore
    files are read again when they have changed.
    """

    def __init__(self, folders: Sequence[Path], exclude_globs: Iterable[str] = ()) -> None:
        self.folders = tuple(Path(os.path.abspath(folder)) for folder in folders)  # noqa: PTH100
        self._real_folders = tuple(Path(os.path.realpath(folder)) for folder in self.folders)
        self._globs = tuple(exclude_globs)

    def folder_of(self, path: Path) -> Path | None:
        """The innermost workspace folder that contains ``path`` as written, or None."""
        holding = [folder for folder in self.folders if path.is_relative_to(folder)]
        return max(holding, key=lambda folder: len(folder.parts), default=None)

    def is_inside(self, real_path: Path) -> bool:
        """Whether a path without links in it lies in one of the folders."""
        return any(real_path.is_relative_to(folder) for folder in self._real_folders)

    def refusal(self, path: Path | str, text: str | None = None) -> Refusal | None:
        """Why the file may not be used, or None. The file need not exist.

        With its text (or how that begins), a private key is told whatever its name.

        For open documents as for files on disk, also outside all folders, where secret names
        and the user's globs hold. Links are followed: a name that leads to a secret file is
        secret, and one that leads from a folder to outside all folders is refused.
        """
        if text is not None and has_private_key(text):
            return Refusal("secret", "begins with a private key")
        path = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links
        refused = self._refusal_as_written(path)
        if refused is not None:
            return refused
        real = Path(os.path.realpath(path))
        if real == path:
            return None
        if self.folder_of(path) is not None and not self.is_inside(real):
            return Refusal("outside", "a link leads out of the workspace")
        return self._refusal_as_written(real)

    def rules(self, folder: Path) -> FolderRules | None:
        """The rules for the entries of a folder; None where the folder itself is refused.

        ``folder`` may be a workspace folder or lie in one.
        """
        if secret_name(folder):
            return None
        root = self.folder_of(folder) or folder
        rules = self._root_rules(root)
        for name in folder.relative_to(root).parts:
            if rules.refusal(name, is_folder=True):
                return None
            rules = rules.child(name)
        return rules

    def _refusal_as_written(self, path: Path) -> Refusal | None:
        name = secret_name(path)
        if name is not None:
            return Refusal("secret", name)
        root = self.folder_of(path)
        if root is None:
            return self._excluded_outside(path)
        rules = self._root_rules(root)
        parts = path.relative_to(root).parts
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            refused = rules.refusal(part, is_folder=not last)
            if refused is not None:
                return refused
            if not last:
                rules = rules.child(part)
        return None

    def _excluded_outside(self, path: Path) -> Refusal | None:
        anchor = path.anchor or os.sep
        for rules in self._exclusions(anchor):
            if _verdict(rules, str(path), is_folder=False):
                return Refusal("excluded", rules.origin)
        return None

    def _root_rules(self, root: Path) -> FolderRules:
        """The rules of a workspace folder, with those of the repository around it."""
        around: tuple[_Rules, ...] = ()
        repository = _repository(root)
        if repository is not None:
            around = tuple(_read_exclude(repository))
            between = [up for up in root.parents if up.is_relative_to(repository)]
            for folder in reversed(between):
                around = tuple(_read_rules(str(folder))) + around
        own = tuple(_read_rules(str(root)))
        return FolderRules(str(root), own + around, tuple(self._exclusions(str(root))))

    def _exclusions(self, folder: str) -> Iterator[_Rules]:
        rules = _compiled(self._globs, folder, "the user's globs")
        if rules is not None:
            yield rules


@lru_cache(maxsize=256)
def _repository(folder: Path) -> Path | None:
    """The git repository that a workspace folder is in; where that is does not change."""
    return next((up for up in (folder, *folder.parents) if (up / ".git").exists()), None)


def _verdict(rules: _Rules, path: str, is_folder: bool) -> bool | None:
    """True for ignored, False for taken back in, None where no pattern matches."""
    relative = path[len(rules.folder) :].replace(os.sep, "/").lstrip("/")
    if is_folder:
        relative += "/"
    if not rules.any_match.match(relative):
        return None
    return rules.spec.check_file(relative).include


def _read_rules(folder: str) -> Iterator[_Rules]:
    """The ignore files of a folder, the one that wins first."""
    for name in reversed(IGNORE_FILES):
        yield from _read(os.path.join(folder, name), folder)  # noqa: PTH118


def _read_exclude(repository: Path) -> Iterator[_Rules]:
    git = repository / ".git"
    try:
        if git.is_file():  # a worktree or a submodule: "gitdir: where"
            where = git.read_text(encoding="utf-8", errors="replace").partition("gitdir:")[2]
            git = repository / where.strip()
            common = git / "commondir"
            if common.is_file():
                git = git / common.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        log.info("Cannot read %s: %s", git, error.strerror)
        return
    yield from _read(str(git / "info" / "exclude"), str(repository))


def _read(file: str, folder: str) -> Iterator[_Rules]:
    try:
        status = os.stat(file)  # noqa: PTH116
        rules = _parsed(file, folder, status.st_size, status.st_mtime_ns)
    except OSError:
        return  # hardly any folder has one
    if rules is not None:
        yield rules


@lru_cache(maxsize=1024)
def _parsed(file: str, folder: str, _size: int, _mtime_ns: int) -> _Rules | None:
    """An ignore file's rules, as long as it has this size and time of change."""
    with Path(file).open("rb") as stream:
        text = stream.read(_MAX_IGNORE_BYTES).decode("utf-8", "replace")
    return _compiled(tuple(text.splitlines()), folder, Path(file).name)


@lru_cache(maxsize=64)
def _compiled(lines: tuple[str, ...], folder: str, origin: str) -> _Rules | None:
    spec = _spec(lines, origin)
    sources = [
        pattern.regex.pattern.replace("?P<ps_d>", "?:")
        for pattern in spec.patterns
        if isinstance(pattern, RegexPattern) and pattern.regex is not None
    ]
    if not sources:
        return None
    any_match = re.compile("|".join(f"(?:{source})" for source in sources))
    return _Rules(spec, any_match, folder, origin)


def _spec(lines: Iterable[str], origin: str) -> GitIgnoreSpec:
    """The patterns, without those that are none: git ignores bad lines as well."""
    lines = list(lines)
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        pass
    good = []
    for number, line in enumerate(lines, 1):
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            log.info("Line %d of %s is no pattern", number, origin)
        else:
            good.append(line)
    return GitIgnoreSpec.from_lines(good)
