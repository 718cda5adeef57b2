"""Which names an installed package may have: those that are a plain folder on every system."""

from __future__ import annotations

import re

from fimble.errors import UsageError

__all__ = ["check_name", "is_name", "name_from_stem"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Windows opens a device for these, with any extension and in any folder.
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


def is_name(text: str) -> bool:
    """Whether ``text`` can name a package: no path, no drive, no device, no hidden folder."""
    # Windows drops a final dot, so that two names would be one folder.
    if not _NAME.fullmatch(text) or text.endswith("."):
        return False
    return not _DEVICE.fullmatch(text)


def check_name(text: str) -> str:
    """``text`` itself; UsageError where it cannot name a package."""
    if is_name(text):
        return text
    raise UsageError(
        f"{text!r} cannot be the name of a model.",
        next_step="Use letters, digits, '.', '_' and '-', beginning with a letter or digit.",
    )


def name_from_stem(stem: str) -> str:
    """A package name out of a file's name without its extension; UsageError where none fits."""
    name = re.sub(r"[^a-z0-9._-]+", "-", stem.lower()).strip(".-_")[:100].rstrip(".")
    if is_name(name):
        return name
    raise UsageError(
        f"No model name can be made of the file name {stem!r}.",
        next_step="Give one with --name.",
    )
