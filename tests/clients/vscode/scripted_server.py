"""``python -m tests.clients.vscode.scripted_server FOLDER ARGUMENTS``: the real program.

``serve`` is the real server with a scripted engine; all else is the real command line.
``FOLDER/script.json`` is read at every request: ``{"rules": [[WORD, ANSWER], …], "delay":
SECONDS, "piece": CHARACTERS}``. The first rule answers whose word the prompt has; without one
the answer is empty. ``FOLDER/pids`` gets a line for each server that starts, and
``FOLDER/requests`` one, in JSON, for each request to the engine.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from fimble.cli import main as command_line
from fimble.engine.protocol import CompletionRequest
from fimble.lsp.entry import serve
from tests.support.scripted_engine import Script, ScriptedEngine, prompt_as_text


def main(folder: Path, arguments: list[str]) -> int:
    if arguments != ["serve"]:
        sys.argv = ["fimble", *arguments]
        command_line()
        return 0
    _note(folder / "pids", str(os.getpid()))

    def answer(request: CompletionRequest) -> Script:
        prompt = prompt_as_text(request.prompt) + "".join(m.content for m in request.messages)
        _note(folder / "requests", json.dumps(prompt))
        script = json.loads((folder / "script.json").read_text(encoding="utf-8"))
        engine.delay, engine.piece = script.get("delay", 0.0), script.get("piece", 0)
        found: Script = next((text for word, text in script["rules"] if word in prompt), "")
        return found

    engine = ScriptedEngine(answer)
    return serve(None, connect=lambda model, on_event: engine)


def _note(file: Path, line: str) -> None:
    with file.open("a", encoding="utf-8", newline="\n") as out:
        out.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
