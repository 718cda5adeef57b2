"""JSON forms of requests, answers and errors, for whoever asks an engine.

Pure functions between ``protocol``'s data and request bodies; no connection is made here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fimble import errors
from fimble.engine.base import ModelInfo
from fimble.engine.protocol import (
    CompletionChunk,
    CompletionRequest,
    Timings,
    Usage,
    prompt_to_json,
)
from fimble.errors import EngineError, FimbleError, GenerationFailed, RequestRejected

__all__ = [
    "chunks_from_json",
    "completion_body",
    "error_code",
    "error_from_json",
    "error_to_json",
    "model_info_from_json",
    "model_info_to_json",
    "usage_to_json",
]


def completion_body(request: CompletionRequest, *, stream: bool) -> dict[str, Any]:
    """The body of ``POST /v1/completions``."""
    body: dict[str, Any] = {
        "prompt": prompt_to_json(request.prompt),
        "stream": stream,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "top_k": request.top_k,
        "n": request.n,
        "priority": request.priority,
    }
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.document:
        body["document"] = request.document
    if request.model:
        body["model"] = request.model
    return body


def chunks_from_json(data: Mapping[str, Any]) -> list[CompletionChunk]:
    """The pieces in one server-sent event, one a choice."""
    usage = data.get("usage")
    timings = data.get("timings")
    return [
        CompletionChunk(
            text=choice["text"],
            index=choice["index"],
            finish_reason=choice.get("finish_reason"),
            usage=None if usage is None else _usage_from_json(usage),
            timings=None if timings is None else Timings(**timings),
            model=data.get("model", ""),
            provider=data.get("provider", ""),
            extra=data.get("extra") or {},
        )
        for choice in data["choices"]
    ]


def usage_to_json(usage: Usage) -> dict[str, Any]:
    """OpenAI's usage object with our two fields more."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.reused_tokens},
        "reused_tokens": usage.reused_tokens,
        "computed_tokens": usage.computed_tokens,
    }


def _usage_from_json(data: Mapping[str, Any]) -> Usage:
    return Usage(
        prompt_tokens=data["prompt_tokens"],
        reused_tokens=data["reused_tokens"],
        computed_tokens=data["computed_tokens"],
        completion_tokens=data["completion_tokens"],
    )


def model_info_to_json(info: ModelInfo) -> dict[str, Any]:
    """A model as ``/v1/models``, ``/load`` and ``/health`` show it."""
    return {
        "id": info.name,
        "object": "model",
        "owned_by": "local",
        "name": info.name,
        "window": info.window,
        "provider": info.provider,
        "fim": info.fim,
        "continuation": info.continuation,
        "prefill_tokens_per_s": info.prefill_tokens_per_s,
        "decode_tokens_per_s": info.decode_tokens_per_s,
    }


def model_info_from_json(data: Mapping[str, Any]) -> ModelInfo:
    """The inverse of ``model_info_to_json``."""
    return ModelInfo(
        name=data["name"],
        window=data["window"],
        provider=data["provider"],
        fim=data["fim"],
        continuation=data["continuation"],
        prefill_tokens_per_s=data["prefill_tokens_per_s"],
        decode_tokens_per_s=data["decode_tokens_per_s"],
    )


def error_code(error: FimbleError) -> str:
    """``ModelNotFound`` → ``model_not_found``: the ``code`` of an error answer."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


def error_to_json(error: FimbleError, *, code: str = "", kind: str = "") -> dict[str, Any]:
    """OpenAI's error object, with the next step beside the message."""
    return {
        "error": {
            "message": error.message,
            "type": kind or "server_error",
            "code": code or error_code(error),
            "next_step": error.next_step,
        }
    }


_BY_CODE = {
    error_code(kind("")): kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, FimbleError)
}


def error_from_json(status: int, data: Any) -> FimbleError:
    """The error that an answer with that HTTP status and body stands for."""
    said = data.get("error") if isinstance(data, dict) else None
    if not isinstance(said, dict):
        said = {}
    message = str(said.get("message") or f"The engine answered with HTTP status {status}.")
    fallback: type[EngineError] = RequestRejected if 400 <= status < 500 else GenerationFailed
    kind = _BY_CODE.get(str(said.get("code")), fallback)
    return kind(message, next_step=str(said.get("next_step") or ""))
