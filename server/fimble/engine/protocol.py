"""What travels between the engine and its clients: the OpenAI protocol, and what we add.

Plain data, shared by both sides. Additions are fields that other servers ignore:
``prompt`` may be a list of segments, ``priority`` and ``document`` steer the scheduler,
and ``usage`` says how many prompt tokens were reused and how many were computed.

A segment is either text or a control token by name. Text never becomes a control token,
whatever it spells. Knows nothing of HTTP, models or editors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "CLIENT_HEADER",
    "CONTROL_TOKENS",
    "PROTOCOL_VERSION",
    "ChatMessage",
    "CompletionChunk",
    "CompletionRequest",
    "Control",
    "FinishReason",
    "Priority",
    "Prompt",
    "Role",
    "Sampling",
    "Segment",
    "Text",
    "Timings",
    "TokenLogprob",
    "Usage",
    "prompt_from_json",
    "prompt_to_json",
]

#: Changes when a client and an engine of different releases would misunderstand each other.
PROTOCOL_VERSION = 1

#: Who asks, in the client's own words; the scheduler lets each have its turn.
CLIENT_HEADER = "x-fimble-client"

#: Control tokens by the names that segments use, with their spelling in Qwen2.5's vocabulary.
CONTROL_TOKENS = {
    "fim_prefix": "<|fim_prefix|>",
    "fim_middle": "<|fim_middle|>",
    "fim_suffix": "<|fim_suffix|>",
    "fim_pad": "<|fim_pad|>",
    "repo_name": "<|repo_name|>",
    "file_sep": "<|file_sep|>",
    "endoftext": "<|endoftext|>",
    "im_start": "<|im_start|>",
    "im_end": "<|im_end|>",
}

Priority = Literal["completion", "warmup", "chat"]
Role = Literal["system", "user", "assistant", "tool"]
FinishReason = Literal["stop", "length", "cancelled"]


@dataclass(frozen=True, slots=True)
class Text:
    """Text of the user's, tokenized as text whatever it spells."""

    text: str


@dataclass(frozen=True, slots=True)
class Control:
    """One control token, a key of ``CONTROL_TOKENS``."""

    name: str


Segment = Text | Control
#: Token ids, a string (tokenized as text), or segments.
Prompt = str | Sequence[int] | Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Sampling:
    """``temperature`` 0 is greedy. ``top_k`` 0 and ``top_p`` 1 leave all tokens in play.

    ``repetition_penalty`` divides the logits (multiplies negative ones) of tokens that the
    prompt or the answer has already; 1 changes nothing.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    repetition_penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a chat. No text in it becomes a control token."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One request to continue a prompt. Counts are tokens.

    With ``messages`` it is a chat instead, and the engine makes its prompt of them by the
    package's own template. A last message of the assistant's is the answer's beginning, which
    alone is healed. A chat has no log-probabilities.

    ``temperature``, ``top_p``, ``top_k`` and ``repetition_penalty`` may be None: what the
    package says.

    ``stop`` strings are not part of the answer. ``document`` names what the request is
    for: a newer completion of the same document replaces an older one.

    ``heal`` says that the prompt's last segment is text that a user is typing, whose end
    may be in the middle of a token. An engine that can (``ModelInfo.healing``) takes the
    last tokens back and generates them again so that they begin with the same bytes; the
    answer's text begins behind the typed text. Tokens inside the typed text are no part of
    ``usage.prompt_tokens`` then but of ``completion_tokens``; ``max_tokens``, stop strings
    and ``mean_logprob`` are about the tokens that reach beyond it.

    ``logprobs`` asks for the log-probability of each token, and of so many most likely ones
    in its place.

    ``provider`` is what is to compute; empty for what the model is loaded on, else for what
    the engine was started with, else for the package's own.
    """

    prompt: Prompt
    max_tokens: int = 64
    temperature: float | None = 0.0
    top_p: float | None = 1.0
    top_k: int | None = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    n: int = 1
    priority: Priority = "completion"
    document: str = ""
    model: str = ""
    heal: bool = False
    logprobs: int | None = None
    provider: str = ""
    messages: tuple[ChatMessage, ...] = ()
    repetition_penalty: float | None = 1.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens. ``prompt_tokens == reused_tokens + computed_tokens``."""

    prompt_tokens: int = 0
    reused_tokens: int = 0
    computed_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds spent waiting for a turn, on the prompt, and on the answer."""

    queued_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token of an answer: its text, natural logarithm of its probability, the most likely
    tokens in its place with theirs, and where in the answer's text it begins (code points).

    A part of a character is spelled ``bytes:\\xe6\\xbc``, as OpenAI's API does.
    """

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class CompletionChunk:
    """A piece of an answer as it comes; the last one has ``finish_reason``.

    ``index`` tells the candidates of one request (``n``) apart. Our engine's chunks all have
    ``usage`` and ``timings`` so far, and ``extra["mean_logprob"]`` once there are tokens, so
    that whoever ends a stream early knows them too, and ``extra["notice"]`` where the model is
    not as it was meant to be; of other servers only the last one has a
    ``usage`` of theirs, if any, and those before have what was counted on this side.
    """

    text: str
    index: int = 0
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    model: str = ""
    provider: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    logprobs: tuple[TokenLogprob, ...] = ()


def prompt_to_json(prompt: Prompt) -> str | list[int] | list[dict[str, str]]:
    """The form of a prompt in a request body."""
    if isinstance(prompt, str):
        return prompt
    parts: list[Any] = []
    for part in prompt:
        if isinstance(part, Text):
            parts.append({"text": part.text})
        elif isinstance(part, Control):
            parts.append({"control": part.name})
        else:
            parts.append(part)
    return parts


def prompt_from_json(value: Any) -> Prompt:
    """The prompt in a request body. Raises ValueError that says what is wrong with it."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise ValueError("prompt must be a string, a list of token ids or a list of segments")
    if all(isinstance(part, int) and not isinstance(part, bool) for part in value):
        return tuple(value)
    return tuple(_segment_from_json(part) for part in value)


def _segment_from_json(part: Any) -> Segment:
    if isinstance(part, dict) and len(part) == 1:
        if isinstance(part.get("text"), str):
            return Text(part["text"])
        if part.get("control") in CONTROL_TOKENS:
            return Control(part["control"])
    names = ", ".join(CONTROL_TOKENS)
    raise ValueError(
        'each segment of a prompt is {"text": "…"} or {"control": NAME}, '
        f"where NAME is one of {names}"
    )
