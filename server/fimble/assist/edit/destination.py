"""Where a project keeps the tests of a file, by its own habits or its language's.

Looks at the disk, within the project; what it may not read it does not show. Writes nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from fimble.assist.chat.pieces import Sources
from fimble.assist.edit.problems import Problem
from fimble.assist.edit.target import Target
from fimble.assist.layout import prompt_text
from fimble.assist.policy import MAX_DOCUMENT_BYTES
from fimble.assist.workspace import project_root
from fimble_context.syntax import Document, Language
from fimble_context.workspace import Limits, Refusal, mask_secrets, read

__all__ = ["Destination", "find_destination", "values_for"]

_LIMITS = Limits()
_MOST_SHOWN = 1500  # code points of an existing test file
_FOLDERS = ("tests", "test", "spec", "__tests__")
_MOST_NEIGHBOURS = 6


@dataclass(frozen=True, slots=True)
class Destination:
    """A file for tests; ``document`` is what is in it, empty where it ``is_new``.

    ``is_own``: it is the document under test itself. ``framework`` goes on in words with
    "tests for X". ``newline`` is the line end for a new file.
    """

    path: Path
    document: Document
    framework: str
    is_new: bool
    is_own: bool = False
    newline: str = "\n"
    may_show: bool = True


#: Names and folders (relative to the project) that tests of a file may have, the best first.
_Places: TypeAlias = Callable[[PurePosixPath], Iterator[PurePosixPath]]


async def find_destination(document: Document, sources: Sources) -> Destination | Problem:
    """Where tests for code of ``document`` belong."""
    language = document.syntax_language
    if not document.path:
        return Problem("unsaved", "The document has no file yet, so its tests have no place.")
    places = _PLACES.get(language.id) if language is not None else None
    if language is None or places is None:
        name = language.name if language is not None else "plain text"
        return Problem("language", f"There is no known way to test {name}.", again=False)
    path = Path(document.path)
    if language.id == "rust":
        return Destination(path, document, _RUST, is_new=False, is_own=True)
    root = sources.policy.folder_of(path) or project_root(path) or path.parent
    return await asyncio.to_thread(_find, path, root, document, language, places, sources)


def values_for(found: Destination, target: Target, sources: Sources) -> dict[str, Any]:
    """What the template needs besides: the file, how it begins, how to import."""
    existing = ""
    if not found.is_new and not found.is_own and found.may_show:
        existing = mask_secrets(prompt_text(found.document.text[:_MOST_SHOWN])).rstrip()
        existing = existing[: existing.rfind("\n")] if len(existing) > 1000 else existing
    return {
        "test_path": sources.shown_path(found.path),
        "existing": existing,
        "framework": found.framework,
        "importing": _importing(target, found, sources),
    }


# --- looking -----------------------------------------------------------------------------


def _find(
    path: Path,
    root: Path,
    document: Document,
    language: Language,
    places: _Places,
    sources: Sources,
) -> Destination | Problem:
    relative = (
        PurePosixPath(path.relative_to(root).as_posix())
        if path.is_relative_to(root)
        else (PurePosixPath(path.name))
    )
    candidates = [
        each for each in (root / place for place in places(relative)) if _stays(each, root)
    ]
    if not candidates:
        return Problem(
            "outside",
            "Every place for its tests is a link that leads out of the project.",
            again=False,
        )
    chosen = next((place for place in candidates if place.is_file()), None)
    is_new = chosen is None
    if chosen is None:
        chosen = next(
            (place for place in candidates if _has_tests(place.parent, place.suffix)),
            None,
        ) or next((place for place in candidates if place.parent.is_dir()), candidates[0])
    framework = _framework(language, chosen, root)
    opened = sources.document(chosen)
    refused = None if is_new else sources.policy.refusal(chosen)
    if opened is not None:
        there = opened[1].copy()
    else:
        text = "" if is_new else _whole_text(chosen)
        if isinstance(text, Problem):
            return text
        there = Document(text, path=str(chosen), language=document.language)
    return Destination(
        chosen,
        there,
        framework,
        is_new=is_new and opened is None,
        newline=document.newline,
        may_show=refused is None,
    )


def _stays(path: Path, root: Path) -> bool:
    """Whether a file made or changed there lies in the project, wherever links lead.

    A workspace brings its links along: tests that go to one could be written anywhere.
    """
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _whole_text(path: Path) -> str | Problem:
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            return Problem("size", f"{path.name} is too large to add tests to it.", again=False)
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        why = error.strerror or type(error).__name__
        return Problem("unreadable", f"{path.name} cannot be read: {why}.", again=False)


def _has_tests(folder: Path, suffix: str) -> bool:
    return any(_neighbours(folder, suffix))


def _neighbours(folder: Path, suffix: str) -> Iterator[Path]:
    """Test files in a folder, a few."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return
    found = [name for name in names if name.endswith(suffix) and _TEST_NAME.search(name)]
    yield from (folder / name for name in found[:_MOST_NEIGHBOURS])


