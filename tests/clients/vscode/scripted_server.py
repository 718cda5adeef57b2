"""``python -m tests.clients.vscode.scripted_server FOLDER ARGUMENTS``: the real program.

``serve`` is the real server with a scripted engine; all else is the real command line.
``FOLDER/script.json`` is read at every request: ``{"rules": [[WORD, ANSWER], …], "delay":
SECONDS, "piece": CHARACTERS, "speed": TOKENS_PER_SECOND, "stopped": true}``. The first rule answers
whose word the prompt has, with a text or a list of candidates; without one the answer is empty.
``speed`` and ``stopped`` are those of Neovim's scripted server. ``FOLDER/pids`` gets a line for
each server that starts, and ``FOLDER/requests`` one, in JSON, for each request to the engine.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from fimble.cli import main as command_line
from fimble.engine.protocol import CompletionRequest
from fimble.lsp.entry import serve
from tests.clients.nvim.scripted_server import HoldingEngine
from tests.support.scripted_engine import Script, prompt_as_text


def main(folder: Path, arguments: list[str]) -> int:
    if arguments != ["serve"]:
        sys.argv = ["fimble", *arguments]
        command_line()
        return 0
    _note(folder / "pids", str(os.getpid()))

    def said() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((folder / "script.json").read_text(encoding="utf-8"))
        return found

    def answer(request: CompletionRequest) -> Script:
        prompt = prompt_as_text(request.prompt) + "".join(m.content for m in request.messages)
        _note(folder / "requests", json.dumps(prompt))
        script = said()
        engine.delay, engine.piece = script.get("delay", 0.0), script.get("piece", 0)
        found: Script = next((text for word, text in script["rules"] if word in prompt), "")
        # As an engine does, no more than were asked for.
        return found[: request.n] if isinstance(found, list) else found

    engine = HoldingEngine(answer)
    engine.said = said
    return serve(None, connect=lambda model, on_event: engine)


def _note(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8", newline="\n") as out:
        out.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
