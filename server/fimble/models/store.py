"""The folder of installed packages: list, find, add, remove, import a file.

A package is a folder of the store's root, and is there in full or not at all: work in
progress lives below ``.partial`` and is renamed into place when it is whole. Knows nothing
of where files are downloaded from.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fimble.errors import ModelError, ModelNotFound, PackageError
from fimble.models.catalogue import DEFAULT_MODEL, catalogue
from fimble.models.genai_config import CONFIG_FILE
from fimble.models.names import check_name, is_name, name_from_stem
from fimble.progress import Progress, ignore_progress
from fimble.system import exclusive_lock, make_private_dir, models_dir, replace_path

if TYPE_CHECKING:
    from fimble.models.gguf_import import Precision

__all__ = ["CONFIG_FILE", "Package", "Store"]

_PARTIAL = ".partial"
_DEPTH = 3  # AMD's repositories nest their package one folder deep; a mirror may add one


@dataclass(frozen=True, slots=True)
class Package:
    """A package by the name to show, and the folder that holds its genai_config.json."""

    name: str
    path: Path


class Store:
    """The packages below ``root``, by default the user's models folder."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = models_dir() if root is None else root

    # --- reading -------------------------------------------------------------------------

    def packages(self) -> list[Package]:
        """The installed packages by name; one that is damaged is listed all the same."""
        try:
            folders = sorted(p for p in self.root.iterdir() if is_name(p.name) and p.is_dir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ModelError(
                f"The models folder {self.root} cannot be read: {error.strerror}.",
                next_step="Check its permissions, or set FIMBLE_HOME to another folder.",
            ) from error
        found = []
        for folder in folders:
            configs = _configs_below(folder)
            if configs:
                # With several, inspection of the folder itself says what is wrong with it.
                path = configs[0].parent if len(configs) == 1 else folder
                found.append(Package(folder.name, path))
        return found

    def find(self, name_or_path: str) -> Package:
        """The installed package of that name, else the package in that folder.

        The folder has genai_config.json in itself or in exactly one folder below. Raises
        ModelNotFound, or PackageError for a folder that holds no package, or several.
        """
        if is_name(name_or_path) and (self.root / name_or_path).is_dir():
            return _package_in(self.root / name_or_path, name_or_path)
        path = _as_path(name_or_path)
        if path is not None and path.name == CONFIG_FILE and path.is_file():
            path = path.parent
        if path is not None and path.is_dir():
            return _package_in(path, path.name)
        if path is not None and path.is_file():
            raise PackageError(
                f"{path} is a file, not a package folder.",
                next_step=f"Run `fimble model import {path}` if it is a GGUF file.",
            )
        raise self._not_found(name_or_path)

    def default(self) -> Package:
        """What runs where nobody named a model: the default model, else the only one there is.

        Raises ModelNotFound where none is installed, or several of which none is the default.
        """
        installed = self.packages()
        for package in installed:
            if package.name == DEFAULT_MODEL or len(installed) == 1:
                return package
        if not installed:
            raise ModelNotFound(
                "No model is installed.",
                next_step=f"Run `fimble model pull {DEFAULT_MODEL}`.",
            )
        names = ", ".join(package.name for package in installed)
        raise ModelNotFound(
            f"Several models are installed ({names}), and none was chosen.",
            next_step=f"Choose one: `--model {installed[0].name}`, or the setting `model`.",
        )

    def partial(self, name: str) -> Path:
        """Where unfinished work on ``name`` is kept, so that it can be resumed."""
        return self.root / _PARTIAL / check_name(name)

    # --- writing -------------------------------------------------------------------------

    @contextlib.contextmanager
    def lock(self, name: str, *, timeout: float) -> Iterator[None]:
        """Holds ``name`` against every other writer; TimeoutError after ``timeout`` seconds."""
        make_private_dir(self.root)
        with exclusive_lock(self.root / _PARTIAL / ".locks" / check_name(name), timeout=timeout):
            yield

    def add(self, name: str, fill: Callable[[Path], object]) -> Package:
        """Installs what ``fill`` writes into the folder it is given, or nothing at all.

        A package of the same name is replaced. The folder is what an interrupted earlier
        ``fill`` for this name left, if anything: resume in it, or empty it first. Raises
        PackageError where no package came of it.
        """
        with self._locked_now(name):
            staging = self.partial(name) / "added"
            make_private_dir(staging)
            fill(staging)
            return self.place(name, staging)

    def place(self, name: str, staging: Path) -> Package:
        """Renames a filled ``staging`` folder into the store. The caller holds the lock."""
        package = _package_in(staging, name)
        target = self.root / check_name(name)
        old = self._trash(name)
        try:
            moved = _exists(target)
            if moved:
                replace_path(target, old)
            try:
                replace_path(staging, target)
            except OSError:
                if moved:
                    replace_path(old, target)
                raise
        except OSError as error:
            raise _cannot_change(target, error) from error
        _delete_tree(old.parent)
        _delete_tree(self.partial(name))
        return Package(name, target / package.path.relative_to(staging))

    def remove(self, name: str) -> None:
        """Deletes an installed package, whole or not, and unfinished work on it."""
        check_name(name)
        target = self.root / name
        if not _exists(target) and not _exists(self.partial(name)):
            raise self._not_found(name)
        with self._locked_now(name):
            try:
                # Renamed first: a package that is half deleted is never seen under its name.
                old = self._trash(name)
                if _exists(target):
                    replace_path(target, old)
            except OSError as error:
                raise _cannot_change(target, error) from error
            _delete_tree(old.parent)
            _delete_tree(self.partial(name))

    def import_file(
        self,
        gguf: Path,
        name: str | None = None,
        precision: Precision = "int4",
        progress: Progress = ignore_progress,
    ) -> Package:
        """Makes a package out of a GGUF file; its default name is the file's, normalised.

        Resumed where an interrupted import of the same file stopped. Raises ImportFailed.
        """
        # numpy and onnx take a second to import; listing models should not.
        from fimble.models.gguf_import import import_gguf

        chosen = name_from_stem(gguf.stem) if name is None else check_name(name)
        if not gguf.is_file():
            raise ModelNotFound(
                f"There is no file {gguf}.", next_step="Check the path of the GGUF file."
            )
        return self.add(
            chosen,
            lambda staging: import_gguf(gguf, staging, precision=precision, progress=progress),
        )

    # --- parts ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked_now(self, name: str) -> Iterator[None]:
        try:
            with self.lock(name, timeout=0):
                yield
        except TimeoutError as error:
            raise ModelError(
                f"Another process is working on the model {name}.",
                next_step="Wait until it is done, then run the command again.",
            ) from error

    def _trash(self, name: str) -> Path:
        """A place to move the old package to; the folder around it is deleted afterwards."""
        return make_private_dir(self.root / _PARTIAL / ".trash" / name) / uuid.uuid4().hex

    def _not_found(self, text: str) -> ModelNotFound:
        known = {entry.name for entry in catalogue()}
        if text in known:
            return ModelNotFound(
                f"The model {text} is not installed.",
                next_step=f"Run `fimble model pull {text}`.",
            )
        installed = ", ".join(package.name for package in self.packages())
        return ModelNotFound(
            f"No model named {text!r} is installed, and there is no such folder.",
            next_step=f"Installed: {installed}."
            if installed
            else f"Run `fimble model pull {DEFAULT_MODEL}` to get the default model.",
        )


def _as_path(text: str) -> Path | None:
    """``text`` as a path, with ``~`` filled in; None where it can be none."""
    if not text.strip() or "\0" in text:
        return None
    try:
        # Absolute: the engine opens it from a working folder of its own.
        return Path(text).expanduser().absolute()
    except RuntimeError:  # ~somebody, and there is no such user
        return None


def _configs_below(folder: Path, depth: int = _DEPTH) -> list[Path]:
    """genai_config.json of the folder itself, or else all those in the folders below."""
    own = folder / CONFIG_FILE
    if own.is_file():
        return [own]
    if depth == 0:
        return []
    try:
        below = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    except OSError:
        return []
    return [config for child in below for config in _configs_below(child, depth - 1)]


def _package_in(folder: Path, name: str) -> Package:
    configs = _configs_below(folder)
    if len(configs) == 1:
        return Package(name, configs[0].parent)
    if configs:
        listed = " and ".join(str(config.parent) for config in configs)
        raise PackageError(
            f"{folder} holds more than one package: {listed}.",
            next_step="Give the path of the one that is meant.",
        )
    raise PackageError(
        f"{folder} is not a model package: it has no {CONFIG_FILE}.",
        next_step="Give the folder with that file, or get the model with `fimble model pull`.",
    )


def _cannot_change(target: Path, error: OSError) -> ModelError:
    return ModelError(
        f"{target} cannot be replaced or removed: {error.strerror or error}.",
        next_step="Stop what uses it (`fimble engine stop`), check its permissions, try again.",
    )


def _exists(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _delete_tree(path: Path) -> None:
    """Deletes a folder, or a link but not what it points to. What resists is left behind."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        # Windows does not delete what is marked read-only.
        for item in path.rglob("*"):
            with contextlib.suppress(OSError):
                item.chmod(stat.S_IWRITE | stat.S_IREAD | (stat.S_IEXEC if item.is_dir() else 0))
        shutil.rmtree(path, ignore_errors=True)
