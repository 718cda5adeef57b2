"""Archives whose bytes follow from names and contents alone.

Order, times, modes and owners of the members are fixed. Compressed bytes are the same wherever
Python's zlib is of the same version.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO

__all__ = ["read_tar", "rewrite_tar", "rewrite_zip", "unpack", "write_tar"]

#: Zip knows no earlier time: the first of January 1980, in seconds since 1970.
_ZIP_BEGINS = 315_532_800
_FILE, _PROGRAM = 0o644, 0o755
_REGULAR = 0o100_000


def rewrite_zip(path: Path, seconds: int) -> None:
    """Makes the archive again with all its members made at ``seconds`` since 1970."""
    with zipfile.ZipFile(path) as found:
        # What describes a wheel comes last, as installers like it.
        names = sorted(found.namelist(), key=lambda name: (".dist-info/" in name, name))
        members = [(name, _is_program(found.getinfo(name)), found.read(name)) for name in names]
    when = time.gmtime(max(seconds, _ZIP_BEGINS))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, program, content in members:
            about = zipfile.ZipInfo(name, when)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.create_system = 3  # Unix, whose modes follow
            about.external_attr = (_REGULAR | (_PROGRAM if program else _FILE)) << 16
            archive.writestr(about, content)


def _is_program(member: zipfile.ZipInfo) -> bool:
    return bool(member.external_attr >> 16 & 0o100)


def rewrite_tar(path: Path, seconds: int) -> None:
    """``rewrite_zip`` for a ``.tar.gz``; of its members, the files."""
    with path.open("rb") as file:
        members = read_tar(file)
    write_tar(path, members, seconds)


def read_tar(archive: IO[bytes]) -> dict[str, tuple[bytes, bool]]:
    """The files of a tar archive, packed or not: contents, and whether it is a program."""
    members = {}
    with tarfile.open(fileobj=archive) as found:
        for member in found:
            content = found.extractfile(member)
            if content is not None:
                members[member.name] = (content.read(), bool(member.mode & 0o100))
    return members


def unpack(archive: IO[bytes], folder: Path) -> None:
    """Writes the files of a tar archive of ours, with the same modes under any umask."""
    for name, (content, program) in read_tar(archive).items():
        path = folder / PurePosixPath(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(_PROGRAM if program else _FILE)


def write_tar(path: Path, members: Mapping[str, tuple[bytes, bool]], seconds: int) -> None:
    """A ``.tar.gz`` of contents by name, each with whether it is a program."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in sorted(members):
            content, program = members[name]
            about = tarfile.TarInfo(name)
            about.size = len(content)
            about.mtime = seconds
            about.mode = _PROGRAM if program else _FILE
            archive.addfile(about, io.BytesIO(content))
    with path.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=seconds) as stream:
        stream.write(packed.getvalue())
