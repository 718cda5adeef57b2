"""A question becomes an answer: what it is about is collected, fitted, asked and kept.

Streams what the model says. A question that is cancelled leaves its conversation as it was.
Nothing that a file or a message holds becomes a control token: texts travel as texts, and the
package's own template puts the tokens between them (see ``engine.chat_template``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fimble.assist.chat.blocks import CodeBlock, code_blocks
from fimble.assist.chat.collect import collect
from fimble.assist.chat.conversation import MESSAGE_TOKENS, Conversation, Conversations, Turn
from fimble.assist.chat.mentions import mentions_in, slash_in
from fimble.assist.chat.pieces import Attachment, Piece, Sources
from fimble.assist.chat.room import fit
from fimble.assist.chat.tasks import TASKS, Task, help_text
from fimble.assist.layout import prompt_text
from fimble.assist.settings import ChatSettings
from fimble.controls import without_controls
from fimble.engine.base import Engine, ModelInfo
from fimble.engine.protocol import CompletionChunk, CompletionRequest, FinishReason, Timings, Usage
from fimble.errors import UsageError
from fimble_context.assembly import LeftOut

if TYPE_CHECKING:
    # jinja2 takes a tenth of a second to import, which no editor's start should wait for.
    from fimble.assist.templates import Templates

__all__ = ["ChatAnswer", "ChatService", "Question"]

#: Context is what costs time; so many seconds of it are in proportion to an answer.
_CONTEXT_SECONDS = 20.0
_LEAST_CONTEXT = 1024
#: Counts of parts are a little lower than that of the whole.
_MARGIN = 32


@dataclass(frozen=True, slots=True)
class Question:
    """``history`` are earlier questions and answers, for a conversation that we do not know.

    ``conversation`` is the client's own name for it.
    """

    message: str
    conversation: str = "default"
    attachments: tuple[Attachment, ...] = ()
    history: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChatAnswer:
    """``context`` are the pieces that this question brought into the prompt.

    ``left_out`` says what could be in the prompt and is not, of this question and of earlier
    ones. ``turn`` counts the conversation's questions from 1; 0 for what no model answered.
    """

    text: str
    conversation: str
    turn: int = 0
    blocks: tuple[CodeBlock, ...] = ()
    context: tuple[Piece, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    model: str = ""
    provider: str = ""
    total_ms: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """As commands print it; blocks with their places in code points."""
        return {
            "text": self.text,
            "conversation": self.conversation,
            "turn": self.turn,
            "blocks": [asdict(block) for block in self.blocks],
            "context": [
                {
                    "kind": piece.kind,
                    "path": piece.path,
                    "lines": list(piece.lines) if piece.lines else None,
                    "reason": piece.reason,
                    "tokens": piece.tokens,
                }
                for piece in self.context
            ],
            "left_out": [asdict(item) for item in self.left_out],
            "finish_reason": self.finish_reason,
            "usage": asdict(self.usage),
            "timings_ms": {
                "queued": round(self.timings.queued_ms, 1),
                "prefill": round(self.timings.prefill_ms, 1),
                "decode": round(self.timings.decode_ms, 1),
                "total": round(self.total_ms, 1),
            },
            "model": self.model,
            "provider": self.provider,
        }


class ChatService:
    """Answers questions. ``engine``, ``templates`` and ``settings`` give those of the moment."""

    def __init__(
        self,
        engine: Callable[[], Engine],
        sources: Sources,
        templates: Callable[[], Templates],
        settings: Callable[[], ChatSettings],
        *,
        conversations: Conversations | None = None,
        name: str = "chat",
    ) -> None:
        """``name`` tells this session's conversations apart from others' at the engine."""
        self._engine = engine
        self._sources = sources
        self._templates = templates
        self._settings = settings
        self._conversations = conversations if conversations is not None else Conversations()
        self._name = name

    async def ask(
        self, question: Question, on_text: Callable[[str], None] = lambda text: None
    ) -> ChatAnswer:
        """The answer; ``on_text`` gets its pieces as they come.

        Raises UsageError for a message that cannot be meant, TemplateFailed, EngineError.
        Cancelling the task ends the work at the engine before its next token.
        """
        slash = slash_in(question.message)
        if slash is not None and slash.name == "help":
            return ChatAnswer(help_text(), question.conversation)
        if slash is not None and slash.name == "clear":
            self._conversations.clear(question.conversation)
            return ChatAnswer("", question.conversation)
        task = None if slash is None else TASKS.get(slash.name)
        if slash is not None and task is None:
            raise UsageError(
                f"There is no command /{slash.name}.",
                next_step="/help lists them; words in front of it make it plain text.",
            )
        message = question.message if slash is None else slash.rest
        if task is None and not message.strip():
            raise UsageError("The message is empty.", next_step="Write a question.")
        conversation = self._conversations.get(question.conversation, question.history)
        async with conversation.asking:
            answer = await self._answer(conversation, question, task, message, on_text)
        self._conversations.trim()
        return answer

    async def _answer(
        self,
        conversation: Conversation,
        question: Question,
        task: Task | None,
        message: str,
        on_text: Callable[[str], None],
    ) -> ChatAnswer:
        started = time.perf_counter()
        engine = self._engine()
        info = await engine.model_info()
        settings = self._settings()
        most = min(settings.max_tokens, max(1, info.window // 4))
        budget = min(settings.max_prompt_tokens, info.window - most) - _MARGIN
        await self._prepare(conversation, engine)
        attachments = _wanted(question.attachments, message, task, conversation)
        templates = self._templates()
        asked = prompt_text(
            message if task is None else templates.render(f"chat/{task.name}", {"message": message})
        )
        (asked_tokens,) = await engine.count_tokens([asked])
        room = _room(conversation, budget, asked_tokens, info)
        found = await collect(attachments, message, self._sources, room)
        if task is not None and not (found.pieces or conversation.turns):
            raise _nothing_there(task, found.left_out)
        pieces, cut = await fit(found.pieces, room, engine.count_tokens)
        context = ""
        if pieces:
            values = {"pieces": [asdict(piece) for piece in pieces]}
            context = templates.render("chat/context", values)
        (context_tokens,) = await engine.count_tokens([context]) if context else (0,)
        turn = Turn(
            asked,
            context,
            question_tokens=asked_tokens,
            context_tokens=context_tokens,
            pieces=tuple(pieces),
        )
        if not conversation.fit(turn, budget):
            raise UsageError(
                f"The message has {turn.tokens} tokens; {budget - conversation.system_tokens} "
                "are the most that fit.",
                next_step="Write a shorter one, or mention a file instead of pasting it.",
            )
        request = CompletionRequest(
            "",
            max_tokens=most,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=None,
            priority="chat",
            document=f"{self._name}:{conversation.id}",
            messages=tuple(conversation.messages(turn)),
        )
        text, last = await _stream(engine, request, on_text)
        # Exactly what the model said, or the engine could not go on from it.
        turn.answer = text
        conversation.turns.append(turn)
        await self._prepare(conversation, engine)
        usage = last.usage or Usage()
        shown = without_controls(text)
        return ChatAnswer(
            text=shown,
            conversation=conversation.id,
            turn=len(conversation.turns),
            blocks=tuple(code_blocks(shown, conversation.pieces())),
            context=tuple(pieces),
            left_out=(*found.left_out, *cut, *conversation.left_out()),
            finish_reason=last.finish_reason or "stop",
            usage=usage,
            timings=last.timings or Timings(),
            model=last.model or info.name,
            provider=last.provider or info.provider,
            total_ms=(time.perf_counter() - started) * 1000,
        )

    async def _prepare(self, conversation: Conversation, engine: Engine) -> None:
        """Gives the conversation its system prompt, and counts what is not counted yet."""
        if not conversation.system:
            conversation.system = self._templates().render("chat/system", {})
        texts = [conversation.system] if not conversation.system_tokens else []
        uncounted = [turn for turn in conversation.turns if turn.answer and not turn.answer_tokens]
        for turn in uncounted:
            texts += [turn.question, turn.answer]
        if not texts:
            return
        counts = iter(await engine.count_tokens(texts))
        if not conversation.system_tokens:
            conversation.system_tokens = next(counts)
        for turn in uncounted:
            turn.question_tokens, turn.answer_tokens = next(counts), next(counts)


async def _stream(
    engine: Engine, request: CompletionRequest, on_text: Callable[[str], None]
) -> tuple[str, CompletionChunk]:
    """The whole answer and its last chunk, with what earlier ones knew."""
    texts: list[str] = []
    last = CompletionChunk("")
    # Closing the stream is what stops the engine.
    async with aclosing(engine.complete(request)) as chunks:
        async for chunk in chunks:
            last = replace(
                chunk, usage=chunk.usage or last.usage, timings=chunk.timings or last.timings
            )
            if chunk.text:
                texts.append(chunk.text)
                on_text(without_controls(chunk.text))
    return "".join(texts), last


def _wanted(
    attachments: Sequence[Attachment],
    message: str,
    task: Task | None,
    conversation: Conversation,
) -> list[Attachment]:
    """What is attached and what the message mentions, and what a task looks at by itself."""
    wanted = list(attachments)
    for mention in mentions_in(message):
        if mention.kind == "selection":
            if not any(each.kind == "selection" for each in wanted):
                wanted.append(Attachment("selection", mention=mention.text, name=mention.text))
        else:
            wanted.append(Attachment(mention.kind, name=mention.name, mention=mention.text))
    if task is not None and task.about == "changes":
        staged = task.name == "commit"
        has_code = any(each.kind in ("selection", "file", "symbol") for each in wanted)
        if staged or not (has_code or wanted):
            wanted = [each for each in wanted if each.kind != "diff"]
            wanted.append(Attachment("diff", staged=staged))
    return wanted


def _room(conversation: Conversation, budget: int, asked: int, info: ModelInfo) -> int:
    """Tokens for context: what is free, or half of all, where older turns can make room."""
    free = max(budget - conversation.tokens, budget // 2) - asked - 2 * MESSAGE_TOKENS
    if info.prefill_tokens_per_s > 0:
        quick = int(info.prefill_tokens_per_s * _CONTEXT_SECONDS)
        free = min(free, max(_LEAST_CONTEXT, quick))
    return max(0, free)


def _nothing_there(task: Task, left_out: Sequence[LeftOut]) -> UsageError:
    why = "; ".join(f"{item.path}: {item.reason}".removeprefix(": ") for item in left_out)
    if task.about == "changes":
        return UsageError(
            f"There is nothing to {'review' if task.name == 'review' else 'commit'}: {why}.",
            next_step="Change something, or name code with @file: or @symbol:.",
        )
    return UsageError(
        f"/{task.name} needs code to work on{f': {why}' if why else ''}.",
        next_step="Select code, or mention it with @file: or @symbol:.",
    )
