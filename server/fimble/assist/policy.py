"""Where no completion is offered, and why. Every refusal has a name of its own.

Looks at the document and the settings only: no model, no disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import pathspec

from fimble.assist.settings import CompletionSettings
from fimble_context.document import Document

__all__ = ["MAX_DOCUMENT_BYTES", "Refusal", "RefusalName", "refusal"]

#: Larger documents are data, not code that anybody edits by hand.
MAX_DOCUMENT_BYTES = 2_000_000

RefusalName = Literal["closed", "disabled", "language", "pattern", "size", "binary"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer here: ``name`` for programs, ``reason`` for people."""

    name: RefusalName
    reason: str


def refusal(document: Document | None, settings: CompletionSettings) -> Refusal | None:
    """The first reason not to complete in ``document``; None where there is none.

    ``document`` is None for one that the editor has not opened.
    """
    if document is None:
        return Refusal("closed", "The document is not open.")
    if not settings.enabled:
        return Refusal("disabled", "completion.enabled is false.")
    if document.language in settings.disabled_languages:
        return Refusal("language", f"completion.disabledLanguages has {document.language}.")
    pattern = _excluding_pattern(document.path, settings.exclude_patterns)
    if pattern is not None:
        return Refusal("pattern", f"completion.excludePatterns has {pattern}.")
    return _content_refusal(document.text)


def _content_refusal(text: str) -> Refusal | None:
    # No character is longer than 4 bytes: most documents need no encoding to be measured.
    if len(text) * 4 > MAX_DOCUMENT_BYTES:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_DOCUMENT_BYTES:
            limit = MAX_DOCUMENT_BYTES // 1_000_000
            return Refusal("size", f"The document is larger than {limit} MB.")
    if "\0" in text:
        return Refusal("binary", "The document has NUL characters: it is not text.")
    return None


def _excluding_pattern(path: str, patterns: tuple[str, ...]) -> str | None:
    """The pattern that excludes ``path``, the last one that says anything about it."""
    if not path or not patterns:
        return None
    # Patterns are written for "/", and without a leading slash match at any depth.
    name = path.replace("\\", "/").lstrip("/")
    result = _spec(patterns).check_file(name)
    if not result.include or result.index is None:
        return None
    return patterns[result.index]


@lru_cache(maxsize=8)
def _spec(patterns: tuple[str, ...]) -> pathspec.GitIgnoreSpec:
    return pathspec.GitIgnoreSpec.from_lines(patterns)
