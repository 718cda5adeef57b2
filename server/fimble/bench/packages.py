"""A workspace made of packages: installed ones, which every installation has, or others by name.

Copies, because installed packages lie in folders that the index passes over on purpose.
"""

from __future__ import annotations

import importlib.util
import random
import shutil
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from fimble.bench.npm import fetch_npm_package, unpack_sources
from fimble.errors import UsageError
from fimble_context.syntax import detect

__all__ = ["PACKAGES", "copy_packages", "make_workspace"]

LARGEST = 400_000

#: Pure Python, well known, and dependencies of fimble's own.
PACKAGES = (
    "attr", "cattrs", "click", "filelock", "h11", "httpcore", "httpx", "huggingface_hub",
    "jinja2", "pathspec", "platformdirs", "pygls", "rich", "starlette", "uvicorn",
)  # fmt: skip


def copy_packages(names: Sequence[str], folder: Path) -> list[Path]:
    """Copy the packages' source files into ``folder``; the folders made, in the order of names.

    A name is that of an installed Python package, ``npm:NAME@VERSION`` for what npm fetches
    once, or an npm package's ``.tgz`` file. An installed package that is not there is left out.
    Raises UsageError where there is none at all, and for an npm package that cannot be had.
    """
    made = []
    for name in names:
        if name.startswith("npm:") or name.endswith(".tgz"):
            fetched = name.startswith("npm:")
            tarball = fetch_npm_package(name.removeprefix("npm:")) if fetched else Path(name)
            target = folder / tarball.name.removesuffix(".tgz").replace("+", "_")
            unpack_sources(tarball, target)
            made.append(target)
            continue
        spec = importlib.util.find_spec(name)
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        if not places:
            continue
        target = folder / name
        for file in sorted(Path(places[0]).rglob("*.py")):
            copy = target / file.relative_to(places[0])
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
        made.append(target)
    if not made:
        raise UsageError(
            f"None of the packages is installed: {', '.join(names)}.",
            next_step="Name packages that are, with --packages.",
        )
    return made


def installed() -> Iterator[tuple[Path, Path]]:
    """(file, path within the workspace) of source files of installed packages."""
    roots = {Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")}
    roots |= {Path(entry) for entry in sys.path if entry.endswith("-packages")}
    roots.add(Path(sys.base_prefix) / "include")
    seen = set()
    for number, root in enumerate(sorted(roots)):
        for file in sorted(root.rglob("*")):
            real = file.resolve()
            if real in seen or not file.is_file() or file.stat().st_size > LARGEST:
                continue
            language = detect(None, file.name)
            if language is None or language.id in ("json", "markdown", "toml", "yaml"):
                continue
            seen.add(real)
            inside = Path(*(part.replace("-packages", "_packages") for part in
                            file.relative_to(root).parts))  # fmt: skip
            yield file, Path(f"part{number}") / inside


def make_workspace(folder: Path, files: int) -> None:
    """Copy ``files`` files, the same ones each time."""
    candidates = sorted(installed())
    random.Random(0).shuffle(candidates)
    for source, inside in candidates[:files]:
        target = folder / inside
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
