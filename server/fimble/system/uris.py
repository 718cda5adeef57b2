"""``file:`` URIs and the paths that they name; names that mean more than a file."""

from __future__ import annotations

import re
import sys
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from urllib.parse import quote, unquote, urlsplit

__all__ = [
    "is_plain_name",
    "path_from_uri",
    "uri_from_path",
]

_DRIVE = re.compile(r"^/([A-Za-z])(?::|%3A|%3a)(?=/|$)")
#: Devices in every folder of Windows, whatever ending they are given.
_DEVICE = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9\u00b9\u00b2\u00b3])\s*(?:\.|$)",
    re.IGNORECASE,
)
_NO_NAME = re.compile("[\0\ud800-\udfff]")


def path_from_uri(uri: str, platform: str = sys.platform) -> PurePath | None:
    """The file that a ``file:`` URI names; None for any other scheme (``untitled:``, …), and where
    there is none: no file's name has a zero byte or half a character in it.

    Percent escapes are decoded once; drive letters come out in upper case, since editors
    differ in how they write them and the same file must have one name.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:  # what stands for the host is none
        return None
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if _NO_NAME.search(path):
        return None
    if platform != "win32":
        return PurePosixPath(path)
    if parts.netloc and parts.netloc != "localhost":
        return PureWindowsPath(f"//{parts.netloc}{path}")
    drive = _DRIVE.match(path)
    if drive:
        return PureWindowsPath(f"{drive[1].upper()}:{path[drive.end() :] or '/'}")
    return PureWindowsPath(path)


def uri_from_path(path: PurePath) -> str:
    """The ``file:`` URI of an absolute path, spelled as VS Code spells it."""
    if isinstance(path, PureWindowsPath):
        text = path.as_posix()
        if text.startswith("//"):
            host, _, rest = text[2:].partition("/")
            return f"file://{host}/{quote(rest)}"
        drive, _, rest = text.partition(":")
        return f"file:///{drive.lower()}%3A{quote(rest)}"
    return f"file://{quote(str(path))}"


def is_plain_name(path: PurePath, platform: str = sys.platform) -> bool:
    """Whether a path names a file's content, or a folder, and nothing else.

    On Windows ``a.py:b`` is another stream of a file (``.env::$DATA`` the file itself by another
    name), ``NUL.txt`` a device, and a blank or full stop at a name's end is passed over.
    """
    parts = path.parts[1:] if path.anchor else path.parts
    if any(_NO_NAME.search(part) for part in parts):
        return False
    if platform != "win32":
        return True
    return not any(
        ":" in part or part.endswith((" ", ".")) or _DEVICE.match(part)
        for part in parts
        if part not in (".", "..")
    )