_TEST_NAME = re.compile(r"(?:^|[._-])(?:tests?|spec)(?:[._-])|(?:Tests?|Spec)\.\w+$")


def _mirrored(path: PurePosixPath, name: str, folders: tuple[str, ...]) -> Iterator[PurePosixPath]:
    """``a/b/NAME`` below each of the test folders, with fewer and fewer of its parents."""
    for folder in folders:
        for skipped in range(len(path.parts)):
            yield PurePosixPath(folder, *path.parts[skipped:-1], name)


def _python(path: PurePosixPath) -> Iterator[PurePosixPath]:
    stem = path.parent.name if path.stem == "__init__" and path.parent.name else path.stem
    name = f"test_{stem}.py"
    yield from _mirrored(path, name, ("tests", "test"))
    yield path.parent / "tests" / name
    yield path.parent / name
    yield path.parent / f"{stem}_test.py"


def _script(path: PurePosixPath) -> Iterator[PurePosixPath]:
    for kind in ("test", "spec"):
        name = f"{path.stem}.{kind}{path.suffix}"
        yield path.parent / "__tests__" / name
        yield path.parent / name
        inside = PurePosixPath(*path.parts[1:]) if path.parts[0] == "src" else path
        yield from _mirrored(inside, name, ("test", "tests"))
    yield path.parent / f"{path.stem}.test{path.suffix}"


def _beside(ending: str) -> _Places:
    def places(path: PurePosixPath) -> Iterator[PurePosixPath]:
        yield path.parent / f"{path.stem}{ending}{path.suffix}"

    return places


def _maven(path: PurePosixPath) -> Iterator[PurePosixPath]:
    parts = list(path.parts)
    for ending in ("Test", "Tests", "Spec"):
        name = f"{path.stem}{ending}{path.suffix}"
        if "main" in parts[:-1]:
            place = parts.index("main")
            yield PurePosixPath(*parts[:place], "test", *parts[place + 1 : -1], name)
        yield from _mirrored(path, name, ("tests", "test"))
        yield path.parent / name


def _ruby(path: PurePosixPath) -> Iterator[PurePosixPath]:
    inside = PurePosixPath(*path.parts[1:]) if path.parts[0] in ("lib", "app") else path
    for folder, name in (
        ("spec", f"{path.stem}_spec.rb"),
        ("test", f"test_{path.stem}.rb"),
        ("test", f"{path.stem}_test.rb"),
    ):
        yield from _mirrored(inside, name, (folder,))


def _c(path: PurePosixPath) -> Iterator[PurePosixPath]:
    for name in (f"test_{path.stem}{path.suffix}", f"{path.stem}_test{path.suffix}"):
        yield from _mirrored(path, name, ("tests", "test"))
        yield path.parent / name


