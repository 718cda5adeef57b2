"""A completion in a file on disk, at a line and a column: what the command line asks for.

Lines and columns are one-based and count characters (code points), as editors show them.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fimble.assist.completion import CompletionService, Suggestion
from fimble.assist.policy import MAX_DOCUMENT_BYTES, file_refusal
from fimble.assist.prompt import own_text_only
from fimble.assist.settings import CompletionSettings
from fimble.assist.workspace import assemble_in, open_workspace, project_root
from fimble.engine.base import Engine
from fimble.errors import DocumentError, UsageError
from fimble_context.assembly import Workspace
from fimble_context.syntax import Document
from fimble_context.workspace import Policy

__all__ = [
    "CompletionResult",
    "complete_in_file",
    "indexed_workspace",
    "offset_of_place",
    "parse_place",
    "read_document",
    "refuse_secrets",
]

#: A NUL this early in a file says that it is no text; the same test as git's.
_SNIFFED_BYTES = 8192
#: What is indexed by then is taken into account; the next run finds more.
_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CompletionResult:
    """A suggestion with the place it is for: one-based line and column on both ends."""

    suggestion: Suggestion
    start: tuple[int, int]
    end: tuple[int, int]
    total_ms: float

    def to_json(self, *, explain: bool = False) -> dict[str, Any]:
        """The result as JSON; ``explain`` adds what the prompt was made of."""
        suggestion = self.suggestion
        timings = suggestion.timings
        result: dict[str, Any] = {
            "text": suggestion.text,
            "range": {
                "start": {"line": self.start[0], "column": self.start[1]},
                "end": {"line": self.end[0], "column": self.end[1]},
            },
            "usage": asdict(suggestion.usage),
            "timings_ms": {
                "queued": round(timings.queued_ms, 1),
                "prefill": round(timings.prefill_ms, 1),
                "decode": round(timings.decode_ms, 1),
                "total": round(self.total_ms, 1),
            },
            "model": suggestion.model,
            "provider": suggestion.provider,
        }
        if explain:
            context = suggestion.context
            result["sections"] = [asdict(section) for section in context.sections]
            result["typed"] = suggestion.typed
            result["layout"] = suggestion.layout
            result["budget_tokens"] = context.budget_tokens
            result["left_out"] = [asdict(item) for item in context.left_out]
        return result


def parse_place(text: str) -> tuple[Path, int, int]:
    """``FILE:LINE:COL`` → the path, the line and the column. Raises ``UsageError``.

    The file's name may have colons itself, as Windows paths have.
    """
    parts = text.rsplit(":", 2)
    if len(parts) == 3 and parts[0]:
        name, line, column = parts
        if line.isdecimal() and column.isdecimal():
            return Path(name), int(line), int(column)
    raise UsageError(
        f"“{text}” is not a place in a file.",
        next_step="Write FILE:LINE:COL with numbers that start at 1, such as app.py:12:5.",
    )


async def complete_in_file(
    engine: Engine, path: Path, line: int, column: int, settings: CompletionSettings
) -> CompletionResult:
    """What would be inserted at ``line`` and ``column`` of the file ``path``.

    Other files of the project that it is in are taken into account, as far as they are
    indexed within some seconds. Raises ``DocumentError`` for a file or position that cannot
    be used, and what ``CompletionService.complete`` raises.
    """
    path = path.absolute()
    document = read_document(path)
    offset = offset_of_place(document, path, line, column)
    root = project_root(path)
    policy = Policy(() if root is None else (root,))
    refuse_secrets(path, document, policy)
    settings = replace(settings, min_confidence=0.0)
    workspace = await asyncio.to_thread(indexed_workspace, root, path, document) if root else None
    try:
        assemble = own_text_only if workspace is None else assemble_in(workspace)
        started = time.perf_counter()
        service = CompletionService(engine, assemble)
        suggestion = await service.complete(document, offset, settings, name=str(path))
        service.end_all()
    finally:
        if workspace is not None:
            workspace.close()
    total_ms = (time.perf_counter() - started) * 1000
    return CompletionResult(
        suggestion,
        _place(document, suggestion.start),
        _place(document, suggestion.end),
        total_ms,
    )


def read_document(path: Path) -> Document:
    """The text file ``path``. Raises ``DocumentError`` for anything else."""
    try:
        if path.is_dir():
            raise DocumentError(f"{path} is a folder.", next_step="Name a file in it.")
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise _too_large(path)
        data = path.read_bytes()
    except OSError as error:
        cause = error.strerror or type(error).__name__
        raise DocumentError(f"{path} cannot be read: {cause}.") from error
    if b"\0" in data[:_SNIFFED_BYTES]:
        raise DocumentError(f"{path} is a binary file.", next_step="Name a text file.")
    try:
        # The byte order mark is no character of the first line.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError(
            f"{path} is not UTF-8 text: byte {error.start} cannot be decoded.",
            next_step="Save the file as UTF-8.",
        ) from error
    return Document(text, path=str(path))


def indexed_workspace(root: Path, path: Path, document: Document) -> Workspace:
    """The project's workspace, indexed as far as ``_PATIENCE_SECONDS`` allow."""
    workspace = open_workspace([root])
    workspace.opened(path, document)
    workspace.start()
    workspace.index.wait(_PATIENCE_SECONDS)
    return workspace


def refuse_secrets(path: Path, document: Document, policy: Policy) -> None:
    """Raises ``DocumentError`` for a file whose text no prompt may hold."""
    refused = file_refusal(document, policy)
    if refused is not None and refused.name in ("secret", "ignored"):
        raise DocumentError(
            f"No prompt is made of {path}: {refused.reason}",
            next_step="Rename the file, or change the ignore file, if its text may be used.",
        )


def _too_large(path: Path) -> DocumentError:
    return DocumentError(
        f"{path} is larger than {MAX_DOCUMENT_BYTES // 1_000_000} MB.",
        next_step="fimble completes in source files; this looks like data.",
    )


def offset_of_place(document: Document, path: Path, line: int, column: int) -> int:
    if not 1 <= line <= document.line_count:
        raise DocumentError(
            f"{path} has no line {line}: its lines are 1 to {document.line_count}.",
            next_step="Name a line of the file.",
        )
    last = len(document.line_text(line - 1)) + 1
    if not 1 <= column <= last:
        raise DocumentError(
            f"Line {line} of {path} has no column {column}: its columns are 1 to {last}.",
            next_step="Name a column of that line; the last one is behind its last character.",
        )
    return document.offset_at(line - 1, column - 1, "utf-32")


def _place(document: Document, offset: int) -> tuple[int, int]:
    position = document.position_at(offset, "utf-32")
    return position.line + 1, position.column + 1
