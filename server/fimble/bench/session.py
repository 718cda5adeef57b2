"""Editing sessions as data: what somebody types into real files, and when.

Drawn with a seed: whole functions of real code, taken out of their files, are typed again key
by key, with pauses, typing errors that are deleted again, and in the middle a jump to the
file's imports, where one is written, and back. Knows nothing of who helps with it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

__all__ = ["Key", "Passage", "Session", "draw_sessions", "keys_for"]

_INDENT = 4
_LEAST_ABOVE = 10  # lines above what is typed: with fewer there is nothing to go by
_FILE_CHARS = range(2_000, 60_000)
_TYPO = 0.02
_LONG_THOUGHT = 0.15
#: Medians in seconds and the spreads of their logarithms.
_INTERVAL, _INTERVAL_SPREAD = 0.17, 0.35
_AFTER_WORD, _AFTER_WORD_SPREAD = 0.08, 0.5
_AT_LINE_END, _AT_LINE_END_SPREAD = 0.4, 0.5
_BEFORE_LINE, _BEFORE_LINE_SPREAD = 0.5, 0.5
_THOUGHT_SECONDS = (1.5, 3.0)
_LOOK_SECONDS = 3.0
_JUMP_SECONDS = 2.0
_ERROR_SEEN_SECONDS = 0.3
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``at`` is how many characters of the passage stand there when it is pressed.

    ``pause`` is the seconds since the key before. ``text`` is typed; where it is empty, the
    last ``delete`` characters go. ``wrong`` says how many characters of ``text``, at its end,
    are not the passage's: they are deleted by a later key.
    """

    at: int
    pause: float
    text: str = ""
    delete: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True)
class Passage:
    """Text to be typed at ``offset`` (code points) of the file as the passage before left it.

    ``pause`` is how long the cursor is there before the first key.
    """

    offset: int
    text: str
    keys: tuple[Key, ...]
    pause: float = 0.0


@dataclass(frozen=True, slots=True)
class Session:
    """One file: ``text`` is what it has at first, ``whole`` what it has in the end."""

    file: Path
    text: str
    whole: str
    passages: tuple[Passage, ...]

    @property
    def keystrokes(self) -> int:
        """Keys that are pressed where no suggestion is accepted."""
        return sum(len(passage.keys) for passage in self.passages)

    def at_pace(self, times: float) -> Session:
        """The same session with every pause so many times as long."""
        slower = [
            replace(
                passage,
                pause=passage.pause * times,
                keys=tuple(replace(key, pause=key.pause * times) for key in passage.keys),
            )
            for passage in self.passages
        ]
        return replace(self, passages=tuple(slower))


def draw_sessions(folders: Sequence[Path], count: int, keystrokes: int, seed: int) -> list[Session]:
    """``count`` sessions of at most ``keystrokes`` keys each, every one in another file.

    Fewer where the folders have no more files that do.
    """
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    Random(seed).shuffle(files)
    sessions: list[Session] = []
    for file in files:
        if len(sessions) == count:
            break
        session = _draw(file, keystrokes, Random(f"{seed} {file.parent.name}/{file.name}"))
        if session is not None:
            sessions.append(session)
    return sessions


def _draw(file: Path, keystrokes: int, random: Random) -> Session | None:
    """A session in ``file``; None where it has no function that is long enough."""
    whole = file.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
    if len(whole) not in _FILE_CHARS or not whole.isascii():
        return None
    try:
        tree = ast.parse(whole)
    except SyntaxError:
        return None
    lines = whole.split("\n")
    places = [place for place in _functions(tree, lines) if place[0] >= _LEAST_ABOVE]
    random.shuffle(places)
    brought = _an_import(tree, lines, random)
    for first, last in places:
        for end in range(last, first + 2, -1):
            session = _session(file, lines, (first, end), brought, random)
            if session.keystrokes <= keystrokes:
                if session.keystrokes >= keystrokes * 0.7:
                    return session
                break
    return None


def _functions(tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, int]]:
    """Line ranges of functions without docstrings, comments and longer strings."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        body = lines[first:last]
        if ast.get_docstring(node) is None and not any(
            "#" in line or '"""' in line for line in body
        ):
            yield first, last


