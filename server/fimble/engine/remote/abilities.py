"""What a server accepts, found out by asking it: three requests for one token each, at most.

No text of the user's is in them. What a server says of its model is believed within reason; what
it does with a prompt is measured by the tokens it counts.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from fimble.engine.protocol import CONTROL_TOKENS, Control, Text
from fimble.engine.remote.endpoint import Endpoint
from fimble.engine.remote.prompts import PromptForm, prompt_body
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import ModelNotFound

__all__ = ["Abilities", "Ask", "find_out"]

logger = logging.getLogger(__name__)

#: Sends a request and returns the answer's object; None where the server refuses it (4xx).
#: GET without a body. Raises EngineError where the server does not answer.
Ask = Callable[[str, "dict[str, Any] | None"], Awaitable["dict[str, Any] | None"]]

#: Tokens. What a server has that does not say how long a prompt may be.
UNKNOWN_WINDOW = 4096
#: Tokens, and characters of a model's name. What goes beyond is not meant.
_LARGEST_WINDOW, _LONGEST_NAME = 1_048_576, 200
#: Where servers say so: vLLM, llama.cpp, fimble's own engine, others.
_WINDOW_NAMES = ("max_model_len", "n_ctx", "window", "context_length", "context_window")

_PREFIX, _SUFFIX = "def add(a, b):\n    return ", "\n\nprint(add(1, 2))\n"
_PROBE = (
    Control("fim_prefix"),
    Text(_PREFIX),
    Control("fim_suffix"),
    Text(_SUFFIX),
    Control("fim_middle"),
)


@dataclass(frozen=True, slots=True)
class Abilities:
    """``model`` is the server's name of it, ``window`` its longest prompt plus answer (tokens).

    ``form`` is how completions are asked for; None where the server has no ``/completions``.
    """

    model: str
    window: int
    form: PromptForm | None

    @property
    def fim(self) -> bool:
        """Whether it can fill in the middle of a text."""
        return self.form in ("ids", "text", "suffix")


async def find_out(endpoint: Endpoint, ask: Ask, tokenizer: PackageTokenizer | None) -> Abilities:
    """Asks the server. Raises EngineError, and ModelNotFound for a model that it does not have."""
    entry = _chosen(endpoint, await ask("/models", None))
    name = str(entry.get("id") or endpoint.model)
    window = endpoint.window or _window_of(entry)
    form = await _form(name, ask, tokenizer)
    logger.info("%s: model %s, window %d tokens, prompts as %s", endpoint.host, name, window, form)
    return Abilities(name, window, form)


def _chosen(endpoint: Endpoint, listing: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The entry of the model to ask for. A server without a list is asked for the user's."""
    data = (listing or {}).get("data")
    entries = [each for each in data if _is_entry(each)] if isinstance(data, list) else []
    if not entries:
        if endpoint.model:
            return {"id": endpoint.model}
        raise ModelNotFound(
            f"{endpoint.host} does not say which models it has.",
            next_step="Name one: `fimble engine use URL --model NAME`.",
        )
    if not endpoint.model:
        return entries[0]
    for entry in entries:
        if entry.get("id") == endpoint.model:
            return entry
    names = ", ".join(str(entry.get("id")) for entry in entries[:8])
    raise ModelNotFound(
        f"{endpoint.host} has no model {endpoint.model}.",
        next_step=f"It has: {names}. Choose with `fimble engine use URL --model NAME`.",
    )


def _is_entry(each: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether something in the list is a model, with a name that can be shown if it has one."""
    if not isinstance(each, dict):
        return False
    name = each.get("id") or ""
    return isinstance(name, str) and name.isprintable() and len(name) <= _LONGEST_NAME


def _window_of(entry: Mapping[str, Any]) -> int:
    for source in (entry, entry.get("meta")):
        if not isinstance(source, dict):
            continue
        for name in _WINDOW_NAMES:
            value = source.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return min(value, _LARGEST_WINDOW)
    return UNKNOWN_WINDOW


async def _form(model: str, ask: Ask, tokenizer: PackageTokenizer | None) -> PromptForm | None:
    async def counted(fields: dict[str, Any]) -> int | None:
        """Prompt tokens that the server counts; 0 where it does not say; None if it refuses."""
        body = {"model": model, "max_tokens": 1, "temperature": 0, "stream": False, **fields}
        answer = await ask("/completions", body)
        if answer is None:
            return None
        usage = answer.get("usage")
        count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
        return count if isinstance(count, int) else 0

    controls = [CONTROL_TOKENS[part.name] for part in _PROBE if isinstance(part, Control)]
    alone = await counted({"prompt": _PREFIX})
    if tokenizer is not None and alone == len(tokenizer.encode_text(_PREFIX)):
        # As many tokens as ours has: the vocabulary is the same.
        ids = tokenizer.encode_prompt(_PROBE)
        if await counted({"prompt": ids}) == len(ids):
            return "ids"
    as_text = await counted(prompt_body(_PROBE, "text", None))
    if alone is None:
        return None if as_text is None else "text"
    if as_text:
        # Spelled in letters, each control token would be seven tokens or so.
        spelled = sum(len(spelling) for spelling in controls)
        behind = await counted({"prompt": _SUFFIX}) or 0
        if as_text <= alone + behind + len(controls) + spelled // 8:
            return "text"
    with_suffix = await counted(prompt_body(_PROBE, "suffix", None))
    if with_suffix is not None and with_suffix > alone:
        return "suffix"
    return "plain"
