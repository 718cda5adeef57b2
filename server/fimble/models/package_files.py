"""Whether the files that a package needs are there and whole, and how large they are.

A package is data: names that lead out of its folder are refused, whatever file they stand in.
Reads graphs without their weights. Knows nothing of what a runtime would do with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from fimble.errors import PackageError
from fimble.models.genai_config import CONFIG_FILE, GenaiConfig
from fimble.models.onnx_graph import GraphFacts, read_graph
from fimble.models.package_json import is_lfs_pointer

__all__ = [
    "TOKENIZER_FILE",
    "CheckedFiles",
    "check_file_name",
    "check_files",
    "check_names",
    "list_files",
]

TOKENIZER_FILE = "tokenizer.json"

_CACHE = "cache"
"""Where NPU packages keep what was compiled of them, weights among it."""


@dataclass(frozen=True, slots=True)
class CheckedFiles:
    """``graph`` is the first graph that the configuration names: the decoder's.

    ``weights_bytes`` counts each graph and each file of weights once. ``domains`` are the
    operators' domains of all graphs.
    """

    graph: GraphFacts = field(default_factory=GraphFacts)
    weights_bytes: int = 0
    domains: frozenset[str] = frozenset()


def check_files(folder: Path, config: GenaiConfig) -> CheckedFiles:
    """Raises PackageError for the first file that is wrong, or OSError from reading one."""
    if config.bom:
        raise PackageError(
            f"{CONFIG_FILE} begins with a byte order mark, which onnxruntime-genai cannot read.",
            next_step="Save it as UTF-8 without one.",
        )
    check_names(config)
    if config.faults:
        raise PackageError(
            f"{CONFIG_FILE} cannot be meant: {config.faults[0]}.",
            next_step="Download the package again, or mend that value.",
        )
    graphs = [name for name in config.files if name.endswith(".onnx")]
    if not graphs:
        raise PackageError(
            f"{CONFIG_FILE} names no .onnx file.", next_step="Download the package again."
        )
    for name in [*config.files, TOKENIZER_FILE]:
        _check_present(folder / name, name)
    sizes = {name: (folder / name).stat().st_size for name in config.files}
    facts = []
    for name in graphs:
        found = _check_graph(folder / name, name)
        facts.append(found)
        for data in found.external:
            place = (PurePosixPath(name).parent / data).as_posix()
            sizes[place] = (folder / place).stat().st_size
    cached = sum(size for name, size in list_files(folder) if name.startswith(f"{_CACHE}/"))
    return CheckedFiles(
        graph=facts[0],
        weights_bytes=sum(sizes.values()) + cached,
        domains=frozenset().union(*(each.domains for each in facts)),
    )


def list_files(folder: Path) -> tuple[tuple[str, int], ...]:
    """Every file's name relative to the folder, with ``/``, and its size in bytes.

    What is hidden is left out, and so are links to folders.
    """
    found = []
    for path in folder.rglob("*"):
        relative = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            found.append((relative.as_posix(), path.stat().st_size))
    return tuple(sorted(found))


def check_names(config: GenaiConfig) -> None:
    """PackageError where the configuration names what lies outside the package, or code."""
    for key, name in config.libraries:
        raise PackageError(
            f"{CONFIG_FILE} names a library, {name[:200]!r} ({key[:100]}), whose code would run "
            "in the engine; fimble takes packages as data only.",
            next_step="Do not use this package; get one without a library.",
        )
    for name in (*config.files, *config.paths):
        check_file_name(name, CONFIG_FILE)


def check_file_name(name: str, where: str) -> None:
    """A name must stay in the package's folder on every system, whoever wrote it."""
    windows, posix = PureWindowsPath(name), PurePosixPath(name)
    if windows.anchor or posix.is_absolute() or ".." in windows.parts or "\0" in name:
        raise PackageError(
            f"{where} names a file outside the package: {name[:200]!r}.",
            next_step="Do not use this package; get it from its owner again.",
        )


def _check_graph(path: Path, name: str) -> GraphFacts:
    facts = read_graph(path)
    if facts.error:
        raise PackageError(f"{name} {facts.error}.", next_step="Download it again.")
    for data, least in facts.external.items():
        check_file_name(data, name)
        file = path.parent / data
        _check_present(file, data)
        # The rule of ONNX Runtime: beside the graph, or beside what its link points to.
        allowed = (path.parent.resolve(), path.resolve().parent)
        if not any(file.resolve().is_relative_to(each) for each in allowed):
            raise PackageError(
                f"{data} is a link out of the package's folder, which the runtime refuses.",
                next_step="Copy the package with all its files into one folder, links resolved.",
            )
        size = file.stat().st_size
        if size < least:
            raise PackageError(
                f"{data} is cut short: it has {size:,} bytes, and {name} needs {least:,}.",
                next_step="Download it again.",
            )
    return facts


def _check_present(path: Path, name: str) -> None:
    if not path.is_file():
        raise PackageError(
            f"{name} is missing.", next_step="Download the package again, with all its files."
        )
    if is_lfs_pointer(path):
        raise PackageError(
            f"{name} is a Git LFS pointer, not the file itself.",
            next_step="Run `git lfs pull` in its folder, or get it with `fimble model pull`.",
        )
    if path.stat().st_size == 0:
        raise PackageError(f"{name} is empty.", next_step="Download it again.")
