"""The peer's editor, with a scripted server (a fake) on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any

from fimble.bench.llama_vim import Chunk, InfillAnswer, InfillRequest, LlamaVim, Ring, similarity
from tests.bench.virtual_time import run


class FakeServer:
    """Answers with ``content(request)`` after ``seconds``, one request at a time."""

    def __init__(self, content: Callable[[InfillRequest], str], seconds: float = 0.15) -> None:
        self._content = content
        self._seconds = seconds
        self._slot = asyncio.Lock()
        self.requests: list[InfillRequest] = []

    async def __call__(self, request: InfillRequest) -> InfillAnswer:
        self.requests.append(request)
        async with self._slot:
            await asyncio.sleep(self._seconds)
        return InfillAnswer(self._content(request) if request.most_tokens else "", 5)

    @property
    def asked(self) -> list[tuple[str, int]]:
        """The line up to the cursor of each completion, and its time limit."""
        return [(r.middle, r.predict_ms) for r in self.requests if r.most_tokens]


Steps = Callable[[LlamaVim, list[str]], Coroutine[Any, Any, None]]


def in_vim(source: str, content: Callable[[InfillRequest], str], steps: Steps) -> FakeServer:
    """A session in ``source`` (cursor at │); ``steps`` gets what was shown so far."""

    async def work() -> FakeServer:
        server = FakeServer(content)
        vim = LlamaVim(server)
        shown: list[str] = []
        vim.on_shown = shown.append
        before, _, after = source.partition("│")
        await vim.open(Path("a.py"), before + after, len(before))
        await steps(vim, shown)
        await vim.close()
        return server

    return run(work())


async def type_text(vim: LlamaVim, text: str, at: int, pause: float) -> int:
    for character in text:
        vim.edit(at, at, character)
        at += 1
        await asyncio.sleep(pause)
    return at


def test_the_line_is_the_middle_and_windows_are_counted_in_lines() -> None:
    source = "".join(f"a{n}\n" for n in range(300)) + "│\n" + "".join(f"b{n}\n" for n in range(99))

    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        await type_text(vim, "x", source.index("│"), 0.01)

    request = in_vim(source, lambda request: "", steps).requests[0]
    assert request.prefix == "".join(f"a{n}\n" for n in range(44, 300))
    assert request.middle == "x"
    assert request.suffix == "\n" + "".join(f"b{n}\n" for n in range(64))


def test_a_blank_line_begins_at_its_start() -> None:
    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        await type_text(vim, "  ", 7, 1.0)
        assert shown[-1] == "  pass"  # what the line has is not shown again

    server = in_vim("def f:\n│", lambda request: "    pass\n", steps)
    assert server.requests[0].middle == ""


def test_keys_wait_for_the_request_under_way_and_none_is_broken_off() -> None:
    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        at = await type_text(vim, "abc", 0, 0.04)
        assert vim._calls == 1
        await asyncio.sleep(0.4)
        assert at == 3

    asked = in_vim("│", lambda request: "", steps).asked
    assert asked == [("a", 250), ("abc", 250)]


def test_what_is_shown_is_kept_while_it_is_typed_and_its_continuation_is_asked_for() -> None:
    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        at = await type_text(vim, "r", 0, 1.0)
        assert shown == ["eturn x"]
        vim.edit(at, at, "e")
        assert shown == ["eturn x", "turn x"]  # at once
        await asyncio.sleep(1)

    server = in_vim("│", lambda r: "eturn x" if r.middle == "r" else "", steps)
    # The second request is for what would stand there; typing on asks all the same.
    assert server.asked == [("r", 250), ("return x", 1000), ("re", 250)]


def test_no_request_for_what_is_kept() -> None:
    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        at = await type_text(vim, "ab", 0, 1.0)
        vim.edit(at - 1, at, "")
        await asyncio.sleep(1)

    assert in_vim("│", lambda request: "", steps).asked == [("a", 250), ("ab", 250)]


def test_nothing_is_asked_left_of_a_long_rest() -> None:
    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        await type_text(vim, "x", 0, 1.0)
        assert shown == [""]

    assert in_vim("│123456789", lambda request: "y", steps).requests == []
    assert in_vim("│12345678", lambda r: "", _type_x).asked[0] == ("x", 250)


async def _type_x(vim: LlamaVim, shown: list[str]) -> None:
    await type_text(vim, "x", 0, 1.0)


def test_what_follows_is_not_suggested_again() -> None:
    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        await type_text(vim, "p", 0, 1.0)
        assert shown == [""]

    in_vim("│\n\nprint(1)\n", lambda request: "rint(1)", steps)


def test_chunks_are_taken_in_while_the_user_pauses() -> None:
    lines = "".join(f"line_{n} = {n}\n" for n in range(20))

    async def steps(vim: LlamaVim, shown: list[str]) -> None:
        await asyncio.sleep(1.5)
        assert [chunk.filename for chunk in vim.ring.chunks] == ["a.py"]
        await type_text(vim, "x", 0, 1.0)

    server = in_vim(f"│{lines}", lambda request: "", steps)
    warm = server.requests[0]
    assert (warm.most_tokens, warm.prefix, warm.middle, warm.suffix) == (0, "", "", "")
    assert len(warm.extra) == 1


def test_the_ring_keeps_no_two_of_a_kind() -> None:
    def numbered(name: str) -> list[str]:
        return [f"{name}_{n} = {name}" for n in range(10)]

    ring = Ring(Random(0))
    for name in ("a", "b", "a"):
        ring.pick("f.py", numbered(name), evict=True)
    ring.pick("f.py", [*numbered("b"), "more"], evict=False)
    assert [chunk.lines[0] for chunk in ring.queued] == ["a_0 = a", "b_0 = b"]
    ring.pick("f.py", [*numbered("b"), "more"], evict=True)
    assert [len(chunk.lines) for chunk in ring.queued] == [10, 11]
    for name in "cdefghijklmnopqrstuvw":
        ring.pick("f.py", numbered(name), evict=True)
    assert len(ring.queued) == 16
    assert ring.take_one() and len(ring.chunks) == 1


def test_similarity_is_of_words() -> None:
    def of(one: str, other: str) -> float:
        return similarity(one.split("\n"), other.split("\n"))

    assert of("a b\nc d", "d c\nb a") == 1.0
    assert of("a b", "c d") == 0.0
    assert of("", "") == 1.0


def test_a_chunk_ends_with_a_line_end() -> None:
    lines: Sequence[str] = ("a", "b")
    assert Chunk("f.py", tuple(lines)).text == "a\nb\n"
