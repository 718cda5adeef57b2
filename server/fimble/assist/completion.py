"""A completion from start to end: what is remembered, else context, prompt, answer, trimming.

Given a document, an offset and settings; asks one engine. Where completions are not wanted
at all is ``policy``'s affair, and who may replace whom is the caller's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

from fimble.assist.answer import Answer, ModelCall
from fimble.assist.budget import budget_for
from fimble.assist.fit import badness, calls_for_more
from fimble.assist.manner import Manner
from fimble.assist.memory import Memory, Remembered
from fimble.assist.place import Place, place_of
from fimble.assist.policy import Refusal, confidence_refusal
from fimble.assist.prompt import Assemble, Prompt, Prompts, own_text_only
from fimble.assist.settings import CompletionSettings
from fimble.assist.stops import Stops
from fimble.assist.suggestion import Source, Suggestion, suggestion_from
from fimble.assist.trim import trim
from fimble.engine.base import Engine
from fimble.engine.protocol import CompletionChunk, CompletionRequest, Priority, Usage
from fimble_context.syntax import Document

__all__ = ["CompletionService", "Suggestion"]

#: The variety among candidates that are asked for on top of the likeliest answer.
_TEMPERATURE = 0.7
_TOP_P = 0.95
_SEED = 1


class CompletionService:
    """Completions from one engine. Remembers suggestions, anchors and token counts."""

    def __init__(
        self,
        engine: Engine,
        assemble: Assemble = own_text_only,
        *,
        grace: float = 0.0,
        on_call: Callable[[ModelCall], None] = lambda call: None,
    ) -> None:
        """``grace``: the seconds for which an answer that nobody waits for any more goes on
        being made. Editors cancel at every keystroke, and ask for the same a moment later.
        ``on_call`` gets every call of the model when it has ended.
        """
        self._engine = engine
        self._on_call = on_call
        self._grace = grace
        self._prompts = Prompts(engine, assemble)
        self._memory = Memory()
        self._growing: dict[str, Answer] = {}

    # --- asking --------------------------------------------------------------------------

    async def complete(
        self,
        document: Document,
        offset: int,
        settings: CompletionSettings,
        *,
        name: str = "",
        invoked: bool = False,
        hurried: bool = False,
    ) -> Suggestion:
        """The suggestion for ``offset`` (code points) in ``document``.

        ``name`` tells documents apart: a newer request of the same one replaces an older
        one at the engine. ``invoked`` says that the user asked for it: then there are
        alternatives, and low confidence is no reason to be silent. ``hurried`` is content
        with the first line of a block where the model is too slow for all of it: the rest is
        made meanwhile (see ``Suggestion.growing``). Cancelling the task
        cancels the work at the engine, unless ``keep`` was called first. Raises
        ``EngineError``, also for a model that can neither fill in the middle nor chat.
        """
        place = place_of(document, offset, settings.multiline)
        found = self._memory.find(name, place)
        if found is not None and not await self._caught_up(found):
            found = None
        source: Source = "engine"
        least = 0.0 if invoked else settings.min_confidence
        if found is None:
            found = await self._ask(name, place, settings, "completion", least)
        else:
            source = "ahead" if found.answer.ahead else "memory"
        await self._wait(found, place, hurried)
        if invoked and found.answer.doubtful:
            # It was cut short because nobody had asked; who asks is to have all of it.
            found, source = await self._ask(name, place, settings, "completion", least), "engine"
            await self._wait(found, place, hurried)
        found.answer.ahead = False
        suggestion = suggestion_from(
            found.answer,
            place,
            found.answer.prompt,
            accepted=found.typed,
            source=source,
            least_confidence=least,
        )
        if invoked and settings.candidates > 1:
            return await self._with_alternatives(suggestion, found, place, settings, name)
        return suggestion

    async def prepare(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str
    ) -> None:
        """Has the suggestion for a likely place made before anybody asks for it.

        Less urgent than what somebody waits for. Does nothing where it is at hand. Raises
        what ``complete`` raises.
        """
        place = place_of(document, offset, settings.multiline)
        if self._memory.find(name, place) is None:
            found = await self._ask(name, place, settings, "warmup", settings.min_confidence)
            found.answer.detached = found.answer.ahead = True

    def at_hand(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str
    ) -> bool:
        """Whether the suggestion is remembered, so that there is nothing to wait for."""
        return self._memory.find(name, place_of(document, offset, settings.multiline)) is not None

    async def explain(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str
    ) -> Prompt:
        """The prompt that the suggestion for a place was or would be made with."""
        place = place_of(document, offset, settings.multiline)
        found = self._memory.find(name, place)
        if found is not None:
            return found.answer.prompt
        info = await self._engine.model_info()
        return await self._prompts.prompt_for(name, place, info, budget_for(info, settings))

    def withheld(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str
    ) -> Refusal | None:
        """Why the answer that was made for a place is not offered by itself; None if it is, or
        if there is none.
        """
        found = self._memory.find(name, place_of(document, offset, settings.multiline))
        return None if found is None else confidence_refusal(found.answer.confidence, settings)

    # --- what happens to a document ------------------------------------------------------

    def is_at_work(self, name: str) -> bool:
        """Whether an answer for the document is being made."""
        answer = self._growing.get(name)
        return answer is not None and answer.finish is None

    def keep(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str
    ) -> None:
        """The cursor is at ``offset`` now: an answer that still fits there goes on being made,
        whoever asked for it; any other one of the document ends.
        """
        answer = self._growing.get(name)
        if answer is None or answer.finish is not None:
            return
        found = self._memory.find(name, place_of(document, offset, settings.multiline))
        if found is not None and found.answer is answer:
            answer.detached = True
        else:
            answer.cancel()

    def accepted(
        self, document: Document, offset: int, settings: CompletionSettings, *, name: str
    ) -> None:
        """A suggestion was accepted, and the cursor stands behind it."""
        self._prompts.anchors.accepted(name, place_of(document, offset, settings.multiline))

    def end(self, name: str) -> None:
        """Nobody wants an answer for the document any more."""
        answer = self._growing.pop(name, None)
        if answer is not None:
            answer.cancel()

    def end_all(self) -> None:
        """Ends every answer that is being made."""
        for name in list(self._growing):
            self.end(name)

    def forget(self, name: str) -> None:
        """The document is gone: nothing of it is kept."""
        self.end(name)
        self._memory.forget(name)
        self._prompts.anchors.forget(name)

    # --- the work ------------------------------------------------------------------------

    async def _ask(
        self,
        name: str,
        place: Place,
        settings: CompletionSettings,
        priority: Priority,
        least_confidence: float,
    ) -> Remembered:
        """Starts an answer at the engine and remembers it for the place."""
        info = await self._engine.model_info()
        budget = budget_for(info, settings)
        prompt = await self._prompts.prompt_for(name, place, info, budget)
        request = CompletionRequest(
            prompt.segments,
            messages=prompt.messages,
            max_tokens=budget.answer,
            stop=_stop_strings(place, settings, prompt),
            priority=priority,
            document=name,
            heal=bool(prompt.typed),
        )
        self.end(name)
        language = place.document.language
        answer = Answer(
            self._engine.complete(request),
            _stops(place, settings),
            Manner(place),
            prompt,
            model=info.name,
            provider=info.provider,
            least_confidence=least_confidence,
            in_time=budget.in_time,
            on_end=lambda answer: self._on_call(ModelCall(answer.model, language, answer.usage)),
        )
        self._growing[name] = answer
        return self._memory.add(name, place, answer)

    async def _caught_up(self, found: Remembered) -> bool:
        """Until an answer has come as far as is typed; whether it then fits."""
        if not found.behind:
            return True
        try:
            await found.answer.wait(lambda: not found.behind)
        except asyncio.CancelledError:
            found.answer.abandon(self._grace)
            raise
        return found.fits

    async def _wait(self, found: Remembered, place: Place, hurried: bool) -> None:
        """Until there is enough of the answer for the place."""
        stops = Stops(place, continued=bool(found.typed))
        slow = hurried and not found.answer.in_time

        def enough() -> bool:
            rest = found.rest
            return stops.end(rest) is not None or _is_whole_line(rest, place, slow)

        try:
            await found.answer.wait(enough)
        except asyncio.CancelledError:
            found.answer.abandon(self._grace)
            raise
        # There is somebody who reads; what is left to be made is for when they accept.
        found.answer.detached = True

    async def _with_alternatives(
        self,
        suggestion: Suggestion,
        found: Remembered,
        place: Place,
        settings: CompletionSettings,
        name: str,
    ) -> Suggestion:
        if not found.alternatives:
            prompt = found.answer.prompt
            request = CompletionRequest(
                prompt.segments,
                messages=prompt.messages,
                max_tokens=budget_for(await self._engine.model_info(), settings).answer,
                temperature=_TEMPERATURE,
                top_p=_TOP_P,
                seed=_SEED,
                n=settings.candidates - 1,
                # Not the document's name: it must not replace the answer it stands beside.
                document=f"{name}#alternatives",
                stop=_stop_strings(place, settings, prompt),
                heal=bool(prompt.typed),
            )
            texts, usage = await _texts(self._engine.complete(request))
            found.alternatives.extend(Manner(place).of(text) for text in texts)
            self._on_call(ModelCall(suggestion.model, place.document.language, usage))
        typed, one = found.typed, bool(found.typed)
        rests = [t[len(typed) :] for t in found.alternatives if t.startswith(typed)]
        return suggestion.with_alternatives(
            [trim(rest, place, continued=one, complete=False) for rest in rests]
        )


async def _texts(chunks: AsyncGenerator[CompletionChunk, None]) -> tuple[list[str], Usage]:
    """The whole text of each candidate, and what they cost."""
    texts: dict[int, str] = {}
    usage = Usage()
    try:
        async for chunk in chunks:
            usage = chunk.usage or usage
            texts[chunk.index] = texts.get(chunk.index, "") + chunk.text
    finally:
        await chunks.aclose()
    return [texts[index] for index in sorted(texts)], usage


def _ends_with_line(place: Place, settings: CompletionSettings) -> bool:
    """Whether nothing behind the line's end can ever be of use."""
    return place.one_line or not place.code or settings.multiline == "never"


