"""A workspace made of installed packages: real code that every installation has.

Copies, because installed packages lie in folders that the index passes over on purpose.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path

from fimble.errors import UsageError

__all__ = ["PACKAGES", "copy_packages"]

#: Pure Python, well known, and dependencies of fimble's own.
PACKAGES = (
    "attr", "cattrs", "click", "filelock", "h11", "httpcore", "httpx", "huggingface_hub",
    "jinja2", "pathspec", "platformdirs", "pygls", "rich", "starlette", "uvicorn",
)  # fmt: skip


def copy_packages(names: Sequence[str], folder: Path) -> list[Path]:
    """Copy the packages' Python files into ``folder``; the folders made, in the order of names.

    A package that is not installed is left out. Raises UsageError where none is.
    """
    made = []
    for name in names:
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
