"""Which files a configuration names, and which code: a package is data, and may bring none.

A library of custom operators, or one that a provider is told to load, would run inside the
engine. Only finds; refusing is package_files.py's affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["libraries_in", "paths_in"]

_PATH_KEY = re.compile(r"(?:file|filename|dir|path|library)$", re.IGNORECASE)
_LIBRARY_KEY = re.compile(r"library(?:_path)?$", re.IGNORECASE)
_LIBRARY = re.compile(r"\.(?:dll|dylib|so(?:\.\d+)*|exe|pyd)$", re.IGNORECASE)


def paths_in(data: dict[str, Any]) -> list[tuple[str, str]]:
    """(key, name) of each file and folder that is named, in the order of the configuration."""
    return [(key, text) for key, text in _texts(data) if text and _PATH_KEY.search(key)]


def libraries_in(data: dict[str, Any]) -> list[tuple[str, str]]:
    """(full key, name) of each library that is named, wherever it stands."""
    return [
        (key, text)
        for key, text in _texts(data)
        if text and (_LIBRARY_KEY.search(key) or _LIBRARY.search(text.strip()))
    ]


def _texts(data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(full key, text) of every text, in order; without recursion, however deep it goes."""
    waiting: list[tuple[str, object]] = [("", data)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, dict):
            inner = [(f"{key}.{name}" if key else str(name), each) for name, each in value.items()]
            waiting += reversed(inner)
        elif isinstance(value, list):
            waiting += reversed([(key, each) for each in value])
