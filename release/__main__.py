"""``python -m release [VERSION]``, in a clone; see docs/releasing.md."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from pathlib import Path

from release.build import (
    build_extension,
    build_plugin,
    build_sdist,
    build_wheel,
    metadata_of,
)
from release.node import NPM, run_node
from release.refusal import ReleaseRefused
from release.resolve import resolve
from release.sbom import extension_sbom, server_sbom
from release.tree import Commit, agreed_version, clean_commit, export

_SUMS = "SHA256SUMS"


def main(arguments: list[str]) -> int:
    """Builds a release into ``dist/``. Returns the exit code."""
    parser = argparse.ArgumentParser(prog=".ci/release", description=__doc__)
    parser.add_argument("version", nargs="?", help="refuse any other than this")
    parser.add_argument(
        "--rehearsal", action="store_true", help="the changelog need not name the version yet"
    )
    wanted = parser.parse_args(arguments)
    repository = Path.cwd()
    try:
        commit = clean_commit(repository)
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            tree = work / "tree"
            export(repository, commit, tree)
            version = agreed_version(tree, rehearsal=wanted.rehearsal)
            if wanted.version not in (None, version):
                raise ReleaseRefused(f"The parts say version {version}, not {wanted.version}.")
            made = work / "dist"
            made.mkdir()
            _build(tree, made, version, commit, work / "source")
            _replace(repository / "dist", made)
    except ReleaseRefused as error:
        print(f"no release: {error}", file=sys.stderr)
        return 1
    print((repository / "dist" / _SUMS).read_text(encoding="utf-8"), end="")
    return 0


def _build(tree: Path, target: Path, version: str, commit: Commit, work: Path) -> None:
    sdist = build_sdist(tree, target, commit.time)
    wheel = build_wheel(sdist, target, commit.time, work)
    build_plugin(tree, target, version, commit.time)
    client = tree / "clients" / "vscode"
    # Nothing that a package brings along is run.
    run_node(NPM, "ci", "--ignore-scripts", "--loglevel=error", cwd=client)
    build_extension(tree, wheel, target, version, commit.time)
    about = metadata_of(wheel)
    for name, text in (
        (f"fimble-{version}.cdx.json", server_sbom(resolve(tree), about, _sum(wheel), commit)),
        (f"fimble-{version}.vsix.cdx.json", extension_sbom(client, version, _sum(wheel), commit)),
    ):
        (target / name).write_text(text, encoding="utf-8", newline="\n")
    lines = [f"{_sum(file)}  {file.name}\n" for file in sorted(target.iterdir())]
    (target / _SUMS).write_text("".join(lines), encoding="utf-8", newline="\n")


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _replace(target: Path, made: Path) -> None:
    """What an older build left is no part of this one."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(made, target)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
