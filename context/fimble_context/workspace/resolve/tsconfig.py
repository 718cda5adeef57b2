"""What tsconfig.json and jsconfig.json say about module names: ``baseUrl`` and ``paths``.

``extends`` (one or several, by path or by package) and ``references`` are followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fimble_context.workspace.resolve.project import Project

__all__ = ["TsConfig", "tsconfig_for"]

_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class TsConfig:
    """``paths`` are (pattern, targets); targets are absolute, with ``*`` as in the pattern."""

    base_url: Path | None = None
    paths: tuple[tuple[str, tuple[Path, ...]], ...] = field(default=())

    def targets(self, source: str) -> Iterator[Path]:
        """Where a module name may be, the likeliest first, without extensions tried."""
        fitting = [
            (pattern, targets, middle)
            for pattern, targets in self.paths
            if (middle := _middle(pattern, source)) is not None
        ]
        # An exact name wins, then the longest text before the star.
        fitting.sort(key=lambda item: ("*" in item[0], -len(item[0].partition("*")[0])))
        for _, targets, middle in fitting[:1]:
            for target in targets:
                yield Path(os.path.normpath(str(target).replace("*", middle)))
        if self.base_url is not None:
            yield self.base_url / source


def _middle(pattern: str, source: str) -> str | None:
    before, star, after = pattern.partition("*")
    if not star:
        return "" if source == pattern else None
    fits = source.startswith(before) and source.endswith(after)
    if not fits or len(source) < len(before) + len(after):
        return None
    return source[len(before) : len(source) - len(after)]


def tsconfig_for(path: Path, project: Project) -> TsConfig | None:
    """The settings that hold for a file: of the nearest configuration around it."""
    nearest = project.nearest(path, "tsconfig.json", "jsconfig.json")
    if nearest is None:
        return None
    config = _load(nearest, project, _DEEPEST)
    if config.paths or config.base_url:
        return config
    # A "solution" has settings only in what it refers to.
    for reference in _list(project.json(nearest).get("references")):
        named = reference.get("path") if isinstance(reference, dict) else None
        if isinstance(named, str):
            target = nearest.parent / named
            if project.is_folder(target):
                target = target / "tsconfig.json"
            config = _load(target, project, _DEEPEST)
            if config.paths or config.base_url:
                return config
    return TsConfig()


def _load(path: Path, project: Project, depth: int) -> TsConfig:
    content = project.json(path)
    base_url: Path | None = None
    paths: tuple[tuple[str, tuple[Path, ...]], ...] = ()
    extended = content.get("extends")
    for name in [extended] if isinstance(extended, str) else _list(extended):
        target = _extended(name, path, project) if isinstance(name, str) else None
        if target is not None and depth:
            inherited = _load(target, project, depth - 1)
            base_url = inherited.base_url or base_url
            paths = inherited.paths or paths
    options = content.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    if isinstance(options.get("baseUrl"), str):
        base_url = path.parent / options["baseUrl"]
    if isinstance(options.get("paths"), dict):
        base = base_url or path.parent
        paths = tuple(
            (pattern, tuple(base / target for target in _list(targets) if isinstance(target, str)))
            for pattern, targets in options["paths"].items()
        )
    return TsConfig(base_url, paths)


def _extended(name: str, path: Path, project: Project) -> Path | None:
    if name.startswith(".") or Path(name).is_absolute():
        places = [path.parent / name]
    else:
        places = [folder / "node_modules" / name for folder in path.parents]
    for place in places:
        for candidate in (place, place.parent / f"{place.name}.json", place / "tsconfig.json"):
            if project.is_file(candidate):
                return candidate
    return None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
