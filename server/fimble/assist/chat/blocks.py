"""The code blocks of an answer: language, text, and the place that each is meant for.

Fences as Markdown has them: one is closed by a fence of its own kind that is as long or
longer, alone on its line; a block that is never closed reaches to the end. Knows texts only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fimble.assist.chat.pieces import Piece, Target
from fimble_context.syntax import detect

__all__ = ["CodeBlock", "code_blocks"]

_OPENING = re.compile(r"^(?P<indent> {0,3})(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>.*?)[ \t]*$")
#: ``python src/app.py``, ``python:src/app.py``, ``python title="src/app.py"``
_INFO = re.compile(
    r"(?P<language>[^\s:{]*)[\s:{]*(?:(?:title|file|filename|path)=)?"
    r"[\"']?(?P<path>[^\s\"'}]*\.[^\s\"'}]+|[^\s\"'}=]*/[^\s\"'}]+)?"
)


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """``text`` has no final line end; ``path`` is what the answer named, or the target's; never one
    that leads out of a folder.

    ``start`` and ``end`` are code points in the answer's text, fences included. ``target`` is
    the place whose code it is likely to replace; None where that is not known. ``complete`` is
    False for a block that the answer breaks off in.
    """

    language: str
    text: str
    start: int
    end: int
    path: str = ""
    target: Target | None = None
    complete: bool = True


def code_blocks(answer: str, pieces: Sequence[Piece] = ()) -> list[CodeBlock]:
    """The blocks of an answer to a question with these pieces in its prompt."""
    blocks: list[CodeBlock] = []
    opened: tuple[int, str, str, str, list[str]] | None = None
    position = 0
    for line in answer.splitlines(keepends=True):
        start, position = position, position + len(line)
        bare = line.rstrip("\r\n")
        if opened is None:
            found = _OPENING.match(bare)
            if found and not (found["fence"][0] == "`" and "`" in found["info"]):
                opened = start, found["fence"], found["info"], found["indent"], []
        elif _closes(bare, opened[1]):
            blocks.append(_block(opened, position, True, pieces))
            opened = None
        else:
            opened[4].append(bare.removeprefix(opened[3]))
    if opened is not None:
        blocks.append(_block(opened, position, False, pieces))
    return blocks


def _closes(line: str, fence: str) -> bool:
    text = line.strip(" \t")
    indented = len(line) - len(line.lstrip(" ")) > 3
    return not indented and len(text) >= len(fence) and set(text) == {fence[0]}


def _block(
    opened: tuple[int, str, str, str, list[str]], end: int, complete: bool, pieces: Sequence[Piece]
) -> CodeBlock:
    start, _, info, _, lines = opened
    found = _INFO.match(info)
    language, path = (found["language"] or "", found["path"] or "") if found else ("", "")
    target = _target(language, path, pieces)
    return CodeBlock(
        language=language,
        text="\n".join(lines),
        start=start,
        end=end,
        path=target.path if target is not None and not path else _inside(path, target),
        target=target,
        complete=complete,
    )


def _inside(path: str, target: Target | None) -> str:
    """``path`` where it stays below a folder, or is that of a piece that the model was shown."""
    parts = path.replace("\\", "/").split("/")
    leads_out = ".." in parts or parts[0] in ("", "~") or ":" in path or not path.isprintable()
    return "" if leads_out and target is None else path


def _target(language: str, path: str, pieces: Sequence[Piece]) -> Target | None:
    """The one place that a block can be meant for: named, or the only one of its language."""
    placed = [piece for piece in pieces if piece.target is not None]
    if path:
        fitting = [piece for piece in placed if _same_file(path, piece.path)]
    else:
        fitting = [piece for piece in placed if _same_language(language, piece.language)]
    # "around" and "selection" are of one place; what the question was about says most.
    exact = [piece for piece in fitting if piece.kind == "around"] or [
        piece for piece in fitting if piece.kind == "selection"
    ]
    chosen = exact or fitting
    return chosen[0].target if len(chosen) == 1 else None


def _same_language(named: str, language: str) -> bool:
    known = detect(named.lower(), f"x.{named}")
    return not named or language == (known.id if known is not None else named.lower())


def _same_file(named: str, path: str) -> bool:
    named = named.replace("\\", "/").removeprefix("./")
    return bool(path) and (path == named or path.endswith(f"/{named}"))
