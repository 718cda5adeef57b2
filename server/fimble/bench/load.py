"""Many windows that type over one engine at once, with a chat running beside them.

Every window is a real ``fimble serve`` process with a file of its own. Keys come in bursts:
within a burst each request is cancelled by the next key, as editors do; at its end the typist
waits for the answer, which is what is timed. Counts what was asked and answered, and looks at
the memory of each process.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from fimble.bench.fimble_editor import own_home
from fimble.bench.percentile import percentile
from fimble.engine.address import read_address
from fimble.engine.client import LocalEngine
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import ChatMessage, CompletionRequest
from fimble.errors import EngineUnavailable
from fimble.lsp.editor import Editor, ready_editor
from fimble.models.inspection import inspect_package
from fimble.models.memory_plan import plan_slots
from fimble.models.report import memory_need
from fimble.models.store import Package

__all__ = [
    "WINDOW_LIMIT",
    "Client",
    "Load",
    "planned_bytes",
    "run_load",
    "typed_by",
    "window_bytes",
    "windows",
]

WINDOW_LIMIT = 120 << 20
"""What one more window may take, in bytes: its server and its indexer."""

BURST = 5
#: Real enough for a model to have an opinion, and to be typed by everybody at another place.
_CODE = '''
def totals(rows, key):
    """Sums of the rows by their key."""
    found = {}
    for row in rows:
        found[row[key]] = found.get(row[key], 0) + row["amount"]
    return found


def largest(found, count):
    ordered = sorted(found.items(), key=lambda item: item[1], reverse=True)
    return [name for name, amount in ordered[:count]]


def report(rows):
    lines = []
    for name in largest(totals(rows, "customer"), 10):
        lines.append(f"{name:20} {totals(rows, 'customer')[name]:10.2f}")
    return "\\n".join(lines)
'''


@dataclass(frozen=True, slots=True)
class Client:
    """What one window asked and got. ``seconds`` are those of the requests that were waited
    for, ``bytes`` the memory that is this window's alone.
    """

    asked: int
    lost: int
    doubled: int
    seconds: tuple[float, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Load:
    """``chats`` were answered whole meanwhile. ``engine_bytes`` is the engine's resident
    memory at the end, ``planned_bytes`` what the memory plan allows it.
    """

    clients: tuple[Client, ...]
    chats: int
    chat_tokens: int
    messages: int
    engine_bytes: int
    planned_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Times in milliseconds; ``fairness`` is the slowest client's median to the fastest's."""
        medians = [percentile(client.seconds, 0.5) for client in self.clients]
        return {
            "editors": len(self.clients),
            "windows": "one fimble serve process each",
            "clients": [_client_json(client) for client in self.clients],
            "latency_ms": _latency([s for client in self.clients for s in client.seconds]),
            "fairness": round(max(medians) / min(medians), 2) if min(medians) else None,
            "asked": sum(client.asked for client in self.clients),
            "lost": sum(client.lost for client in self.clients),
            "doubled": sum(client.doubled for client in self.clients),
            "messages": self.messages,
            "chats": self.chats,
            "chat_tokens": self.chat_tokens,
            "window_bytes_max": max(client.bytes for client in self.clients),
            "window_bytes_limit": WINDOW_LIMIT,
            "engine_bytes": self.engine_bytes,
            "engine_planned_bytes": self.planned_bytes,
        }


def _client_json(client: Client) -> dict[str, Any]:
    return {
        "asked": client.asked,
        "lost": client.lost,
        "doubled": client.doubled,
        "latency_ms": _latency(client.seconds),
        "bytes": client.bytes,
    }


