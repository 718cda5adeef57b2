"""The peer's editor: when llama.vim asks, what it sends, what it keeps and what it shows.

Built from its documented behaviour, with its default settings: 256 lines before and 64 after
the cursor, the cursor's line as the beginning of the middle; a request at every change, put
off by 100 ms while another one is under way, which is never broken off; answers kept by the
hash of their context, also without its first one to three lines, and found again while the
user types in them, up to 128 characters back; the continuation of what is shown asked for at
once; a ring of chunks from where the user was, taken in while he pauses.

Knows nothing of the model: ``complete`` answers requests, one after the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fimble.bench.player import Assistant, Work
from fimble_context.syntax import Document, Edit

__all__ = ["Chunk", "InfillAnswer", "InfillRequest", "LlamaVim", "Ring"]

LINES_BEFORE, LINES_AFTER = 256, 64
MOST_PREDICTED = 128
FIRST_PREDICT_MS, NEXT_PREDICT_MS = 250, 1000
MOST_RIGHT_OF_CURSOR = 8
CACHED = 250
LOOK_BACK = 128
WAIT_SECONDS = 0.1
CHUNKS, CHUNK_LINES, CHUNK_SCOPE = 16, 64, 1024
RING_SECONDS, IDLE_SECONDS = 1.0, 3.0
_FAR_LINES = 32
_ENTERED_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines of a file, as other context."""

    filename: str
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """With a line end behind each line."""
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True, slots=True)
class InfillRequest:
    """What the server is asked. ``indent`` is the least indentation of lines, in characters;
    ``predict_ms`` is the time after which an answer that has a line ends.
    """

    prefix: str
    middle: str
    suffix: str
    extra: tuple[Chunk, ...] = ()
    most_tokens: int = MOST_PREDICTED
    indent: int = 0
    predict_ms: int = 0


@dataclass(frozen=True, slots=True)
class InfillAnswer:
    """What the server answered, and how many prompt tokens it computed for that."""

    content: str
    computed_tokens: int


@dataclass(frozen=True, slots=True)
class _Context:
    """The local context of a place, and the parts of its line."""

    prefix: str
    middle: str
    suffix: str
    indent: int
    right_of_cursor: str

    def keys(self) -> list[bytes]:
        """The hashes an answer is kept by: with and without the first lines."""
        keys = [_hash(self.prefix + self.middle, self.suffix)]
        prefix = self.prefix
        for _ in range(3):
            prefix = prefix.partition("\n")[2]
            if not prefix:
                break
            keys.append(_hash(prefix + self.middle, self.suffix))
        return keys


def _hash(before: str, after: str) -> bytes:
    return hashlib.sha256(f"{before}\0{after}".encode()).digest()


class Ring:
    """The chunks of a session: those in use, and those that wait for a pause."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.chunks: list[Chunk] = []
        self.queued: list[Chunk] = []

    def pick(self, filename: str, lines: Sequence[str], *, evict: bool) -> None:
        """Queues some of ``lines``; ``evict`` says whether it replaces what is like it."""
        if len(lines) < 3:
            return
        chunk = Chunk(filename, tuple(self._some(lines)))
        if any(chunk.lines == other.lines for other in (*self.chunks, *self.queued)):
            return
        for kept in (self.queued, self.chunks):
            for number in range(len(kept) - 1, -1, -1):
                if similarity(kept[number].lines, chunk.lines) > 0.9:
                    if not evict:
                        return
                    del kept[number]
        if len(self.queued) == CHUNKS:
            del self.queued[0]
        self.queued.append(chunk)

    def take_one(self) -> bool:
        """Puts the oldest queued chunk to use; False where there is none."""
        if not self.queued:
            return False
        if len(self.chunks) == CHUNKS:
            del self.chunks[0]
        self.chunks.append(self.queued.pop(0))
        return True

    def drop_like(self, lines: Sequence[str]) -> None:
        """Drops chunks that are like what is around the cursor."""
        around = self._half(lines)
        for number in range(len(self.chunks) - 1, -1, -1):
            if similarity(self.chunks[number].lines, around) > 0.5:
                del self.chunks[number]

    def _some(self, lines: Sequence[str]) -> Sequence[str]:
        return lines if len(lines) + 1 < CHUNK_LINES else self._half(lines)

    def _half(self, lines: Sequence[str]) -> Sequence[str]:
        first = self._random.randint(0, max(0, len(lines) - CHUNK_LINES // 2))
        return lines[first : first + CHUNK_LINES // 2 + 1]


def similarity(one: Sequence[str], other: Sequence[str]) -> float:
    """Of two chunks' words: 1 for the same ones."""
    left, right = (
        [word for word in re.split(r"\W+", "\n".join(lines)) if word] for lines in (one, other)
    )
    if not left and not right:
        return 1.0
    known = set(left)
    return 2.0 * sum(word in known for word in right) / (len(left) + len(right))


