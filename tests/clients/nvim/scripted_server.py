"""``python -m tests.clients.nvim.scripted_server FILE``: the real server, a scripted engine.

``FILE`` is JSON and read at every request: ``{"rules": [[WORD, ANSWER], …], "delay": SECONDS,
"piece": CHARACTERS, "hold": SECONDS, "speed": TOKENS_PER_SECOND, "stopped": true}``. The first
rule answers whose word the prompt has; ANSWER is a text, or a list of candidates. Without one the
answer is empty. ``delay`` comes before each piece, ``hold`` after it; behind a piece nothing comes
as long as the file says ``stopped``. ``speed`` is what the engine says of itself: a slow one is not
waited for.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fimble.engine.base import ModelInfo
from fimble.engine.protocol import CompletionChunk, CompletionRequest
from fimble.lsp.entry import serve
from tests.support.scripted_engine import Script, ScriptedEngine, prompt_as_text


class HoldingEngine(ScriptedEngine):
    """May stop after each piece, so that half an answer can be looked at."""

    hold: float = 0.0
    said: Callable[[], dict[str, Any]]

    async def model_info(self) -> ModelInfo:
        return replace(self.info, decode_tokens_per_s=self.said().get("speed", 0.0))

    async def complete(self, request: CompletionRequest) -> AsyncGenerator[CompletionChunk, None]:
        async for chunk in super().complete(request):
            yield chunk
            await asyncio.sleep(self.hold)
            while self.said().get("stopped"):
                await asyncio.sleep(0.02)


def main(file: Path) -> int:
    def said() -> dict[str, Any]:
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return found

    def answer(request: CompletionRequest) -> Script:
        script = said()
        engine.delay, engine.piece = script.get("delay", 0.0), script.get("piece", 0)
        engine.hold = script.get("hold", 0.0)
        prompt = prompt_as_text(request.prompt) + "".join(m.content for m in request.messages)
        for word, text in script["rules"]:
            if word in prompt:
                # As an engine does, no more than were asked for.
                found: Script = text[: request.n] if isinstance(text, list) else text
                return found
        return ""

    engine = HoldingEngine(answer)
    engine.said = said
    return serve(None, connect=lambda model, on_event: engine)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
