"""A chat as segments, by the package's own template.

The template decides which control tokens stand where, but what people wrote never becomes
one: it is rendered with placeholders in place of the contents, and only what the template
itself says is read for control tokens. A package is data, so its template gets a small
language with limits on time and size. Knows nothing of models or requests.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError

from fimble.engine.protocol import CONTROL_TOKENS, ChatMessage, Control, Segment, Text
from fimble.errors import RequestRejected
from fimble.models.package_extras import read_chat_template
from fimble.template_bounds import BoundedEnvironment, TooMuch, bounded

__all__ = ["chat_segments", "read_chat_template"]

_CONTROL_NAMES = {spelling: name for name, spelling in CONTROL_TOKENS.items()}
_CONTROL = re.compile("|".join(re.escape(spelling) for spelling in _CONTROL_NAMES))


def chat_segments(template: str, messages: Sequence[ChatMessage]) -> list[Segment]:
    """The prompt for the assistant's next turn. Raises RequestRejected.

    Where the last message is the assistant's, it is the beginning of that turn, to go on with.
    Contents are passed on exactly, apart from white space at their ends where the template
    trims; a template that changes them otherwise cannot be used.
    """
    messages, begun = list(messages), ""
    if messages and messages[-1].role == "assistant":
        begun = messages.pop().content
    # Unknown to whoever wrote the messages, and nothing a template would change.
    mark = f"CONTENT{secrets.token_hex(12)}N"
    listed = [
        {"role": message.role, "content": f"{mark}{place}E"}
        for place, message in enumerate(messages)
    ]
    try:
        text = _rendered(template, listed)
    except (TooMuch, SecurityError) as error:
        raise RequestRejected(
            f"The package's chat template does what none may: {str(error).rstrip('.')}.",
            next_step="Get the package from its owner again, or use another one for chat.",
        ) from error
    except Exception as error:
        # A template is a program of someone else's and may fail in any way.
        raise RequestRejected(
            f"The package's chat template refuses these messages: {str(error).rstrip('.')}.",
            next_step="Begin with at most one system message, then alternate user and assistant.",
        ) from error
    segments: list[Segment] = []
    pieces = re.split(f"{mark}([0-9]+)E", text)
    for place, piece in enumerate(pieces):
        if place % 2:
            segments.append(Text(messages[int(piece)].content))
        else:
            segments.extend(_template_segments(piece))
    return _joined([*segments, Text(begun)])


class _Environment(BoundedEnvironment):
    """What packages' templates are seen to use; what is left open is empty, as elsewhere."""

    more_nodes = (nodes.NSRef, nodes.ExprStmt)
    methods = BoundedEnvironment.methods | {
        *("split", "rsplit", "strip", "lstrip", "rstrip"),
        *("startswith", "endswith", "lower", "upper", "title"),
    }

    def __init__(self) -> None:
        super().__init__(undefined=jinja2.Undefined)
        standard = jinja2.Environment()
        names = ("string", "int", "float", "list", "capitalize", "title", "safe")
        self.filters |= {name: standard.filters[name] for name in names}
        self.filters["tojson"] = _to_json
        names = ("mapping", "sequence", "iterable", "boolean", "true", "false", "integer")
        self.tests |= {name: standard.tests[name] for name in names}
        self.globals |= {"namespace": jinja2.utils.Namespace, "range": self._range}
        self.globals["raise_exception"] = _raise_exception

    def _range(self, *bounds: int) -> range:
        return range(*bounds)  # its loop looks at the clock


def _rendered(template: str, messages: Sequence[dict[str, str]]) -> str:
    environment = _Environment()
    environment.begin()
    values = {"messages": messages, "add_generation_prompt": True, "tools": None}
    compiled = environment.from_string(template)
    return environment.text_of(compiled, {**values, "bos_token": "", "eos_token": ""})


def _to_json(value: Any, indent: int | None = None) -> str:
    """As transformers has it: without jinja's escapes for HTML."""
    if indent is not None and not 0 <= indent <= 8:
        raise jinja2.TemplateError("tojson takes an indent up to 8")
    return bounded(json.dumps(value, ensure_ascii=False, indent=indent))


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
