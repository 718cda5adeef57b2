"""A chat as segments, by the package's own template.

The template decides which control tokens stand where, but what people wrote never becomes
one: it is rendered with placeholders in place of the contents, and only what the template
itself says is read for control tokens. Knows nothing of models or requests.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fimble.engine.protocol import CONTROL_TOKENS, ChatMessage, Control, Segment, Text
from fimble.errors import RequestRejected
from fimble.models.package_extras import read_chat_template

__all__ = ["chat_segments", "read_chat_template"]

_CONTROL_NAMES = {spelling: name for name, spelling in CONTROL_TOKENS.items()}
_CONTROL = re.compile("|".join(re.escape(spelling) for spelling in _CONTROL_NAMES))


def chat_segments(template: str, messages: Sequence[ChatMessage]) -> list[Segment]:
    """The prompt for the assistant's next turn. Raises RequestRejected.

    Contents are passed on exactly, apart from white space at their ends where the template
    trims; a template that changes them otherwise cannot be used.
    """
    # Unknown to whoever wrote the messages, and nothing a template would change.
    mark = f"CONTENT{secrets.token_hex(12)}N"
    listed = [
        {"role": message.role, "content": f"{mark}{place}E"}
        for place, message in enumerate(messages)
    ]
    try:
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _raise_exception
        text = environment.from_string(template).render(
            messages=listed, add_generation_prompt=True, tools=None, bos_token="", eos_token=""
        )
    except Exception as error:
        # A template is a program of someone else's and may fail in any way.
        raise RequestRejected(
            f"The package's chat template refuses these messages: {error}.",
            next_step="Begin with at most one system message, then alternate user and assistant.",
        ) from error
    segments: list[Segment] = []
    pieces = re.split(f"{mark}([0-9]+)E", text)
    for place, piece in enumerate(pieces):
        if place % 2:
            segments.append(Text(messages[int(piece)].content))
        else:
            segments.extend(_template_segments(piece))
    return _joined(segments)


def _joined(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbouring texts as one, since the model learned them tokenized together."""
    joined: list[Segment] = []
    for each in segments:
        if isinstance(each, Text) and joined and isinstance(joined[-1], Text):
            joined[-1] = Text(joined[-1].text + each.text)
        elif each != Text(""):
            joined.append(each)
    return joined


def _template_segments(text: str) -> list[Segment]:
    """What the template itself wrote: its control tokens are meant as such."""
    segments: list[Segment] = []
    end = 0
    for found in _CONTROL.finditer(text):
        segments += [Text(text[end : found.start()]), Control(_CONTROL_NAMES[found[0]])]
        end = found.end()
    segments.append(Text(text[end:]))
    return segments


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)
