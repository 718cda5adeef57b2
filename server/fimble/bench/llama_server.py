"""The peer's server: how llama.cpp answers an infill request in one slot.

Built from its documented behaviour, with the settings that it recommends for this use: a batch
of 1,024 tokens, of which the prefix may have three quarters and the suffix what is left of the
last one; other files first; the KV cache is kept up to the first token that differs, and runs
of at least 256 tokens that stand elsewhere now are shifted there. An answer ends at a line
that is indented less than the cursor's, or at a line's end once its time is over.

The model itself is a ``Binding``: llama.cpp's, or a scripted one in tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fimble.bench.llama_vim import Chunk, InfillAnswer, InfillRequest

__all__ = ["BATCH_TOKENS", "Binding", "LlamaServer"]

BATCH_TOKENS = 1024
SHORTEST_REUSED = 256


class Binding(Protocol):
    """A model with one KV cache. ``window`` counts tokens."""

    window: int

    def control(self, name: str) -> int:
        """The id of ``fim_prefix``, ``fim_suffix``, ``fim_middle``, ``repo_name``, ``file_sep``."""

    def encode(self, text: str) -> list[int]:
        """The tokens of text, which never become control tokens."""

    def piece(self, token: int) -> bytes:
        """The bytes of a token."""

    def is_end(self, token: int) -> bool:
        """Whether a token ends an answer."""

    def remove(self, start: int, end: int) -> None:
        """Takes the positions from ``start`` to ``end`` (exclusive; -1: all) from the cache."""

    def shift(self, start: int, end: int, by: int) -> None:
        """Moves positions of the cache."""

    def append(self, tokens: Sequence[int]) -> None:
        """Computes tokens behind those in the cache."""

    def sample(self) -> int:
        """The next token after the last one appended."""


class LlamaServer:
    """One slot. Synchronous: whoever has an event loop calls ``answer`` elsewhere."""

    def __init__(self, binding: Binding, clock: Callable[[], float] = time.monotonic) -> None:
        self._model = binding
        self._clock = clock
        self._cache: list[int] = []

    def answer(self, request: InfillRequest) -> InfillAnswer:
        """The answer to a request."""
        prompt = self.prompt(request)
        kept = self._reuse(prompt)
        if kept == len(prompt):
            kept -= 1  # there must be something to have logits of
        self._model.remove(kept, -1)
        del self._cache[kept:]
        for start in range(kept, len(prompt), BATCH_TOKENS):
            self._append(prompt[start : start + BATCH_TOKENS])
        content = self._generate(request) if request.most_tokens else ""
        return InfillAnswer(content, len(prompt) - kept)

    def prompt(self, request: InfillRequest) -> list[int]:
        """The tokens of a request."""
        model = self._model
        middle = model.encode(request.middle)
        prefix = model.encode(request.prefix)[-3 * (BATCH_TOKENS // 4) :]
        room = max(0, BATCH_TOKENS // 4 - 2 - len(middle))
        suffix = model.encode(request.suffix)[:room]
        extra = self._extra(request.extra)
        fitting = max(0, model.window - BATCH_TOKENS - 2 * request.most_tokens)
        return [
            *(extra[-fitting:] if fitting else []),
            model.control("fim_prefix"),
            *prefix,
            *middle,
            model.control("fim_suffix"),
            *suffix,
            model.control("fim_middle"),
        ]

    def _extra(self, chunks: Sequence[Chunk]) -> list[int]:
        model = self._model
        tokens = [model.control("repo_name"), *model.encode("myproject\n")]
        for chunk in chunks:
            tokens += [model.control("file_sep"), *model.encode(f"{chunk.filename}\n")]
            tokens += model.encode(chunk.text)
        return [*tokens, model.control("file_sep"), *model.encode("filename\n")]

    def _reuse(self, prompt: list[int]) -> int:
        """Makes the cache begin like ``prompt``; how many tokens they have in common then."""
        cache = self._cache
        kept = _common(cache, 0, prompt, 0)
        here, there = kept, kept
        while there < len(cache) and here < len(prompt):
            run = _common(cache, there, prompt, here)
            if run < SHORTEST_REUSED:
                there += 1
                continue
            self._model.remove(here, there)
            self._model.shift(there, there + run, here - there)
            cache[here : here + run] = cache[there : there + run]
            there, here = there + run, here + run
            kept += run
        return kept

    def _append(self, tokens: Sequence[int]) -> None:
        self._model.append(tokens)
        self._cache.extend(tokens)

    def _generate(self, request: InfillRequest) -> str:
        begun = self._clock()
        ending = _Ending(request.indent)
        for _ in range(request.most_tokens):
            token = self._model.sample()
            if self._model.is_end(token):
                break
            late = (self._clock() - begun) * 1000 > request.predict_ms > 0
            if ending.ends_with(self._model.piece(token), late):
                break
            self._append([token])
        return ending.text.decode("utf-8", "replace")


class _Ending:
    """An answer's text, and where it ends: the server's own order of checks, line by line."""

    def __init__(self, indent: int) -> None:
        self.text = b""
        self._indent = indent
        self._has_line = False
        self._line = 0  # where the line begins that is judged

    def ends_with(self, piece: bytes, late: bool) -> bool:
        """Adds a piece; whether the answer is over. ``late``: its time is."""
        self.text += piece
        if self._has_line and self._indent and self._is_dedented():
            return True
        if b"\n" in piece:
            self._has_line = True
            return late
        return False

    def _is_dedented(self) -> bool:
        if self._line:
            rest = self.text[self._line :]
            blanks = len(rest) - len(rest.lstrip(b" \t"))
            if blanks < len(rest) and blanks < self._indent:
                self.text = self.text[: self._line + blanks]
                return True
        found = self.text.find(b"\n", self._line)
        if found >= 0:
            self._line = found + 1
        return False


def _common(cache: list[int], there: int, prompt: list[int], here: int) -> int:
    """How many tokens are the same from two places on."""
    limit = min(len(cache) - there, len(prompt) - here)
    for count in range(limit):
        if cache[there + count] != prompt[here + count]:
            return count
    return limit
