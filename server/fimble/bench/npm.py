"""Source files of npm packages, as data: packed by the npm client, read by us, never run.

A package is fetched once and kept in fimble's own folder. Only files with code are taken out of
it, and none outside the folder they are put in.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from fimble import system
from fimble.errors import UsageError
from fimble_context.syntax import detect

__all__ = ["fetch_npm_package", "unpack_sources"]

_SPEC = re.compile(r"(?:@[a-z0-9][\w.-]*/)?[a-z0-9][\w.-]*@\d+\.\d+\.\d+(?:-[\w.]+)?")
_LANGUAGES = frozenset({"javascript", "typescript", "tsx"})
#: What tools made of the source.
_GENERATED = frozenset({"dist", "build", "umd", "esm", "cjs", "bundles", "node_modules"})
_GENERATED_NAME = re.compile(r"\.d\.[cm]?ts$|\.min\.js$")
_LARGEST_FILE = 400_000  # bytes
_MOST_FILES = 5_000
_SECONDS = 120


def fetch_npm_package(spec: str) -> Path:
    """The tarball of ``NAME@VERSION``, which is fetched where it is not kept yet.

    Raises UsageError for anything but a name with an exact version, and where npm is not
    installed or cannot get the package.
    """
    if not _SPEC.fullmatch(spec):
        raise UsageError(
            f"“{spec}” names no version of an npm package.",
            next_step="Write npm:NAME@VERSION, such as npm:rxjs@7.8.2.",
        )
    kept = system.home() / "bench" / f"{spec.replace('/', '+')}.tgz"
    if not kept.is_file():
        _pack(spec, kept)
    return kept


def _pack(spec: str, kept: Path) -> None:
    npm = system.find_program("npm", scripts=True)
    if npm is None:
        raise UsageError(
            f"npm, which would fetch {spec}, is not installed.",
            next_step="Install Node.js, or name the package's .tgz file instead.",
        )
    system.make_private_dir(kept.parent)
    with tempfile.TemporaryDirectory(prefix="fimble-npm-", dir=kept.parent) as temporary:
        command = [str(npm), "pack", spec, "--ignore-scripts", "--silent"]
        try:
            done = subprocess.run(
                [*command, "--pack-destination", temporary],
                cwd=temporary,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _failed(spec, type(error).__name__) from error
        packed = sorted(Path(temporary).glob("*.tgz"))
        if done.returncode or not packed:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise _failed(spec, said[0] if said else f"npm ended with {done.returncode}")
        system.replace_path(packed[0], kept)


def _failed(spec: str, cause: str) -> UsageError:
    return UsageError(
        f"npm could not get {spec}: {cause}.",
        next_step="Check the name and version, or name the package's .tgz file instead.",
    )


def unpack_sources(tarball: Path, folder: Path) -> None:
    """Puts the JavaScript and TypeScript source of a package into ``folder``, and its
    ``package.json``. Declarations and generated files are left out; where there is a ``src``
    folder, so is all else, since it is made of that.

    Raises UsageError for a file that is no such package or has no source in it.
    """
    try:
        with tarfile.open(tarball, "r:gz") as archive:
            members = dict(_source_members(archive))
            inside = [path for path in members if path.parts[0] == "src"]
            wanted = [path for path in members if not inside or path.parts[0] == "src"]
            for path in [*wanted[:_MOST_FILES], *_manifest(members)]:
                content = archive.extractfile(members[path])
                assert content is not None  # a regular file
                target = folder.joinpath(*path.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
    except (OSError, tarfile.TarError, EOFError) as error:
        raise UsageError(f"{tarball} is no npm package: {error}.") from error
    if not wanted or wanted == _manifest(members):
        raise UsageError(
            f"{tarball.name} has no JavaScript or TypeScript source in it.",
            next_step="Some packages have generated code only; name another one.",
        )


_MANIFEST = PurePosixPath("package.json")


def _manifest(members: dict[PurePosixPath, tarfile.TarInfo]) -> list[PurePosixPath]:
    return [_MANIFEST] if _MANIFEST in members else []


def _source_members(
    archive: tarfile.TarFile,
) -> Iterator[tuple[PurePosixPath, tarfile.TarInfo]]:
    """Regular files that are source, by their paths within the package, in order."""
    for member in sorted(archive.getmembers(), key=lambda member: member.name):
        parts = PurePosixPath(member.name).parts[1:]
        if not parts or not member.isfile() or member.size > _LARGEST_FILE:
            continue
        if any(_is_unsafe(part) or part in _GENERATED for part in parts):
            continue
        path = PurePosixPath(*parts)
        language = detect(None, path.name)
        source = language is not None and language.id in _LANGUAGES
        if path == _MANIFEST or (source and not _GENERATED_NAME.search(path.name)):
            yield path, member


def _is_unsafe(part: str) -> bool:
    """Whether a name could lead out of its folder, on any system."""
    return part in ("..", ".", "") or not re.fullmatch(r"[\w@+.()$ \[\]-]+", part)