def _latency(seconds: tuple[float, ...] | list[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return {name: round(percentile(seconds, share) * 1000, 1) for name, share in shares.items()}


async def run_load(package: Package, editors: int, bursts: int, *, pause: float = 0.15) -> Load:
    """``editors`` windows type ``bursts`` times over an engine of their own for ``package``,
    with ``pause`` seconds between two keys.

    Raises FimbleError where that does not start.
    """
    messages: list[str] = []
    with own_home():
        async with windows(package, editors, messages) as opened, _chatting(package) as chat:
            clients = await asyncio.gather(
                *(typed_by(editor, workspace, bursts, pause) for editor, workspace in opened)
            )
            address = read_address()
            if address is None:
                raise EngineUnavailable(
                    "The engine ended while it was used.", next_step="Its log says why."
                )
            engine_bytes = psutil.Process(address.pid).memory_info().rss
        return Load(
            tuple(clients), chat.answers, chat.tokens, len(messages), engine_bytes,
            planned_bytes(package, EngineOptions()),
        )  # fmt: skip


@contextlib.asynccontextmanager
async def windows(
    package: Package, count: int, messages: list[str]
) -> AsyncIterator[list[tuple[Editor, Path]]]:
    """So many windows with a folder each, ready to complete; ``messages`` gets what they show."""
    with tempfile.TemporaryDirectory(prefix="fimble-load-") as folder:
        async with contextlib.AsyncExitStack() as stack:
            opened = []
            for number in range(count):
                workspace = Path(folder) / f"project-{number}"
                workspace.mkdir()
                editor = ready_editor(str(package.path), workspace, on_message=messages.append)
                opened.append((await stack.enter_async_context(editor), workspace))
            yield opened


async def typed_by(editor: Editor, workspace: Path, bursts: int, pause: float) -> Client:
    """One typist, from an empty file on."""
    path = workspace / "report.py"
    path.write_text("", encoding="utf-8", newline="\n")
    editor.open(path, "", "python")
    seconds = []
    keys = 0
    for _ in range(bursts):
        asking: asyncio.Task[Any] | None = None
        begun = 0.0
        for _ in range(BURST):
            if asking is not None:
                await asyncio.sleep(pause)
                asking.cancel()
            editor.type_text(_CODE[keys % len(_CODE)])
            keys += 1
            begun = time.perf_counter()
            asking = asyncio.create_task(editor.ask())
            await asyncio.sleep(0)  # lets it go out before the next key
        assert asking is not None
        await asking
        seconds.append(time.perf_counter() - begun)
    await editor.settled()
    answers = [editor.responses[each] for each in editor.asked]
    return Client(
        asked=len(answers),
        lost=answers.count(0),
        doubled=sum(count > 1 for count in answers),
        seconds=tuple(seconds),
        bytes=window_bytes(editor.server_pid),
    )


@dataclass
class _Chat:
    answers: int = 0
    tokens: int = 0


@contextlib.asynccontextmanager
async def _chatting(package: Package) -> AsyncIterator[_Chat]:
    """While the block runs, somebody chats: one question after another."""
    engine = LocalEngine(model=str(package.path))
    question = ChatMessage("user", "Explain what a hash table is, at length.")
    request = CompletionRequest("", max_tokens=256, priority="chat", messages=(question,))
    chat = _Chat()

    async def ask() -> None:
        while True:
            async for chunk in engine.complete(request):
                chat.tokens += bool(chunk.text)
            chat.answers += 1

    asking = asyncio.create_task(ask())
    try:
        yield chat
        if asking.done():  # only by a failure
            await asking
    finally:
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        await engine.aclose()


def window_bytes(server: int) -> int:
    """The memory of a server process and its indexer that would be free without them."""
    process, engine = psutil.Process(server), read_address()
    # The engine is the child of the window that started it, and belongs to all.
    apart = None if engine is None else engine.pid
    family = [process, *(each for each in process.children() if each.pid != apart)]
    return sum(int(each.memory_full_info().uss) for each in family)


def planned_bytes(package: Package, options: EngineOptions) -> int:
    """What the memory plan allows an engine that has ``package`` loaded."""
    need = memory_need(inspect_package(package))
    plan = plan_slots(need, slots=options.slots, free=None, setting=options.context_tokens)
    return plan.total
