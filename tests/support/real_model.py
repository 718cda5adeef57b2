"""The real default model for tests: pulled once, kept in the user's cache folder.

The package is made anew whenever the importer's own code changes, so that a cached one
never hides a fault of the importer. ``FIMBLE_TEST_CACHE`` moves the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import platformdirs

from fimble import system
from fimble.models import gguf_import
from fimble.models.catalogue import DEFAULT_MODEL, find_entry
from fimble.models.gguf_import import Precision, import_gguf
from fimble.models.pull import pull_entry
from fimble.models.store import Package, Store
from fimble.progress import Progress

__all__ = ["home_with_package", "real_gguf", "real_model_package"]


def cache_dir() -> Path:
    """Where downloads and packages for tests are kept between runs, outside any checkout."""
    chosen = os.environ.get("FIMBLE_TEST_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("fimble-tests"))


def real_gguf() -> Path:
    """The GGUF file of the default model; pulls the model if need be."""
    real_model_package()
    return _gguf()


def real_model_package() -> Package:
    """The default model's package, by the importer as it stands."""
    store = Store(cache_dir() / f"models-{_importer_digest()}")
    with system.exclusive_lock(cache_dir() / "lock", timeout=1800):
        for package in store.packages():
            if _gguf().exists():
                return package
        _forget_older()
        if _gguf().exists():
            return store.import_file(_gguf(), DEFAULT_MODEL)
        return pull_entry(find_entry(DEFAULT_MODEL), store=store, say=print, importer=_keep_gguf)


def home_with_package(home: Path, package: Package) -> Path:
    """Makes ``home`` a FIMBLE_HOME in which ``package`` is installed."""
    target = home / "models" / package.name
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        shutil.copytree(package.path, target, copy_function=os.link)
    except (OSError, shutil.Error):  # another file system, or one without links
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(package.path, target)
    return home


def _gguf() -> Path:
    return cache_dir() / f"{DEFAULT_MODEL}.gguf"


def _importer_digest() -> str:
    digest = hashlib.sha256()
    for file in sorted(Path(gguf_import.__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _forget_older() -> None:
    for folder in cache_dir().glob("models-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _keep_gguf(
    source: Path, destination: Path, *, precision: Precision, progress: Progress
) -> None:
    """Imports, and keeps the file that a pull deletes."""
    import_gguf(source, destination, precision=precision, progress=progress)
    shutil.copyfile(source, _gguf().with_suffix(".part"))
    system.replace_path(_gguf().with_suffix(".part"), _gguf())
