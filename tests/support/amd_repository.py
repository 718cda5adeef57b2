"""AMD's packages as repositories of the stand-in hub."""

from __future__ import annotations

from pathlib import Path

from tests.support.amd_packages import AMD_PACKAGES, NESTED, make_amd_package
from tests.support.hub_server import StandInHub

__all__ = ["LARGE", "amd_repository"]

LARGE = 300_000
"""Bytes of weights: the repository's one file in Git LFS."""


def amd_repository(folder: Path, letter: str) -> StandInHub:
    """The row's package, made below ``folder``, as a repository."""
    row = AMD_PACKAGES[letter]
    outer = make_amd_package(folder, letter)
    files = {
        path.relative_to(outer).as_posix(): path.read_bytes()
        for path in outer.rglob("*")
        if path.is_file()
    }
    data = f"{NESTED}/{row.data}" if row.nested else row.data
    weights = files.pop(data)
    content = weights + bytes(n * 31 % 251 for n in range(LARGE - len(weights)))
    files |= {".gitattributes": b"*.data filter=lfs\n", "README.md": b"# A model\n"}
    return StandInHub(
        content,
        repo=row.repo,
        file=data,
        files=files,
        card={"cardData": {"license": "apache-2.0"}},
    )
