"""Imports of JavaScript and TypeScript: relative files, tsconfig paths, packages of a workspace.

Follows what Node and TypeScript's bundler resolution have in common. Packages in
``node_modules`` are not looked into, unless they are the workspace's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fimble_context.syntax.names import Import
from fimble_context.workspace.resolve.project import Project
from fimble_context.workspace.resolve.tsconfig import TsConfig, tsconfig_for

__all__ = ["related", "resolve"]

_TYPESCRIPT = (".ts", ".tsx", ".mts", ".cts", ".d.ts")
_JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs")
_OTHER = (".vue", ".svelte", ".json", ".css")
#: TypeScript writes the extension of what it compiles to.
_COMPILED = {
    ".js": (".ts", ".tsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
_CONDITIONS = ("types", "typescript", "source", "import", "module", "node", "browser", "require",
               "default")  # fmt: skip
_OUTPUT = ("dist", "lib", "build", "out", "esm", "cjs")


def resolve(import_: Import, from_path: Path, project: Project) -> list[Path]:
    """The file that the module specifier names; empty for one outside the workspace."""
    source = import_.source.partition("?")[0]  # bundlers' "./x.svg?raw"
    found: Path | None = None
    if source.startswith(".") or source.startswith("/"):
        base = from_path.parent if source.startswith(".") else project.root_of(from_path)
        found = _file(base / source.lstrip("/"), from_path, project)
    elif source.startswith("#"):
        found = _private(source, from_path, project)
    if found is None and not source.startswith("."):
        config = tsconfig_for(from_path, project)
        found = _by_paths(source, from_path, config, project) if config else None
        found = found or _package(source, from_path, project)
    return [found] if found is not None else []


def related(path: Path, project: Project) -> list[Path]:
    """Nothing: a module sees what it imports."""
    return []


def _file(target: Path, from_path: Path, project: Project) -> Path | None:
    """What ``target`` means: a file, a file without its extension, or a folder."""
    return project.first_file(_candidates(target, from_path, project))


def _candidates(target: Path, from_path: Path, project: Project) -> Iterator[Path]:
    yield target
    for ending in _COMPILED.get(target.suffix, ()):
        yield target.with_suffix(ending)
    endings = _endings(from_path)
    for ending in endings:
        yield target.parent / f"{target.name}{ending}"
    if project.is_folder(target):
        manifest = project.json(target / "package.json")
        if manifest:
            yield from _entry(target, manifest, from_path)
        for ending in endings:
            yield target / f"index{ending}"


def _endings(from_path: Path) -> tuple[str, ...]:
    if from_path.suffix in _JAVASCRIPT:
        return (*_JAVASCRIPT, *_TYPESCRIPT, *_OTHER)
    return (*_TYPESCRIPT, *_JAVASCRIPT, *_OTHER)


def _by_paths(source: str, from_path: Path, config: TsConfig, project: Project) -> Path | None:
    for target in config.targets(source):
        found = _file(target, from_path, project)
        if found is not None:
            return found
    return None


# --- packages of the workspace ---------------------------------------------------------------


def _package(source: str, from_path: Path, project: Project) -> Path | None:
    parts = source.split("/")
    name = "/".join(parts[:2]) if source.startswith("@") else parts[0]
    subpath = source[len(name) :].strip("/")
    for folder, manifest in _packages(from_path, project):
        if manifest.get("name") == name:
            return project.first_file(_of_package(folder, manifest, subpath, from_path, project))
    return None


def _packages(from_path: Path, project: Project) -> Iterator[tuple[Path, dict[str, Any]]]:
    """(folder, package.json) of the file's own package and of all packages of its workspaces."""
    seen: set[Path] = set()
    for folder in (*project.upwards(from_path), *project.folders):
        if folder in seen:
            continue
        seen.add(folder)
        manifest = project.json(folder / "package.json")
        if manifest:
            yield folder, manifest
        for member in project.members(folder, _workspaces(folder, manifest, project)):
            if member not in seen:
                seen.add(member)
                yield member, project.json(member / "package.json")


