"""How a prompt is said to a server: as token ids, as raw text, or as a text and a suffix.

Ids are exact: no text of the user's becomes a control token, whatever it spells. Where a server
takes text only, it reads control tokens out of it; so a spelling of one in the user's own text
is broken by a character that is not seen (U+200B), which costs the model nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from fimble.engine.protocol import CONTROL_TOKENS, ChatMessage, Control, Prompt, Text
from fimble.engine.tokens import PackageTokenizer
from fimble.errors import RequestRejected

__all__ = [
    "PromptForm",
    "estimated_tokens",
    "harmless",
    "messages_body",
    "prompt_body",
    "without_last_blank",
]

#: ``ids``: token ids of Qwen's vocabulary. ``text``: raw text with control tokens in it.
#: ``suffix``: the server has a field for what stands behind the cursor, and control tokens of
#: its own. ``plain``: it continues text and knows no fill-in-the-middle.
PromptForm = Literal["ids", "text", "suffix", "plain"]

_SPELLINGS = re.compile("|".join(re.escape(each) for each in CONTROL_TOKENS.values()))
_UNSEEN = "\u200b"
#: Code has more bytes a token than this in nearly every language; a guess must not be too low.
_BYTES_OF_TEN_TOKENS = 28


def prompt_body(
    prompt: Prompt, form: PromptForm, tokenizer: PackageTokenizer | None
) -> dict[str, Any]:
    """The fields of a request that say ``prompt``.

    Raises RequestRejected for a prompt that cannot be said in that form.
    """
    if form == "ids" and tokenizer is not None:
        return {"prompt": tokenizer.encode_prompt(prompt)}
    if isinstance(prompt, str):
        return {"prompt": harmless(prompt)}
    if any(isinstance(part, int) for part in prompt):
        raise RequestRejected(
            "This server takes text, and the prompt is token ids.",
            next_step="Pull a Qwen2.5 package: its tokenizer is needed to read them.",
        )
    segments = [part for part in prompt if not isinstance(part, int)]
    if form == "text":
        return {"prompt": "".join(_spelled(part) for part in segments)}
    prefix, suffix = _around_cursor(segments)
    body = {"prompt": harmless(prefix)}
    if form == "suffix":
        body["suffix"] = harmless(suffix)
    return body


def without_last_blank(prompt: Prompt) -> tuple[Prompt, str]:
    """``prompt`` without the blank in front of its cursor, and that blank ("" if there is none).

    A word's token begins with the blank in front of it: behind a lone blank a model can hardly
    go on with a word. fimble's own engine heals any token; of other servers, this much can be
    had. What is taken back has to be what the answer begins with.
    """
    if isinstance(prompt, str):
        return prompt, ""
    parts = [part for part in prompt if not isinstance(part, int)]
    if len(parts) < len(prompt):
        return prompt, ""
    suffix = Control("fim_suffix")
    place = parts.index(suffix) - 1 if suffix in parts else len(parts) - 1
    last = parts[place] if place >= 0 else None
    if not isinstance(last, Text) or not last.text.endswith(" "):
        return prompt, ""
    parts[place] = Text(last.text[:-1])
    return tuple(parts), " "


def messages_body(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """The fields of a request that say a chat."""
    return {
        "messages": [
            {"role": message.role, "content": harmless(message.content)} for message in messages
        ]
    }


def harmless(text: str) -> str:
    """``text`` without spellings of control tokens, which some servers take for the tokens, and
    without halves of surrogate pairs, which no request can carry.
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _SPELLINGS.sub(lambda found: f"<{_UNSEEN}{found.group()[1:]}", whole)


def estimated_tokens(text: str) -> int:
    """About how many tokens ``text`` is, rather too many, where no tokenizer is at hand."""
    return -(-10 * len(text.encode("utf-8", "surrogatepass")) // _BYTES_OF_TEN_TOKENS)


def _spelled(part: Any) -> str:
    return harmless(part.text) if isinstance(part, Text) else CONTROL_TOKENS[part.name]


def _around_cursor(segments: Sequence[Any]) -> tuple[str, str]:
    """The text in front of the cursor and behind it; other files are left out, since only the
    server knows how its model is told of them.
    """
    pieces = {"fim_prefix": "", "fim_suffix": "", "fim_middle": ""}
    current = ""
    for part in segments:
        if not isinstance(part, Text):
            current = part.name
        elif current in pieces:
            pieces[current] += part.text
        elif not current:
            pieces["fim_prefix"] += part.text
    # What the user types behind an anchor continues the prefix.
    return pieces["fim_prefix"] + pieces["fim_middle"], pieces["fim_suffix"]