def _stop_strings(place: Place, settings: CompletionSettings, prompt: Prompt) -> tuple[str, ...]:
    line = ("\n",) if _ends_with_line(place, settings) else ()
    return (*line, prompt.end) if prompt.end else line


def _stops(place: Place, settings: CompletionSettings) -> Stops:
    """Where the answer ends that is made: the rest of a block goes on being made behind the
    line that is shown.
    """
    if place.shape != "line" or _ends_with_line(place, settings):
        return Stops(place)
    return Stops(place, goes_on=lambda text: calls_for_more(place, text))


def _is_whole_line(text: str, place: Place, slow: bool) -> bool:
    """Whether the first line of a statement stands by itself, so that it can be shown alone.

    From a ``slow`` model so can that of a body, which may begin below the cursor, and one that
    only brackets tell of, where no grammar does.
    """
    if place.shape == "body" and slow:
        end = text.find("\n", len(text) - len(text.lstrip()))
    elif place.shape == "statement" and not place.before.strip():
        end = text.find("\n")
    else:
        return False
    line = text[: max(0, end)]
    if not line.strip() or (place.language is None and not slow):
        return False
    if line.rstrip().endswith((":", "{", "(", "[", ",", "\\")):
        return False
    return badness(place, line) <= badness(place, "")