def _an_import(tree: ast.Module, lines: list[str], random: Random) -> int | None:
    """The line of an import that can be written later; None where there is none."""
    found = [
        node.lineno - 1
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and node.lineno == node.end_lineno
        and node.lineno > 1
        and "__future__" not in lines[node.lineno - 1]
        and len(lines[node.lineno - 1]) <= 60
        and not lines[node.lineno - 2].rstrip().endswith(("\\", ",", "("))
    ]
    return random.choice(found) if found else None


def _session(
    file: Path, lines: list[str], typed: tuple[int, int], brought: int | None, random: Random
) -> Session:
    """The lines ``typed`` (first, end) are typed, with a jump to write the import ``brought``."""
    first, end = typed
    if brought is not None and brought >= first:
        brought = None
    kept = [
        line for number, line in enumerate(lines) if not first <= number < end and number != brought
    ]
    above = first - (brought is not None)
    offset = len("\n".join(kept[:above]))
    middle = first + (end - first) // 2 if brought is not None else end
    passages = [_passage(offset, _lines_of(lines, first, middle), _LOOK_SECONDS, random)]
    if brought is not None:
        before = len("\n".join(kept[:brought]))
        extra = _lines_of(lines, brought, brought + 1)
        passages.append(_passage(before, extra, _JUMP_SECONDS, random))
        back = offset + len(passages[0].text) + len(extra)
        passages.append(_passage(back, _lines_of(lines, middle, end), _JUMP_SECONDS, random))
    return Session(file, "\n".join(kept), "\n".join(lines), tuple(passages))


def _lines_of(lines: list[str], first: int, end: int) -> str:
    return "".join(f"\n{line.rstrip()}" for line in lines[first:end])


def _passage(offset: int, text: str, pause: float, random: Random) -> Passage:
    return Passage(offset, text, tuple(keys_for(text, random)), pause)


def keys_for(text: str, random: Random) -> Iterator[Key]:
    """The keys that type ``text``. A line end comes with the indentation that an editor adds."""
    at = 0
    indent = 0
    while at < len(text):
        pause = _log_normal(random, _INTERVAL, _INTERVAL_SPREAD)
        if text[at] == "\n":
            pause += _log_normal(random, _AT_LINE_END, _AT_LINE_END_SPREAD)
            line = text[at + 1 :].partition("\n")[0]
            wanted = len(line) - len(line.lstrip(" ")) if line.strip() else 0
            stroke = text[at : at + 1 + wanted]
            # Editors keep the indentation; where a block ends, the user takes some away.
            surplus = (
                max(0, indent - wanted) if line.strip() and indent - wanted < 3 * _INDENT else 0
            )
            yield Key(at, pause, stroke + " " * surplus, wrong=surplus)
            at += len(stroke)
            if surplus:
                yield Key(at, _log_normal(random, _ERROR_SEEN_SECONDS, 0.3), delete=surplus)
            indent = wanted if line.strip() else indent
            continue
        if at and text[at - 1] in " \n":
            pause += _thinking(text, at, random)
        elif not text[at].isalnum():
            pause += _log_normal(random, _AFTER_WORD, _AFTER_WORD_SPREAD)
        if text[at].isalpha() and random.random() < _TYPO:
            yield Key(at, pause, random.choice(_LETTERS.replace(text[at].lower(), "")), wrong=1)
            yield Key(at, _log_normal(random, _ERROR_SEEN_SECONDS, 0.3), delete=1)
            pause = _log_normal(random, _INTERVAL, _INTERVAL_SPREAD)
        yield Key(at, pause, text[at])
        at += 1


def _thinking(text: str, at: int, random: Random) -> float:
    """The pause before a word, in seconds: longer where a line begins."""
    if text[:at].rpartition("\n")[2].strip():
        return _log_normal(random, _AFTER_WORD, _AFTER_WORD_SPREAD)
    pause = _log_normal(random, _BEFORE_LINE, _BEFORE_LINE_SPREAD)
    return pause + (random.uniform(*_THOUGHT_SECONDS) if random.random() < _LONG_THOUGHT else 0.0)


def _log_normal(random: Random, median: float, spread: float) -> float:
    return random.lognormvariate(math.log(median), spread)