_RUST = "in a module `tests` with #[cfg(test)]"
_PLACES: Mapping[str, _Places] = {
    "python": _python,
    "javascript": _script,
    "typescript": _script,
    "tsx": _script,
    "go": _beside("_test"),
    "rust": _beside(""),
    "java": _maven,
    "kotlin": _maven,
    "scala": _maven,
    "csharp": _maven,
    "php": _maven,
    "ruby": _ruby,
    "c": _c,
    "cpp": _c,
}


# --- how tests are written there ------------------------------------------------------------


def _framework(language: Language, path: Path, root: Path) -> str:
    texts = [_text(file) for file in _neighbours(path.parent, path.suffix)]
    if path.is_file():
        texts.insert(0, _text(path))
    seen = "\n".join(texts)
    if language.id == "python":
        if "unittest" in seen and "pytest" not in seen:
            return "with unittest, as methods of a TestCase"
        return "for pytest, as functions with assert"
    if language.id in ("javascript", "typescript", "tsx"):
        return f"for {_script_framework(path, root)}"
    known: dict[str, tuple[tuple[str, str], ...]] = {
        "go": (("testify", "with testing and testify"), ("", "with the package testing")),
        "java": (("org.junit.Test", "with JUnit 4"), ("", "with JUnit 5")),
        "kotlin": (("kotest", "with Kotest"), ("", "with kotlin.test")),
        "scala": (("munit", "with MUnit"), ("", "with ScalaTest")),
        "csharp": (("NUnit", "with NUnit"), ("VisualStudio", "with MSTest"), ("", "with xUnit")),
        "php": (("", "with PHPUnit"),),
        "ruby": (
            ("Minitest", "with Minitest"),
            ("", "with RSpec" if "spec" in path.name else "with Minitest"),
        ),
        "c": (("", "as functions with assert, and a main that calls them"),),
        "cpp": (
            ("gtest", "with GoogleTest"),
            ("catch", "with Catch2"),
            ("", "as functions with assert, and a main that calls them"),
        ),
    }
    return next(words for mark, words in known[language.id] if mark in seen)


def _script_framework(path: Path, root: Path) -> str:
    for folder in (path.parent, *path.parents):
        try:
            data = json.loads(_text(folder / "package.json") or "{}")
        except ValueError:
            data = {}
        names: set[str] = set()
        for key in ("devDependencies", "dependencies"):
            listed = data.get(key) if isinstance(data, dict) else None
            names |= set(listed) if isinstance(listed, dict) else set()
        for name, shown in (("vitest", "Vitest"), ("jest", "Jest"), ("mocha", "Mocha")):
            if name in names:
                return shown
        if folder == root:
            break
    return "node:test"


def _importing(target: Target, found: Destination, sources: Sources) -> str:
    """A sentence on how a test file gets at the code; empty where the language needs none."""
    path = Path(target.document.path)
    language = target.document.syntax_language
    name = target.around[0] if target.around else target.symbol.name if target.symbol else ""
    root = sources.policy.folder_of(path) or project_root(path) or path.parent
    if language is None or not name or found.is_own or not path.is_relative_to(root):
        return ""
    if language.id == "python":
        parts = list(path.relative_to(root).with_suffix("").parts)
        # A folder that is no package, such as src, is no part of a module's name.
        while len(parts) > 1 and not (root / Path(*parts[:1]) / "__init__.py").is_file():
            root, parts = root / parts[0], parts[1:]
        parts = parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts
        return f"Begin with `from {'.'.join(parts)} import {name}`."
    if language.id in ("javascript", "typescript", "tsx"):
        relative = PurePosixPath(Path(os.path.relpath(path, found.path.parent)).as_posix())
        source = str(relative.with_suffix(""))
        source = source if source.startswith(".") else f"./{source}"
        return f"Import {name} from {source!r}."
    if language.id == "go":
        package = re.search(r"^package\s+(\w+)", target.document.text, re.MULTILINE)
        return f"They are in package {package[1]}." if package else ""
    return ""


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    found = read(path, _LIMITS)
    return "" if isinstance(found, Refusal) else found.text
