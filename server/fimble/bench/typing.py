"""Typing sessions with fimble and with its peer, and the figures that come of them.

Both play the same sessions, one after the other, on the same clock.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fimble.bench.fimble_editor import fimble_editor
from fimble.bench.llama_binding import LlamaBinding
from fimble.bench.llama_server import LlamaServer
from fimble.bench.llama_vim import InfillAnswer, InfillRequest, LlamaVim
from fimble.bench.packages import copy_packages
from fimble.bench.percentile import percentile
from fimble.bench.player import Assistant, Played, play
from fimble.bench.session import Session, draw_sessions
from fimble.errors import UsageError

__all__ = ["Figures", "compare", "figures", "llama_vim", "play_all", "ratio", "with_sessions"]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median and the 95th percentile; None where nothing was measured."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """What sessions were like. Token counts are those of prompts."""

    latency_ms: Spread
    computed_tokens_per_keystroke: Spread
    computed_tokens: int
    model_calls: int
    shown: int
    right: int
    accepted: int
    keystrokes: int
    keystrokes_with_suggestion: int
    lines: int


def figures(played: Played) -> Figures:
    """The figures of what was played."""
    keystrokes = played.keystrokes
    latencies = [each.latency_ms for each in keystrokes if each.latency_ms is not None]
    return Figures(
        latency_ms=_spread(latencies),
        computed_tokens_per_keystroke=_spread([each.computed_tokens for each in keystrokes]),
        computed_tokens=played.work.computed_tokens,
        model_calls=played.work.model_calls,
        shown=played.shown,
        right=played.right,
        accepted=played.accepted,
        keystrokes=len(keystrokes),
        keystrokes_with_suggestion=len(latencies),
        lines=played.lines,
    )


def ratio(ours: Figures, peer: Figures) -> dict[str, Any]:
    """Ours divided by the peer's, under the same names; None where the peer's is nothing."""

    def divide(left: Any, right: Any) -> Any:
        if isinstance(left, dict):
            return {key: divide(left[key], right[key]) for key in left}
        return round(left / right, 3) if left is not None and right else None

    names = (
        "latency_ms", "computed_tokens_per_keystroke", "computed_tokens", "model_calls",
        "shown", "right",
    )  # fmt: skip
    left, right = asdict(ours), asdict(peer)
    return {name: divide(left[name], right[name]) for name in names}


def compare(ours: Figures, peer: Figures | None) -> dict[str, Any]:
    """All figures as plain data."""
    found: dict[str, Any] = {"ours": asdict(ours)}
    if peer is not None:
        found |= {"peer": asdict(peer), "ratio": ratio(ours, peer)}
    return found


@asynccontextmanager
async def with_sessions(
    packages: Sequence[str], count: int, keystrokes: int, seed: int
) -> AsyncIterator[tuple[Path, list[Session]]]:
    """A workspace with copies of packages, and sessions in it.

    What is to be typed is taken out of the files, so that nobody finds it there. Raises
    UsageError where there are no files to type in.
    """
    with tempfile.TemporaryDirectory(prefix="fimble-bench-", ignore_cleanup_errors=True) as made:
        workspace = Path(made).resolve() / "workspace"
        folders = copy_packages(packages, workspace)
        sessions = draw_sessions(folders, count, keystrokes, seed)
        if not sessions:
            raise UsageError(
                f"No function in the packages takes about {keystrokes} keystrokes.",
                next_step="Choose another number of --keystrokes, or other --packages.",
            )
        for session in sessions:
            session.file.write_text(session.text, encoding="utf-8", newline="\n")
        yield workspace, sessions


async def play_all(
    sessions: Sequence[Session], assistant: Assistant, say: Callable[[str], None]
) -> Played:
    """All sessions, one after the other."""
    played = Played()
    for number, session in enumerate(sessions, 1):
        say(f"session {number} of {len(sessions)}: {session.file.parent.name}/{session.file.name}")
        await play(session, assistant, played)
    return played


@asynccontextmanager
async def llama_vim(gguf: Path, threads: int, seed: int) -> AsyncIterator[LlamaVim]:
    """The peer with its model loaded. Raises UsageError without the binding, and LoadFailed."""
    loop = asyncio.get_running_loop()
    # One thread: the server's only slot answers one request after the other.
    with ThreadPoolExecutor(1, "llama") as pool:
        server = LlamaServer(await loop.run_in_executor(pool, LlamaBinding, gguf, threads))

        async def complete(request: InfillRequest) -> InfillAnswer:
            return await loop.run_in_executor(pool, server.answer, request)

        yield LlamaVim(complete, seed)


async def play_ours(
    package: Path, workspace: Path, sessions: Sequence[Session], say: Callable[[str], None]
) -> Played:
    """The sessions with fimble."""
    async with fimble_editor(package, workspace) as editor:
        return await play_all(sessions, editor, say)


async def play_peer(
    gguf: Path, threads: int, sessions: Sequence[Session], seed: int, say: Callable[[str], None]
) -> Played:
    """The sessions with llama.vim's way over llama.cpp."""
    async with llama_vim(gguf, threads, seed) as vim:
        return await play_all(sessions, vim, say)


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(None, None)
    return Spread(round(percentile(values, 0.5), 1), round(percentile(values, 0.95), 1))
