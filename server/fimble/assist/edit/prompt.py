"""What a model is told for an edit: messages made of templates, within its window.

Everything of a file is text: nothing that it spells becomes a control token. Other files'
code passed the workspace's policy before, and keys in any code are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fimble.assist.chat.conversation import MESSAGE_TOKENS
from fimble.assist.edit.conventions import documentation_style, habits
from fimble.assist.edit.target import FUNCTIONS, Target
from fimble.assist.edit.tasks import EditTask
from fimble.assist.layout import prompt_text
from fimble.assist.settings import EditSettings
from fimble.assist.tokens import TokenCounts
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.protocol import ChatMessage
from fimble.errors import EditRefused
from fimble_context.assembly import Diagnostic, EditContext, Workspace, edit_context
from fimble_context.syntax import detect
from fimble_context.workspace import mask_secrets

if TYPE_CHECKING:
    from fimble.assist.templates import Templates

__all__ = ["EditPrompt", "edit_prompt"]

#: So many seconds of reading other files' code are in proportion to an edit.
_CONTEXT_SECONDS = 8.0
_LEAST_CONTEXT = 512
_MARGIN = 32
_MOST_PROBLEMS = 12
_LINES_AROUND = 30
_MARK = "<<here>>"


@dataclass(frozen=True, slots=True)
class EditPrompt:
    """``max_tokens`` is what the answer may have, in tokens; ``tokens`` what the messages are.

    ``problems`` are those of the code as templates show them.
    """

    messages: tuple[ChatMessage, ...]
    tokens: int
    max_tokens: int
    context: EditContext
    problems: tuple[dict[str, Any], ...] = ()


async def edit_prompt(
    engine: Engine,
    info: ModelInfo,
    templates: Templates,
    settings: EditSettings,
    target: Target,
    task: EditTask,
    *,
    instruction: str = "",
    diagnostics: Sequence[Diagnostic] = (),
    workspace: Workspace | None = None,
    shown_path: Callable[[Path], str] = lambda path: path.name,
    more: dict[str, Any] | None = None,
    answer_tokens: int = 0,
) -> EditPrompt:
    """The prompt for a target. Raises EditRefused where it would not fit, and EngineError.

    ``more`` are further values for the template; ``answer_tokens`` is what the answer needs
    besides the code itself.
    """
    counts = TokenCounts()
    (code_tokens,) = await engine.count_tokens([target.shown]) if target.shown else (0,)
    most = min(settings.max_tokens, max(1, info.window // 2))
    needed = code_tokens if task.name != "tests" else 0
    if needed > most:
        raise _too_long(target, code_tokens, most)
    wanted = min(most, 2 * needed + max(256, answer_tokens))
    budget = min(settings.max_prompt_tokens, info.window - wanted) - _MARGIN
    room = _room(info, budget - code_tokens)
    document = target.document
    path = Path(document.path) if document.path else None
    while True:
        context = edit_context(
            document,
            target.span.start,
            target.span.end,
            budget=room,
            count_tokens=counts.with_estimates,
            workspace=workspace if room else None,
            path=path,
            diagnostics=diagnostics,
        )
        shown = shown_path(path) if path is not None else ""
        values = _values(target, task, context, instruction, diagnostics, shown) | (more or {})
        template = "insert" if not target.shown.strip() else task.name
        messages = (
            ChatMessage("system", templates.render("edit/system", {})),
            ChatMessage("user", prompt_text(templates.render(f"edit/{template}", values))),
        )
        tokens = sum(await engine.count_tokens([message.content for message in messages]))
        tokens += len(messages) * MESSAGE_TOKENS
        if tokens <= budget:
            return EditPrompt(messages, tokens, wanted, context, tuple(values["problems"]))
        if not room:
            raise _too_long(target, tokens, budget)
        # Estimates were too low, or much else is in the prompt: then without other files.
        room = 0


def language_of(target: Target) -> str:
    """The language as a fence names it."""
    language = target.document.syntax_language
    return language.id if language is not None else (target.document.language or "")


def _values(
    target: Target,
    task: EditTask,
    context: EditContext,
    instruction: str,
    diagnostics: Sequence[Diagnostic],
    path: str,
) -> dict[str, Any]:
    document = target.document
    language = document.syntax_language
    name = target.symbol.name if target.symbol is not None else ""
    return {
        "code": target.shown,
        "language": language_of(target) or "text",
        "path": path,
        "symbol": name,
        "language_name": language.name if language is not None else "",
        "what": _what(target),
        # Whoever reads of a class around a function writes the class.
        "headers": [
            mask_secrets(prompt_text(header)) for header in context.headers if task.headers
        ],
        "sections": [
            {
                "path": section.path,
                "reason": section.reason,
                "text": mask_secrets(section.text),
                "language": _language_at(section.path),
            }
            for section in context.sections
            if section.kind in task.context
        ],
        "problems": [_problem(target, item) for item in list(diagnostics)[:_MOST_PROBLEMS]],
        "instruction": mask_secrets(prompt_text(instruction.strip())),
        "habits": habits(document),
        "style": documentation_style(document, name) if task.keeps == "code" else "",
        "around": _around(target),
        "mark": _MARK,
    }


def _what(target: Target) -> str:
    """What the code is called: a function, a class, or just code."""
    kind = target.symbol.kind if target.symbol is not None else ""
    if kind in FUNCTIONS:
        return "function"
    return kind if kind in ("class", "interface", "struct", "enum") else "code"


def _problem(target: Target, item: Diagnostic) -> dict[str, Any]:
    document = target.document
    line = document.line_of(item.start)
    text = mask_secrets(prompt_text(document.line_text(line).strip()))
    inside = target.span.start <= item.start <= target.span.end
    message = mask_secrets(" ".join(prompt_text(item.message).split()))
    return {"line": line + 1 if inside and text else 0, "text": text, "message": message}


def _around(target: Target) -> str:
    """Some lines above and below a place where there is nothing yet, with a mark at it."""
    document, line = target.document, target.document.line_of(target.span.start)
    first, last = max(0, line - _LINES_AROUND), min(document.line_count, line + _LINES_AROUND + 1)
    before = document.text[document.line_start(first) : target.span.start]
    after = document.text[target.span.end : document.line_end(last - 1)]
    return mask_secrets(prompt_text(f"{before}{_MARK}{after}"))


def _room(info: ModelInfo, free: int) -> int:
    if info.prefill_tokens_per_s > 0:
        quick = int(info.prefill_tokens_per_s * _CONTEXT_SECONDS)
        free = min(free, max(_LEAST_CONTEXT, quick))
    # Half of it is for what is no code of other files.
    return max(0, free // 2)


def _language_at(path: str) -> str:
    language = detect(None, path)
    return language.id if language is not None else ""


def _too_long(target: Target, tokens: int, most: int) -> EditRefused:
    return EditRefused(
        f"{target.subject} is too long to be rewritten: it takes "
        f"{tokens} tokens, and {most} are the most.",
        next_step="Select less of it.",
        name="too-long",
    )
