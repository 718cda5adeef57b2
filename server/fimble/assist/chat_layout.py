"""The fall-back prompt: how a model that can only chat is asked for the code at a place.

It sees the file with a mark in it, and its answer is begun for it: a fence, and what stands in
the cursor's line already. So the first thing it says is what is wanted, and typing costs the
typed tokens, as with fill-in-the-middle. A Coder model is better at it: whoever shows a
completion says that it was made so.
"""

from __future__ import annotations

from dataclasses import dataclass

from fimble.assist.fences import fence_for, fenced
from fimble.assist.layout import prompt_text
from fimble.engine.protocol import ChatMessage
from fimble_context.assembly import OTHER_KINDS, Context

__all__ = ["CHAT_LAYOUT_TOKENS", "ChatPrompt", "chat_prompt"]

#: What the words below, fences and headings take at most, in tokens.
CHAT_LAYOUT_TOKENS = 400

_SYSTEM = "You complete source code. You answer with code only, in one code block."
_MARK = "<MISSING>"


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """``messages`` end with the answer's beginning; ``end`` is the fence that ends the answer."""

    messages: tuple[ChatMessage, ...]
    end: str


def chat_prompt(context: Context, typed: str, language: str) -> ChatPrompt:
    """Asks for what stands at the cursor of ``context``, where the answer begins with ``typed``."""
    others = [part for part in context.sections if part.kind in OTHER_KINDS]
    own = [part for part in context.sections if part.kind not in OTHER_KINDS]
    suffix = prompt_text("".join(part.text for part in own if part.kind == "suffix"))
    prefix = prompt_text("".join(part.text for part in own if part.kind != "suffix"))
    mark = _mark_for(prefix + suffix)
    asked = [f"{prompt_text(p.path)}\n{fenced(prompt_text(p.text))}\n" for p in others]
    path = prompt_text(own[0].path) if own else ""
    asked.append(
        f"In this file, {mark} stands in place of missing code:\n\n"
        f"{path}\n{fenced(f'{prefix}{mark}{suffix}', language)}\n"
    )
    asked.append(
        f"Write the code that belongs in place of {mark}, and nothing of what stands before or "
        "behind it."
    )
    fence = fence_for(prefix + suffix + typed)
    return ChatPrompt(
        (
            ChatMessage("system", _SYSTEM),
            ChatMessage("user", "\n".join(asked)),
            ChatMessage("assistant", f"{fence}{language}\n{typed}"),
        ),
        fence,
    )


def _mark_for(text: str) -> str:
    """A mark that does not stand in ``text``."""
    mark, number = _MARK, 1
    while mark in text:
        number += 1
        mark = f"<MISSING-{number}>"
    return mark
