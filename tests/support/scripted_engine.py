"""An engine that says what a test tells it to: no process, no model, no network.

It answers from a list of texts (one a request, the last one for ever after) or from a
function of the request, records what it was asked, and can be slow or fail::

    engine = ScriptedEngine(["return a + b", "x = 1"])
    engine = ScriptedEngine(lambda request: "yes" if request.stop else "no")
    engine = ScriptedEngine([EngineUnavailable("The engine ended.")])
    engine = ScriptedEngine(["a long answer"], piece=4, gate=asyncio.Event())
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from fimble.engine.base import Engine, ModelInfo
from fimble.engine.protocol import (
    CompletionChunk,
    CompletionRequest,
    Control,
    FinishReason,
    Prompt,
    Text,
    Timings,
    Usage,
)

__all__ = ["Answer", "ScriptedEngine", "prompt_as_text"]


@dataclass(frozen=True)
class Answer:
    """One candidate: its text, why it ended, and the tokens said to have been reused.

    ``mean_logprob`` is the confidence that every chunk reports, or gives it for the number of
    tokens so far.
    """

    text: str
    finish_reason: FinishReason = "stop"
    reused_tokens: int = 0
    mean_logprob: float | Callable[[int], float] = -0.1


#: What a request gets: one text, several candidates, or an error that is raised.
Script = str | Answer | Sequence[str | Answer] | Exception


def prompt_as_text(prompt: Prompt) -> str:
    """A prompt with control tokens spelled ``<fim_prefix>``, for comparing in tests."""
    if isinstance(prompt, str):
        return prompt
    parts = []
    for part in prompt:
        if isinstance(part, Text):
            parts.append(part.text)
        elif isinstance(part, Control):
            parts.append(f"<{part.name}>")
        else:
            parts.append(f"[{part}]")
    return "".join(parts)


def _word_count(text: str) -> int:
    """A deterministic stand-in for a tokenizer: four bytes a token, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


@dataclass
class ScriptedEngine(Engine):
    """``answers``: see the module. Everything else may be changed while a test runs.

    ``piece`` is the number of characters a chunk (0: the whole text at once), ``delay``
    the seconds before each chunk, ``gate`` an event that each request waits for before
    its first chunk. ``requests`` holds every request in order, ``counted`` every batch of
    texts, ``cancelled`` the requests whose iterator was closed or cancelled before its end.
    """

    answers: Sequence[Script] | Callable[[CompletionRequest], Script]
    piece: int = 0
    delay: float = 0.0
    gate: asyncio.Event | None = None
    info: ModelInfo = field(
        default_factory=lambda: ModelInfo(
            name="scripted", window=4096, provider="none", fim=True, continuation=True
        )
    )
    count: Callable[[str], int] = _word_count
    requests: list[CompletionRequest] = field(default_factory=list)
    counted: list[list[str]] = field(default_factory=list)
    cancelled: list[CompletionRequest] = field(default_factory=list)
    closed: bool = False

    async def model_info(self) -> ModelInfo:
        return self.info

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted.append(list(texts))
        return [self.count(text) for text in texts]

    async def aclose(self) -> None:
        self.closed = True

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        script = self._script_for(request)
        self.requests.append(request)
        finished = False
        try:
            if self.gate is not None:
                await self.gate.wait()
            if isinstance(script, Exception):
                finished = True
                raise script
            for index, answer in enumerate(_candidates(script)):
                async for chunk in self._chunks(request, answer, index):
                    yield chunk
            finished = True
        finally:
            if not finished:
                self.cancelled.append(request)

    def _script_for(self, request: CompletionRequest) -> Script:
        if callable(self.answers):
            return self.answers(request)
        return self.answers[min(len(self.requests), len(self.answers) - 1)]

    async def _chunks(
        self, request: CompletionRequest, answer: Answer, index: int
    ) -> AsyncGenerator[CompletionChunk, None]:
        size = self.piece or max(1, len(answer.text))
        chat = "".join(message.content for message in request.messages)
        prompt_tokens = self.count(prompt_as_text(request.prompt) + chat)
        reused = min(answer.reused_tokens, prompt_tokens)

        def chunk(start: int, end: int, reason: FinishReason | None = None) -> CompletionChunk:
            said = self.count(answer.text[:end])
            mean = answer.mean_logprob
            return CompletionChunk(
                answer.text[start:end],
                index=index,
                finish_reason=reason,
                usage=Usage(prompt_tokens, reused, prompt_tokens - reused, said),
                timings=Timings(),
                model=self.info.name,
                provider=self.info.provider,
                extra={"mean_logprob": mean(said) if callable(mean) else mean},
            )

        length = len(answer.text)
        for start in range(0, length, size):
            # Also with no delay another task gets its turn, as with a real connection.
            await asyncio.sleep(self.delay)
            yield chunk(start, min(length, start + size))
        await asyncio.sleep(self.delay)
        yield chunk(length, length, answer.finish_reason)


def _candidates(script: str | Answer | Sequence[str | Answer]) -> list[Answer]:
    listed = [script] if isinstance(script, str | Answer) else list(script)
    return [Answer(item) if isinstance(item, str) else item for item in listed]
