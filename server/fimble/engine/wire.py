"""JSON forms of requests, answers and errors, for whoever asks an engine.

Pure functions between ``protocol``'s data and request bodies; no connection is made here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from fimble import errors
from fimble.engine.base import ModelInfo
from fimble.engine.protocol import (
    CompletionChunk,
    CompletionRequest,
    Timings,
    TokenLogprob,
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
    "logprobs_to_json",
    "model_info_from_json",
    "model_info_to_json",
    "usage_to_json",
]


def completion_body(request: CompletionRequest, *, stream: bool) -> dict[str, Any]:
    """The body of ``POST /v1/completions``, or of ``/v1/chat/completions`` for messages."""
    body: dict[str, Any] = {
        "stream": stream,
        "max_tokens": request.max_tokens,
        "n": request.n,
        "priority": request.priority,
    }
    if request.messages:
        body["messages"] = [asdict(message) for message in request.messages]
    else:
        body["prompt"] = prompt_to_json(request.prompt)
    # A package punishes repetition in chats only, so no other request need say anything of it.
    more = ("repetition_penalty",) if request.messages else ()
    for name in ("temperature", "top_p", "top_k", *more):
        if getattr(request, name) is not None:
            body[name] = getattr(request, name)
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    for name in ("document", "model", "provider"):
        if getattr(request, name):
            body[name] = getattr(request, name)
    if request.heal:
        body["heal"] = True
    if request.logprobs is not None:
        body["logprobs"] = request.logprobs
    return body


def chunks_from_json(data: Mapping[str, Any]) -> list[CompletionChunk]:
    """The pieces in one server-sent event, one a choice.

    Takes what other servers leave out, too: they may have no usage, or send it last, in an
    event without choices.
    """
    usage = data.get("usage")
    shared = CompletionChunk(
        "",
        usage=None if usage is None else _usage_from_json(usage),
        timings=_timings_from_json(data.get("timings")),
        model=data.get("model") or "",
        provider=data.get("provider") or "",
        extra=data.get("extra") or {},
    )
    choices = data.get("choices") or []
    if not choices and shared.usage is not None:
        return [shared]
    return [
        replace(
            shared,
            text=choice.get("text") or (choice.get("delta") or {}).get("content") or "",
            index=choice.get("index", 0),
            finish_reason=choice.get("finish_reason"),
            logprobs=_logprobs_from_json(choice.get("logprobs")),
        )
        for choice in choices
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
    prompt = data.get("prompt_tokens") or 0
    details = data.get("prompt_tokens_details") or {}
    reused = data.get("reused_tokens", details.get("cached_tokens")) or 0
    return Usage(
        prompt_tokens=prompt,
        reused_tokens=reused,
        computed_tokens=data.get("computed_tokens", prompt - reused),
        completion_tokens=data.get("completion_tokens") or 0,
    )


def _timings_from_json(data: Any) -> Timings | None:
    # Another server's timings are other numbers.
    if not isinstance(data, dict) or not {each.name for each in fields(Timings)} <= set(data):
        return None
    return Timings(**{each.name: data[each.name] for each in fields(Timings)})


def logprobs_to_json(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    """OpenAI's ``logprobs`` of a completion's choice: four lists of the same length."""
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [round(token.logprob, 5) for token in tokens],
        "top_logprobs": [
            {text: round(logprob, 5) for text, logprob in token.top} for token in tokens
        ],
        "text_offset": [token.offset for token in tokens],
    }


def _logprobs_from_json(data: Any) -> tuple[TokenLogprob, ...]:
    if not isinstance(data, dict) or not isinstance(data.get("tokens"), list):
        return ()
    count = len(data["tokens"])
    tops = data.get("top_logprobs") or [None] * count
    offsets = data.get("text_offset") or [0] * count
    values = data.get("token_logprobs") or [0.0] * count
    return tuple(
        TokenLogprob(text, value or 0.0, tuple((top or {}).items()), offset)
        for text, value, top, offset in zip(data["tokens"], values, tops, offsets, strict=False)
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
        "healing": info.healing,
        "notice": info.notice,
        "capabilities": dict(info.capabilities),
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
        healing=data.get("healing", False),
        notice=data.get("notice", ""),
        capabilities=data.get("capabilities") or {},
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
