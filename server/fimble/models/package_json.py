"""A package's JSON files, read the way a user needs who has damaged one by hand.

A package is data from a stranger: what is too large, too deep, not a number or no JSON at all
is a PackageError that names the file. Knows nothing of what the values mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fimble.errors import PackageError

__all__ = ["as_int", "as_table", "begins_with_bom", "is_lfs_pointer", "read_json_object"]

_BOM = b"\xef\xbb\xbf"
_LFS_POINTER = b"version https://git-lfs"
_LARGEST = 256 << 20
"""Bytes; the largest tokenizer.json there are have some 30 MB."""


def read_json_object(path: Path, *, largest: int = _LARGEST) -> dict[str, Any]:
    """The object in a JSON file; PackageError names the file and the line that is wrong.

    A byte order mark is read over, though onnxruntime-genai does not (begins_with_bom).
    ``largest`` is in bytes.
    """
    again = f"Download {path.name} again, or mend it."
    raw = _read(path, largest)
    if raw.startswith(_LFS_POINTER):
        raise PackageError(
            f"{path} is a Git LFS pointer, not the file itself.",
            next_step="Run `git lfs pull` in its folder, or get it with `fimble model pull`.",
        )
    try:
        value = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise PackageError(f"{path} is not UTF-8 text.", next_step=again) from error
    except json.JSONDecodeError as error:
        raise PackageError(
            f"{path} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}.",
            next_step=again,
        ) from error
    except RecursionError as error:
        raise PackageError(f"{path} is nested too deeply.", next_step=again) from error
    except ValueError as error:  # NaN and Infinity, and numbers with thousands of digits
        raise PackageError(f"{path} is not valid JSON: {error}.", next_step=again) from error
    if not isinstance(value, dict):
        raise PackageError(f"{path} does not hold a JSON object.", next_step=again)
    return value


def _read(path: Path, largest: int) -> bytes:
    try:
        with path.open("rb") as stream:
            raw = stream.read(largest + 1)
    except OSError as error:
        raise PackageError(
            f"{path} cannot be read: {error.strerror or error}.",
            next_step="Give the folder of a complete package.",
        ) from error
    if len(raw) > largest:
        raise PackageError(
            f"{path} is larger than {largest:,} bytes, which no such file is.",
            next_step="Do not use this package; get it from its owner again.",
        )
    return raw


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def begins_with_bom(path: Path) -> bool:
    """Whether the file begins with UTF-8's byte order mark. OSError where it cannot be read."""
    with path.open("rb") as stream:
        return stream.read(len(_BOM)) == _BOM


def is_lfs_pointer(path: Path) -> bool:
    """Whether the file only says where Git LFS has the real one. OSError where unreadable."""
    with path.open("rb") as stream:
        return stream.read(len(_LFS_POINTER)) == _LFS_POINTER


def as_table(value: object) -> dict[str, Any]:
    """``value`` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_int(value: object) -> int | None:
    """A whole number, also one that is written as a string; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        digits = value.strip()
        # Bounded: reading a million digits takes a minute, and Python refuses to.
        if digits.isascii() and digits.isdigit() and len(digits) <= 20:
            return int(digits)
    return None
