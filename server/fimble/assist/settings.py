"""What a user may choose about completions, chat and edits. Plain data, from wherever it comes.

A field's metadata holds its limits, so that whoever reads settings from a user (the language
server, the command line) checks them against the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["ChatSettings", "CompletionSettings", "EditSettings"]


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """``max_tokens`` bounds an answer, ``max_prompt_tokens`` a conversation with its context.

    Both count tokens; the model's window bounds them too.
    """

    max_tokens: int = field(default=1024, metadata={"minimum": 1, "maximum": 32_768})
    max_prompt_tokens: int = field(default=8192, metadata={"minimum": 512, "maximum": 131_072})


@dataclass(frozen=True, slots=True)
class CompletionSettings:
    """``max_tokens`` bounds an answer, ``max_prompt_tokens`` a prompt; both count tokens.

    The prompt is also bounded by the model's window. ``multiline`` says whether an answer
    may have several lines: where syntax calls for them, wherever nothing stands right of the
    cursor, or nowhere. ``latency_ms`` is how long a suggestion may take where the model
    holds the beginning of its prompt; prompts and answers are as long as that allows.
    ``candidates`` is how many suggestions an explicit request gets. ``min_confidence`` is the
    least mean probability of a token; what is less certain is not offered by itself.
    ``ahead`` lets the next suggestion be made before it is asked for.
    ``disabled_languages`` are language ids of the editor;
    ``exclude_patterns`` are patterns as in a .gitignore file at the root of the file system:
    without a slash in front they match at any depth.
    """

    enabled: bool = True
    multiline: Literal["auto", "always", "never"] = "auto"
    max_tokens: int = field(default=64, metadata={"minimum": 1, "maximum": 1024})
    max_prompt_tokens: int = field(default=2048, metadata={"minimum": 64, "maximum": 131_072})
    latency_ms: int = field(default=300, metadata={"minimum": 20, "maximum": 10_000})
    candidates: int = field(default=3, metadata={"minimum": 1, "maximum": 8})
    min_confidence: float = field(default=0.6, metadata={"minimum": 0.0, "maximum": 1.0})
    ahead: bool = True
    disabled_languages: tuple[str, ...] = ()
    exclude_patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EditSettings:
    """``max_tokens`` bounds an answer, ``max_prompt_tokens`` a prompt; both count tokens.

    ``confirm`` lets an editor that can show a change before it is made do so.
    """

    max_tokens: int = field(default=2048, metadata={"minimum": 16, "maximum": 32_768})
    max_prompt_tokens: int = field(default=4096, metadata={"minimum": 512, "maximum": 131_072})
    confirm: bool = True
