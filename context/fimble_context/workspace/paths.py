"""What a path is called where files are kept by their paths."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["path_key"]


def path_key(path: Path | str) -> str:
    """One name for a file on systems where several spellings lead to it."""
    return os.path.normcase(os.path.abspath(path))  # noqa: PTH100 - links stay what they are