class LlamaVim(Assistant):
    """``complete`` is the server: it is asked for one thing after the other."""

    def __init__(
        self, complete: Callable[[InfillRequest], Awaitable[InfillAnswer]], seed: int = 0
    ) -> None:
        self.on_shown = lambda text: None
        self._server = complete
        self.ring = Ring(Random(seed))
        self._cache: OrderedDict[bytes, str] = OrderedDict()
        self._document = Document("")
        self._filename = ""
        self._cursor = 0
        self._picked_line = -9999
        self._modified = False
        self._inserting = False
        self._moved_at = 0.0
        self._content: list[str] | None = None  # what is in view, by lines
        self._acceptable = False
        self._indent = 0
        self._job: asyncio.Task[None] | None = None
        self._jobs: set[asyncio.Task[None]] = set()
        self._retry: asyncio.TimerHandle | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._ring_timer: asyncio.Task[None] | None = None
        self._computed = self._calls = 0

    # --- what the user does --------------------------------------------------------------

    async def open(self, file: Path, text: str, cursor: int) -> None:
        self._document = Document(text, path=str(file), language="python")
        self._filename = file.name
        self._cursor = cursor
        self._modified, self._inserting = False, False
        self._hide()
        loop = asyncio.get_running_loop()
        self._moved_at = loop.time()
        self._timers.append(loop.call_later(_ENTERED_SECONDS, self._pick_here))
        if self._ring_timer is None:
            self._ring_timer = asyncio.create_task(self._update_ring())

    def edit(self, start: int, end: int, text: str) -> None:
        self._document.apply(Edit(start, end, text))
        self._cursor = start + len(text)
        self._modified, self._inserting = True, True
        self._on_move()

    def accept(self, length: int) -> None:
        assert self._content is not None and self._acceptable, "nothing is in view"
        text = "\n".join(self._content)[:length]
        self.edit(self._cursor, self._cursor, text)

    def move(self, cursor: int) -> None:
        self._inserting = False
        self._cursor = cursor
        self._moved_at = asyncio.get_running_loop().time()
        self._hide()

    async def close(self) -> None:
        self._hide()
        for timer in (self._retry, *self._timers):
            if timer is not None:
                timer.cancel()
        self._timers.clear()
        if self._ring_timer is not None:
            self._ring_timer.cancel()
            self._ring_timer = None
        while self._jobs:
            await asyncio.wait(self._jobs)

    async def work(self) -> Work:
        return Work(self._computed, self._calls)

    # --- asking --------------------------------------------------------------------------

    def _on_move(self) -> None:
        """The cursor has moved while text is being put in."""
        self._moved_at = asyncio.get_running_loop().time()
        self._hide()
        self._try_hint()
        self._ask(None, ())

    def _ask(self, place: int | None, previous: Sequence[str]) -> None:
        """Asks for a place (None: where the cursor then is), ``previous`` being what is in
        view there; later, where a request is under way.
        """
        if self._job is not None:
            if self._retry is not None:
                self._retry.cancel()
            loop = asyncio.get_running_loop()
            self._retry = loop.call_later(WAIT_SECONDS, self._ask, place, previous)
            return
        offset = self._cursor if place is None else place
        context = self._context(min(offset, len(self._document.text)), previous)
        if len(context.right_of_cursor) > MOST_RIGHT_OF_CURSOR:
            self.on_shown("")
            return
        keys = context.keys()
        if any(self._cached(key) is not None for key in keys):
            return
        self._indent = context.indent
        line = self._document.line_of(self._cursor)
        self.ring.drop_like(self._lines(line - CHUNK_LINES // 2, line + CHUNK_LINES // 2 + 1))
        request = InfillRequest(
            context.prefix,
            context.middle,
            context.suffix,
            tuple(self.ring.chunks),
            indent=context.indent,
            predict_ms=NEXT_PREDICT_MS if previous else FIRST_PREDICT_MS,
        )
        self._job = asyncio.create_task(self._run(request, keys))
        self._keep(self._job)
        self._pick_far(self._document.line_of(min(offset, len(self._document.text))))

    async def _run(self, request: InfillRequest, keys: list[bytes]) -> None:
        try:
            answer = await self._call(request)
            for key in keys:
                self._put(key, answer.content)
            if self._content is None or not self._acceptable:
                self._try_hint()
        finally:
            self._job = None

    async def _call(self, request: InfillRequest) -> InfillAnswer:
        self._calls += 1
        answer = await self._server(request)
        self._computed += answer.computed_tokens
        return answer

    def _keep(self, job: asyncio.Task[None]) -> None:
        self._jobs.add(job)
        job.add_done_callback(self._jobs.discard)

    # --- the context ---------------------------------------------------------------------

    def _context(self, offset: int, previous: Sequence[str]) -> _Context:
        document = self._document
        number = document.line_of(offset)
        line = document.line_text(number)
        column = offset - document.line_start(number)
        after = self._lines(number + 1, number + 1 + LINES_AFTER)
        if previous:
            # As if what is in view were there already.
            before = self._lines(number - LINES_BEFORE + len(previous) - 1, number)
            before += [line + previous[0], *previous[1:-1]] if len(previous) > 1 else []
            left = line + previous[0] if len(previous) == 1 else previous[-1]
            right, indent = "", self._indent
        else:
            before = self._lines(number - LINES_BEFORE, number)
            blank = not line.strip()
            left, right = ("", "") if blank else (line[:column], line[column:])
            indent = 0 if blank else len(line) - len(line.lstrip())
        suffix = f"{right}\n" + "\n".join(after) + "\n"
        return _Context("\n".join(before) + "\n", left, suffix, indent, right)

    def _lines(self, first: int, end: int) -> list[str]:
        """Lines by number; what is outside of the file is left out."""
        document = self._document
        return [
            document.line_text(number)
            for number in range(max(0, first), min(end, document.line_count))
        ]

    # --- what is kept --------------------------------------------------------------------

    def _cached(self, key: bytes) -> str | None:
        content = self._cache.get(key)
        if content is not None:
            self._cache.move_to_end(key)
        return content

    def _put(self, key: bytes, content: str) -> None:
        if len(self._cache) >= CACHED:
            self._cache.popitem(last=False)
        self._cache[key] = content
        self._cache.move_to_end(key)

    # --- what is shown -------------------------------------------------------------------

    def _hide(self) -> None:
        self._content, self._acceptable = None, False

    def _try_hint(self) -> None:
        """Shows what is kept for the place, or for one before it from which it was typed."""
        if not self._inserting:
            return
        context = self._context(self._cursor, ())
        before = context.prefix + context.middle
        content = self._cached(_hash(before, context.suffix))
        if content is None:
            content = self._typed_through(before, context.suffix)
        if content is None:
            return
        self._render(content)
        if self._content is not None:
            self._ask(self._cursor, tuple(self._content))

    def _typed_through(self, before: str, suffix: str) -> str | None:
        found: str | None = None
        best = 0
        for count in range(1, min(LOOK_BACK, len(before)) + 1):
            content = self._cached(_hash(before[:-count], suffix))
            if not content or content[:count] != before[-count:] or not content[count:]:
                continue
            rest = content[count:]
            if found is None or len(rest) > best:
                # The first one does not count as the best so far.
                best = len(rest) if found is not None else 0
                found = rest
        return found

    def _render(self, content: str) -> None:
        lines = content.split("\n")
        while lines and not lines[-1]:
            lines.pop()
        lines = lines or [""]
        number = self._document.line_of(self._cursor)
        line = self._document.line_text(number)
        column = self._cursor - self._document.line_start(number)
        if not line.strip():
            lead = min(len(lines[0]) - len(lines[0].lstrip()), len(line))
            line, lines[0] = lines[0][:lead], lines[0][lead:]
        left, right = line[:column], line[column:]
        if self._repeats(lines, left, right, number):
            lines = [""]
        lines[-1] += right
        self._content = lines
        text = "\n".join(lines)
        self._acceptable = bool(text.strip())
        self.on_shown(text if self._acceptable else "")

    def _repeats(self, lines: list[str], left: str, right: str, number: int) -> bool:
        """Whether the document goes on with the suggestion already."""
        count = len(lines)
        if count > 1 and not lines[0] and lines[1:] == self._lines(number + 1, number + count):
            return True
        if count == 1 and lines[0] == right:
            return True
        below = number + 1
        last = self._document.line_count - 1
        while below < last and not self._document.line_text(below).strip():
            below += 1
        if self._lines(below, below + 1) != [left + lines[0]]:
            return False
        following = self._lines(below + 1, below + count)
        if count == 2:
            return bool(following) and following[0].startswith(lines[1])
        return count == 1 or lines[1:] == following

    # --- the ring ------------------------------------------------------------------------

    def _pick_here(self) -> None:
        """A file was entered: the lines around the cursor, unless they were changed."""
        if not self._modified:
            line = self._document.line_of(self._cursor)
            half = CHUNK_LINES // 2
            self.ring.pick(self._filename, self._lines(line - half, line + half + 1), evict=True)

    def _pick_far(self, line: int) -> None:
        """Far from the last place: lines from beyond the local context."""
        if abs(line - self._picked_line) <= _FAR_LINES:
            return
        far = self._lines(line - CHUNK_SCOPE, line - LINES_BEFORE + 1)
        below = self._lines(line + LINES_AFTER, line + LINES_AFTER + CHUNK_LINES + 1)
        self.ring.pick(self._filename, far, evict=False)
        self.ring.pick(self._filename, below, evict=False)
        self._picked_line = line

    async def _update_ring(self) -> None:
        """Once a second, in a pause: one more chunk, and a request that has it computed."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(RING_SECONDS)
            idle = not self._inserting or loop.time() - self._moved_at >= IDLE_SECONDS
            if idle and self.ring.take_one():
                self._keep(asyncio.create_task(self._warm()))

    async def _warm(self) -> None:
        await self._call(InfillRequest("", "", "", tuple(self.ring.chunks), most_tokens=0))
