"""Answers of the engine's service in OpenAI's two shapes, streamed or whole.

Formats what a job delivers; knows nothing of HTTP, scheduling or models.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal

from fimble.engine.protocol import CompletionChunk, TokenLogprob
from fimble.engine.wire import logprobs_to_json, usage_to_json

__all__ = ["Shape", "Style", "event_line"]

Style = Literal["completion", "chat"]


class Shape:
    """One answer's envelope: the same id and time in each of its pieces."""

    def __init__(self, style: Style) -> None:
        self._style = style
        #: The model's name for pieces that do not have it themselves.
        self.model = ""
        self._id = ("cmpl-" if style == "completion" else "chatcmpl-") + secrets.token_hex(12)
        self._created = int(time.time())
        self._begun: set[int] = set()

    def piece(self, chunk: CompletionChunk) -> dict[str, Any]:
        """One event of a stream."""
        choice: dict[str, Any] = {
            "index": chunk.index,
            "finish_reason": chunk.finish_reason,
            "logprobs": logprobs_to_json(chunk.logprobs) if chunk.logprobs else None,
        }
        if self._style == "completion":
            choice["text"] = chunk.text
        else:
            role = {} if chunk.index in self._begun else {"role": "assistant"}
            self._begun.add(chunk.index)
            choice["delta"] = {**role, "content": chunk.text}
        kind = "text_completion" if self._style == "completion" else "chat.completion.chunk"
        return self._envelope(kind, [choice], chunk)

    def whole(self, chunks: Sequence[CompletionChunk]) -> dict[str, Any]:
        """The answer in one piece, from all chunks in the order they came."""
        texts: dict[int, str] = {}
        reasons: dict[int, str] = {}
        tokens: dict[int, list[TokenLogprob]] = {}
        for chunk in chunks:
            tokens.setdefault(chunk.index, []).extend(chunk.logprobs)
            texts[chunk.index] = texts.get(chunk.index, "") + chunk.text
            if chunk.finish_reason is not None:
                reasons[chunk.index] = chunk.finish_reason
        choices = []
        for index, text in sorted(texts.items()):
            choice: dict[str, Any] = {
                "index": index,
                "finish_reason": reasons.get(index, "cancelled"),
                "logprobs": logprobs_to_json(tokens[index]) if tokens[index] else None,
            }
            if self._style == "completion":
                choice["text"] = text
            else:
                choice["message"] = {"role": "assistant", "content": text}
            choices.append(choice)
        kind = "text_completion" if self._style == "completion" else "chat.completion"
        return self._envelope(kind, choices, chunks[-1])

    def _envelope(
        self, kind: str, choices: list[dict[str, Any]], last: CompletionChunk
    ) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": last.model or self.model,
            "choices": choices,
            "usage": None if last.usage is None else usage_to_json(last.usage),
            "timings": None if last.timings is None else asdict(last.timings),
            "provider": last.provider,
            "extra": last.extra,
        }


def event_line(data: Any) -> str:
    """A server-sent event. ASCII only: some readers split lines at U+2028 and the like."""
    return f"data: {json.dumps(data)}\n\n"
