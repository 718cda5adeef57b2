"""Request bodies of the engine's service, checked field by field.

Turns JSON into requests; every refusal names the field. Knows nothing of HTTP or models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from fimble.engine.protocol import (
    ChatMessage,
    CompletionRequest,
    Priority,
    Prompt,
    prompt_from_json,
)
from fimble.errors import RequestRejected

__all__ = [
    "Tokenize",
    "parse_chat",
    "parse_completion",
    "parse_load",
    "parse_tokenize",
]

_MAX_STOPS = 32
_MAX_STOP_CHARS = 1000
_MAX_N = 16
_MAX_LOGPROBS = 20
_MAX_TOKENS = 1_000_000
#: Characters. More is no prompt's, and would keep a core busy for a minute.
_MAX_TOKENIZED = 4_000_000
#: Seeds and ids beyond this are typing errors, and would not fit the runtime's types.
_MAX_INT = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Tokenize:
    """Texts to count, and whether the ids are wanted too."""

    model: str
    texts: Sequence[str]
    ids: bool


def parse_completion(body: Any) -> tuple[CompletionRequest, bool]:
    """The request and whether it streams. Raises RequestRejected."""
    fields = _object(body)
    if "prompt" not in fields:
        raise _rejected("prompt is missing")
    try:
        prompt = prompt_from_json(fields["prompt"])
    except ValueError as error:
        raise _rejected(str(error)) from error
    request = replace(
        _request(fields, prompt, "completion", 16),
        heal=_bool(fields, "heal"),
        logprobs=_logprobs(fields),
    )
    return request, _bool(fields, "stream")


def parse_chat(body: Any) -> tuple[list[ChatMessage], CompletionRequest, bool]:
    """The messages, the request without its prompt, and whether it streams.

    Sampling that the body leaves open is None: the package's.
    """
    fields = _object(body)
    listed = fields.get("messages")
    if not isinstance(listed, list) or not listed:
        raise _rejected("messages must be a list of at least one message")
    messages = [_message(each) for each in listed]
    default = 1024
    if "max_completion_tokens" in fields and "max_tokens" not in fields:
        fields = {**fields, "max_tokens": fields["max_completion_tokens"]}
    request = _request(fields, "", "chat", default)
    heal = _bool(fields, "heal")
    if heal and messages[-1].role != "assistant":
        raise _rejected("heal needs a last message of the assistant's, to go on with")
    request = replace(
        request,
        heal=heal,
        temperature=None if fields.get("temperature") is None else request.temperature,
        top_p=None if fields.get("top_p") is None else request.top_p,
        top_k=None if fields.get("top_k") is None else request.top_k,
        repetition_penalty=(
            None if fields.get("repetition_penalty") is None else request.repetition_penalty
        ),
    )
    return messages, request, _bool(fields, "stream")


def parse_tokenize(body: Any) -> Tokenize:
    """``{"texts": [...], "ids": false, "model": ""}``."""
    fields = _object(body)
    texts = fields.get("texts")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _rejected("texts must be a list of strings")
    if sum(map(len, texts)) > _MAX_TOKENIZED:
        raise _rejected(f"texts may have {_MAX_TOKENIZED} characters altogether")
    return Tokenize(_string(fields, "model"), texts, _bool(fields, "ids"))


def parse_load(body: Any) -> tuple[str, str]:
    """Model and provider of ``{"model": "", "provider": ""}``."""
    fields = _object(body)
    return _string(fields, "model"), _string(fields, "provider")


def _request(
    fields: Mapping[str, Any], prompt: Prompt, priority: Priority, max_tokens: int
) -> CompletionRequest:
    named = fields.get("priority", priority)
    if named not in get_args(Priority):
        raise _rejected(f"priority must be one of {', '.join(get_args(Priority))}")
    return CompletionRequest(
        prompt=prompt,
        max_tokens=_integer(fields, "max_tokens", max_tokens, 0, _MAX_TOKENS),
        temperature=_number(fields, "temperature", 0.0, 0.0, 100.0),
        top_p=_number(fields, "top_p", 1.0, 0.0, 1.0),
        top_k=_integer(fields, "top_k", 0, 0, _MAX_INT),
        repetition_penalty=_number(fields, "repetition_penalty", 1.0, 0.01, 100.0),
        seed=_seed(fields),
        stop=_stops(fields.get("stop")),
        n=_integer(fields, "n", 1, 1, _MAX_N),
        priority=named,
        document=_string(fields, "document"),
        model=_string(fields, "model"),
        provider=_string(fields, "provider"),
    )


def _message(value: Any) -> ChatMessage:
    if not isinstance(value, dict):
        raise _rejected("each message must be an object with role and content")
    role = value.get("role")
    content = value.get("content")
    if role == "developer":
        role = "system"
    if role not in ("system", "user", "assistant", "tool"):
        raise _rejected("a message's role must be system, user, assistant or tool")
    if isinstance(content, list):
        # OpenAI's content parts, of which we take text.
        parts = [part.get("text") if isinstance(part, dict) else None for part in content]
        if not all(isinstance(part, str) for part in parts):
            raise _rejected("a message's content parts must all be text")
        content = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str):
        raise _rejected("a message's content must be a string")
    return ChatMessage(role, content)


def _object(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise _rejected("the body must be a JSON object")
    return body


def _seed(fields: Mapping[str, Any]) -> int | None:
    if fields.get("seed") is None:
        return None
    return _integer(fields, "seed", 0, -_MAX_INT, _MAX_INT)


def _logprobs(fields: Mapping[str, Any]) -> int | None:
    if fields.get("logprobs") is None:
        return None
    return _integer(fields, "logprobs", 0, 0, _MAX_LOGPROBS)


def _stops(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise _rejected("stop must be a string or a list of strings")
    if len(listed) > _MAX_STOPS or any(len(each) > _MAX_STOP_CHARS for each in listed):
        raise _rejected(
            f"stop takes at most {_MAX_STOPS} strings of at most {_MAX_STOP_CHARS} characters"
        )
    return tuple(each for each in listed if each)


def _integer(fields: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise _rejected(f"{name} must be a whole number from {low} to {high}")
    return value


def _number(fields: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = fields.get(name)
    if value is None:
        return default
    # The comparison also refuses NaN.
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise _rejected(f"{name} must be a number from {low:g} to {high:g}")
    return float(value)


def _bool(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise _rejected(f"{name} must be true or false")
    return value


def _string(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _rejected(f"{name} must be a string")
    return value


def _rejected(problem: str) -> RequestRejected:
    return RequestRejected(
        f"The request is malformed: {problem}.", next_step="Correct the request."
    )