def _workspaces(folder: Path, manifest: dict[str, Any], project: Project) -> list[str]:
    listed = manifest.get("workspaces")
    if isinstance(listed, dict):
        listed = listed.get("packages")
    lerna = project.json(folder / "lerna.json").get("packages")
    pnpm = _pnpm(project.text(folder / "pnpm-workspace.yaml"))
    return [*_strings(listed), *_strings(lerna), *pnpm]


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _pnpm(text: str) -> Iterator[str]:
    """The list under ``packages:``; nothing else of YAML occurs there in practice."""
    inside = False
    for line in text.splitlines():
        if line and not line[0].isspace() and not line.startswith(("-", "#")):
            inside = line.startswith("packages:")
        elif inside and line.strip().startswith("-"):
            yield line.partition("#")[0].strip().lstrip("-").strip().strip("\"'")


def _of_package(
    folder: Path, manifest: dict[str, Any], subpath: str, from_path: Path, project: Project
) -> Iterator[Path]:
    for target in _exported(manifest.get("exports"), f"./{subpath}" if subpath else "."):
        yield from _with_source(folder, target, from_path, project)
    if subpath:
        yield from _candidates(folder / subpath, from_path, project)
        yield from _candidates(folder / "src" / subpath, from_path, project)
        return
    yield from _entry(folder, manifest, from_path)
    for main in (manifest.get(key) for key in ("source", "types", "module", "main")):
        if isinstance(main, str):
            yield from _with_source(folder, main, from_path, project)
    for start in ("src/index", "index", "lib/index", "src/main"):
        for ending in _endings(from_path):
            yield folder / f"{start}{ending}"


def _with_source(folder: Path, target: str, from_path: Path, project: Project) -> Iterator[Path]:
    """A file, or the source that it is built from where the build output is not there."""
    target = target.removeprefix("./")
    first, _, rest = target.partition("/")
    if first in _OUTPUT and rest:
        stem = rest.removesuffix(".d.ts")
        yield from _candidates(folder / "src" / stem, from_path, project)
        yield from _candidates((folder / "src" / stem).with_suffix(""), from_path, project)
    yield from _candidates(folder / target, from_path, project)


def _entry(folder: Path, manifest: dict[str, Any], from_path: Path) -> Iterator[Path]:
    for key in ("source", "module", "main", "types"):
        main = manifest.get(key)
        if isinstance(main, str):
            yield folder / main
            for ending in _endings(from_path):
                yield folder / f"{main}{ending}"


def _private(source: str, from_path: Path, project: Project) -> Path | None:
    """``#name``: the nearest package.json's ``imports``."""
    manifest = project.nearest(from_path, "package.json")
    if manifest is None:
        return None
    for target in _exported(project.json(manifest).get("imports"), source):
        candidates = _with_source(manifest.parent, target, from_path, project)
        found = project.first_file(candidates)
        if found is not None:
            return found
    return None


def _exported(exports: object, subpath: str) -> Iterator[str]:
    """Targets for a subpath in a package's ``exports`` or ``imports``, the likeliest first."""
    if isinstance(exports, (str, list)) or (
        isinstance(exports, dict) and not any(key.startswith((".", "#")) for key in exports)
    ):
        if subpath == ".":
            yield from _conditional(exports)
        return
    if not isinstance(exports, dict):
        return
    if subpath in exports:
        yield from _conditional(exports[subpath])
        return
    patterns = sorted((key for key in exports if "*" in key), key=len, reverse=True)
    for pattern in patterns:
        before, _, after = pattern.partition("*")
        fits = subpath.startswith(before) and subpath.endswith(after)
        if fits and len(subpath) >= len(before) + len(after):
            middle = subpath[len(before) : len(subpath) - len(after)]
            for target in _conditional(exports[pattern]):
                yield target.replace("*", middle)
            return


def _conditional(target: object) -> Iterator[str]:
    if isinstance(target, str):
        yield target
    elif isinstance(target, list):
        for item in target:
            yield from _conditional(item)
    elif isinstance(target, dict):
        for condition in _CONDITIONS:
            if condition in target:
                yield from _conditional(target[condition])
