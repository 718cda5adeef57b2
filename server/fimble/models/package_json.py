"""A package's JSON files, read the way a user needs who has damaged one by hand.

Knows nothing of what the values mean.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fimble.errors import PackageError

__all__ = ["as_int", "as_table", "begins_with_bom", "read_json_object"]

_BOM = b"\xef\xbb\xbf"


def read_json_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; PackageError names the file and the line that is wrong.

    A byte order mark is read over, though onnxruntime-genai does not (begins_with_bom).
    """
    again = f"Download {path.name} again, or mend it."
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise PackageError(
            f"{path} cannot be read: {error.strerror or error}.",
            next_step="Give the folder of a complete package.",
        ) from error
    except UnicodeDecodeError as error:
        raise PackageError(f"{path} is not UTF-8 text.", next_step=again) from error
    except json.JSONDecodeError as error:
        raise PackageError(
            f"{path} is not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}.",
            next_step=again,
        ) from error
    except RecursionError as error:
        raise PackageError(f"{path} is nested too deeply.", next_step=again) from error
    if not isinstance(value, dict):
        raise PackageError(f"{path} does not hold a JSON object.", next_step=again)
    return value


def begins_with_bom(path: Path) -> bool:
    """Whether the file begins with UTF-8's byte order mark. OSError where it cannot be read."""
    with path.open("rb") as stream:
        return stream.read(len(_BOM)) == _BOM


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
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        return int(value)
    return None
