"""Where no completion is offered, and why. Every refusal has a name of its own.

Looks at the document, the settings and the file policy: no model. Of the disk, only ignore
files and whether the document's own file may be written to are looked at.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import pathspec

from fimble.assist.settings import CompletionSettings
from fimble_context.syntax import Document
from fimble_context.workspace import Policy, has_private_key

__all__ = [
    "MAX_DOCUMENT_BYTES",
    "Refusal",
    "RefusalName",
    "confidence_refusal",
    "file_refusal",
    "refusal",
]

#: Larger documents are data, not code that anybody edits by hand.
MAX_DOCUMENT_BYTES = 2_000_000
#: Enough of a document to know a private key by.
_HEAD = 4096

RefusalName = Literal[
    "closed",
    "disabled",
    "snoozed",
    "language",
    "pattern",
    "secret",
    "ignored",
    "read-only",
    "size",
    "binary",
    "mid-word",
    "confidence",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no answer here: ``name`` for programs, ``reason`` for people."""

    name: RefusalName
    reason: str


def refusal(
    document: Document | None,
    settings: CompletionSettings,
    *,
    files: Policy | None = None,
    offset: int | None = None,
    snoozed: bool = False,
) -> Refusal | None:
    """The first reason not to complete in ``document``; None where there is none.

    ``document`` is None for one that the editor has not opened. ``files`` is the policy of
    the workspace, if there is one. ``offset`` is given where nobody asked for a completion:
    then the middle of a word is no place for one.
    """
    if document is None:
        return Refusal("closed", "The document is not open.")
    if not settings.enabled:
        return Refusal("disabled", "completion.enabled is false.")
    if snoozed:
        return Refusal("snoozed", "Completions are snoozed; fimble.snooze with 0 wakes them.")
    if document.language in settings.disabled_languages:
        return Refusal("language", f"completion.disabledLanguages has {document.language}.")
    pattern = _excluding_pattern(document.path, settings.exclude_patterns)
    if pattern is not None:
        return Refusal("pattern", f"completion.excludePatterns has {pattern}.")
    return (
        file_refusal(document, files)
        or _content_refusal(document.text)
        or _place_refusal(document.text, offset)
    )


def file_refusal(document: Document, files: Policy | None) -> Refusal | None:
    """Whether the document's file is one whose text must not get into a prompt."""
    if has_private_key(document.text[:_HEAD]):
        return Refusal("secret", "The document is a private key.")
    if not document.path:
        return None
    path = Path(document.path)
    refused = (files or Policy(())).refusal(path)
    if refused is not None and refused.reason == "secret":
        return Refusal("secret", f"{refused.detail or path.name} is a name of secret files.")
    if refused is not None and refused.reason in ("ignored", "excluded"):
        return Refusal("ignored", f"{path.name} is {refused}.")
    if path.exists() and not os.access(path, os.W_OK):
        return Refusal("read-only", f"{path.name} cannot be written to.")
    return None


def confidence_refusal(confidence: float | None, settings: CompletionSettings) -> Refusal | None:
    """Whether an answer is too unsure to be offered by itself.

    ``confidence`` is the mean probability of its tokens; None where the engine tells none.
    """
    if confidence is None or confidence >= settings.min_confidence:
        return None
    return Refusal(
        "confidence",
        f"The model was {confidence:.2f} sure of its answer, and completion.minConfidence is "
        f"{settings.min_confidence:g}; ask explicitly.",
    )


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


def _place_refusal(text: str, offset: int | None) -> Refusal | None:
    if offset is None or not 0 < offset < len(text):
        return None
    if _is_word(text[offset - 1]) and _is_word(text[offset]):
        return Refusal("mid-word", "The cursor is inside a word; ask explicitly.")
    return None


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


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
