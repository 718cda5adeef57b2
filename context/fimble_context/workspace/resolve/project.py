"""What import resolution may ask about a workspace: which files exist, what settings say.

Reads project files (package.json, go.mod, Cargo.toml, …) and remembers them by size and time
of change. A settings file that cannot be read or parsed is as good as none.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Project", "strip_json_comments"]

_T = TypeVar("_T")
_MAX_SETTINGS_BYTES = 8_000_000
_MOST_FILES_OF_A_FOLDER = 400
_MOST_ANCESTORS = 40


class Project:
    """The folders of a workspace, looked at through their files.

    Methods that look at the disk never raise for what they find there.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(Path(os.path.abspath(folder)) for folder in folders)  # noqa: PTH100
        self._parsed: dict[tuple[str, Path], tuple[tuple[int, int], Any]] = {}
        self._seen: dict[tuple[str, Path | str], Any] | None = None

    @contextlib.contextmanager
    def looking_once(self) -> Iterator[None]:
        """Within the block, what has been looked at is not looked at again.

        One assembly asks for the same folders hundreds of times.
        """
        self._seen = {}
        try:
            yield
        finally:
            self._seen = None

    def once(self, question: str, path: Path | str, ask: Callable[[], _T]) -> _T:
        """The answer to a question about a path; see ``looking_once``."""
        seen = self._seen
        if seen is None:
            return ask()
        key = (question, path)
        if key not in seen:
            seen[key] = ask()
        return seen[key]  # type: ignore[no-any-return]

    def root_of(self, path: Path) -> Path:
        """The innermost workspace folder around ``path``; its own folder where there is none."""
        return self.once("root", path, lambda: self._root_of(path))

    def _root_of(self, path: Path) -> Path:
        holding = [folder for folder in self.folders if path.is_relative_to(folder)]
        return max(holding, key=lambda folder: len(folder.parts), default=path.parent)

    def upwards(self, path: Path) -> Iterator[Path]:
        """The folder of a file and those around it, up to its workspace folder."""
        root = self.root_of(path)
        for index, folder in enumerate(path.parents):
            if index == _MOST_ANCESTORS or not folder.is_relative_to(root):
                return
            yield folder

    def nearest(self, path: Path, *names: str) -> Path | None:
        """The first file with one of these names in the folders around ``path``."""
        for folder in self.upwards(path):
            for name in names:
                if self.is_file(folder / name):
                    return folder / name
        return None

    def is_file(self, path: Path | str) -> bool:
        """Whether there is such a file."""
        return self.once("file", path, lambda: self._is_file(path))

    def is_folder(self, path: Path | str) -> bool:
        """Whether there is such a folder."""
        return self.once("folder", path, lambda: self._is_folder(path))

    def _is_file(self, path: Path | str) -> bool:
        # os.path answers False where Path raises: names too long, no permission, NUL.
        try:
            return os.path.isfile(path)  # noqa: PTH113
        except ValueError:
            return False

    def _is_folder(self, path: Path | str) -> bool:
        try:
            return os.path.isdir(path)  # noqa: PTH112
        except ValueError:
            return False

    def first_file(self, candidates: Iterator[Path]) -> Path | None:
        """The first of the candidates that is a file."""
        return next((path for path in candidates if self.is_file(path)), None)

    def files_in(self, folder: Path, *endings: str) -> list[Path]:
        """Files of a folder with one of these endings, by name; no more than 400."""
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208
        except (OSError, ValueError):
            return []
        chosen = (folder / name for name in names if name.endswith(endings))
        return [path for path in chosen if self.is_file(path)][:_MOST_FILES_OF_A_FOLDER]

    def folders_in(self, folder: Path) -> list[Path]:
        """Folders of a folder, by name, without hidden ones; no more than 400."""
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208
        except (OSError, ValueError):
            return []
        chosen = (folder / name for name in names if not name.startswith("."))
        return [path for path in chosen if self.is_folder(path)][:_MOST_FILES_OF_A_FOLDER]

    def members(self, root: Path, patterns: Sequence[str]) -> list[Path]:
        """Folders that the patterns of a workspace file (``packages/*``) name; ``!`` excludes."""
        found: dict[Path, None] = {}
        for pattern in patterns:
            if pattern.startswith("!"):
                for path in self._matching(root, pattern[1:]):
                    found.pop(path, None)
            else:
                found.update(dict.fromkeys(self._matching(root, pattern)))
        return list(found)

    def _matching(self, folder: Path, pattern: str) -> list[Path]:
        level = [folder]
        for part in pattern.replace("\\", "/").strip("/").split("/"):
            if part in ("", "."):
                continue
            if part == "**":
                level = [deep for above in level for deep in (above, *self._below(above, 3))]
            elif "*" in part or "?" in part:
                wanted = re.compile(re.escape(part).replace(r"\*", ".*").replace(r"\?", "."))
                level = [
                    child
                    for above in level
                    for child in self.folders_in(above)
                    if wanted.fullmatch(child.name)
                ]
            else:
                level = [above / part for above in level if self.is_folder(above / part)]
        return level[:_MOST_FILES_OF_A_FOLDER]

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        for child in self.folders_in(folder) if depth else ():
            if child.name != "node_modules":
                yield child
                yield from self._below(child, depth - 1)

    def json(self, path: Path) -> dict[str, Any]:
        """A JSON object, comments and trailing commas allowed; empty where there is none."""
        return self.parsed("json", path, _json_object) or {}

    def json_list(self, path: Path) -> list[Any]:
        """A JSON array; empty where there is none."""
        return self.parsed("list", path, _json_list) or []

    def toml(self, path: Path) -> dict[str, Any]:
        """A TOML document; empty where there is none."""
        return self.parsed("toml", path, tomllib.loads) or {}

    def text(self, path: Path) -> str:
        """A settings file's text; empty where there is none."""
        return self.parsed("text", path, str) or ""

    def parsed(self, kind: str, path: Path, parse: Callable[[str], _T]) -> _T | None:
        """What ``parse`` makes of a file, remembered until the file changes; None if it fails."""
        try:
            status = path.stat()
            if status.st_size > _MAX_SETTINGS_BYTES:
                return None
            stamp = (status.st_size, status.st_mtime_ns)
            known = self._parsed.get((kind, path))
            if known is not None and known[0] == stamp:
                return known[1]  # type: ignore[no-any-return]
            value = parse(path.read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError):
            # ValueError is also what JSON, TOML and UTF-8 raise.
            return None
        self._parsed[kind, path] = (stamp, value)
        return value


_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')


def strip_json_comments(text: str) -> str:
    """JSON of JSON with comments and trailing commas, as tsconfig files have them."""
    kept = _COMMENT_OR_STRING.sub(lambda m: m[0] if m[0].startswith('"') else " ", text)
    return _STRING_OR_COMMA.sub(lambda m: m[0] if m[0].startswith('"') else "", kept)


def _json_object(text: str) -> dict[str, Any]:
    value = json.loads(strip_json_comments(text))
    return value if isinstance(value, dict) else {}


def _json_list(text: str) -> list[Any]:
    value = json.loads(text)
    return value if isinstance(value, list) else []
