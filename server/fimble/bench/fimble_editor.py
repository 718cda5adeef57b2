"""fimble as it is used: an editor that speaks to the real server over standard streams.

The editor asks at each change, as editors do, and cancels what it asked before. What the
model computes is read from the engine's own counts; the engine is one of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx

from fimble.bench.player import Assistant, Work
from fimble.engine import control
from fimble.engine.address import EngineAddress, read_address
from fimble.errors import EngineUnavailable
from fimble.lsp.editor import Editor, Proposal, ready_editor

__all__ = ["FimbleEditor", "fimble_editor", "own_home"]


class FimbleEditor(Assistant):
    """``editor`` is connected, and its server's engine is the one at ``address``."""

    def __init__(self, editor: Editor, address: EngineAddress) -> None:
        self.on_shown = lambda text: None
        self.editor = editor
        self._proposal: Proposal | None = None
        self._asking: asyncio.Task[None] | None = None
        self._http = httpx.AsyncClient(
            base_url=address.url,
            headers={"Authorization": f"Bearer {address.secret}"},
            trust_env=False,
            timeout=None,
        )

    async def open(self, file: Path, text: str, cursor: int) -> None:
        self.editor.open(file, text, "python", cursor)
        self.editor.move(cursor)

    def edit(self, start: int, end: int, text: str) -> None:
        self.editor.replace(start, end, text)
        self._ask()

    def accept(self, length: int) -> None:
        proposal = self._proposal
        assert proposal is not None, "nothing is in view"
        whole = length == len(proposal.text)
        self.editor.accept(proposal, None if whole else length)
        self._ask()

    def move(self, cursor: int) -> None:
        self._forget()
        self.editor.move(cursor)

    async def close(self) -> None:
        self._forget()
        self.editor.close()

    async def work(self) -> Work:
        response = await self._http.get("/metrics")
        counts: dict[str, int] = {}
        for line in response.text.splitlines():
            name, _, value = line.partition(" ")
            if not line.startswith("#"):
                counts[name] = int(float(value))
        calls = sum(n for name, n in counts.items() if name.startswith("fimble_requests_total"))
        return Work(counts["fimble_prompt_tokens_computed_total"], calls)

    async def aclose(self) -> None:
        """Ends the connection to the engine; the editor is whoever made it's affair."""
        await self._http.aclose()

    def _ask(self) -> None:
        self._forget()
        self._asking = asyncio.create_task(self._show())

    def _forget(self) -> None:
        self._proposal = None
        if self._asking is not None:
            self._asking.cancel()

    async def _show(self) -> None:
        proposals = await self.editor.ask()
        cursor = self.editor.cursor
        # An item that replaces something else would not be the line the user has typed.
        fitting = [each for each in proposals if each.start == each.end == cursor]
        self._proposal = fitting[0] if fitting else None
        self.on_shown(fitting[0].text if fitting else "")


@contextlib.asynccontextmanager
async def fimble_editor(package: Path, workspace: Path) -> AsyncIterator[FimbleEditor]:
    """fimble on ``workspace`` with an engine of its own for the model ``package``.

    Raises FimbleError where that does not start.
    """
    with own_home():
        async with ready_editor(str(package), workspace) as editor:
            address = read_address()
            if address is None:
                raise EngineUnavailable("The engine ended as soon as it was ready.")
            assistant = FimbleEditor(editor, address)
            try:
                yield assistant
            finally:
                await assistant.aclose()


@contextlib.contextmanager
def own_home() -> Iterator[None]:
    """A FIMBLE_HOME for this process and its children; its engine ends with it.

    The user's own engine may be at work for a window, and its counts would be mixed up.
    """
    before = os.environ.get("FIMBLE_HOME")
    with tempfile.TemporaryDirectory(prefix="fimble-bench-", ignore_cleanup_errors=True) as home:
        os.environ["FIMBLE_HOME"] = home
        try:
            yield
        finally:
            control.stop()
            if before is None:
                del os.environ["FIMBLE_HOME"]
            else:
                os.environ["FIMBLE_HOME"] = before
