"""A workspace full of secrets, and every feature at work in it: none of them gets anywhere.

The server is a process at log level ``debug``. Its engine writes down all that it is asked, to be
completed or counted; what is kept in FIMBLE_HOME (index, logs, statistics, answers) is read as
bytes.
"""

from __future__ import annotations

import random
import shutil
import string
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.process import ServerProcess, served

#: Answers noise, and fails at every fifth request, with what it was asked in the error's text.
RECORDING = """
import sys
from pathlib import Path
from fimble.lsp import serve
from tests.support.scripted_engine import ScriptedEngine

record = Path(sys.argv[1])

class Recording(ScriptedEngine):
    async def count_tokens(self, texts):
        self.note(texts)
        return await super().count_tokens(texts)

    def note(self, asked):
        with record.open("a", encoding="utf-8") as file:
            file.write(f"{asked!r}\\n")

def answer(request):
    engine.note(request)
    if len(engine.requests) % 5 == 4:
        raise ValueError(repr(request))
    return "```python\\ndef area_of(width, height):\\n    return height * width\\n```"

engine = Recording(answer)
sys.exit(serve(None, connect=lambda model, on_event: engine))
"""

SOURCE = "def area_of(width, height):\n    return width * height\n"
MAIN = "from shapes import area_of\n\nprint(area_of())\n"
#: Not one of them may be read, whatever is asked.
CLOSED = (
    ".env",
    ".npmrc",
    "id_rsa",
    "secrets.yaml",
    ".aws/credentials",
    "ignored.py",
    "left_out.py",
)
SHAPES_OF_TOKENS = (
    "gh" + "p_{}",
    "AK" + "IA{}",
    "pass" + "word = '{}'",
    "x = 'https://u:{}@host/'",
)


def planted(seed: int) -> Callable[[], str]:
    """Makes tokens, each of them once, whose middle is looked for."""
    chance = random.Random(seed)

    def make() -> str:
        return "".join(chance.choices(string.ascii_uppercase + string.digits, k=36))

    return make


def workspace(folder: Path, make: Callable[[], str]) -> dict[str, str]:
    """Writes it; where each planted secret is. Those in ``shapes.py`` are in an allowed file."""
    secrets: dict[str, str] = {}
    for name in CLOSED:
        secret = secrets[name] = make()
        (folder / name).parent.mkdir(exist_ok=True)
        text = f"def area_of(width, {secret}):\n    return {secret}\n"
        (folder / name).write_text(text, encoding="utf-8")
    lines = []
    for shape in SHAPES_OF_TOKENS:
        secret = secrets[shape] = make()
        lines.append(f"    # {shape.format(secret)}\n")
    text = SOURCE.replace("\n", "\n" + "".join(lines), 1)
    (folder / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    (folder / "main.py").write_text(MAIN, encoding="utf-8")
    (folder / "shapes.py").write_text(SOURCE, encoding="utf-8")
    git = shutil.which("git")
    if git is not None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["init", "-q"], ["add", "shapes.py"], ["commit", "-qm", "first"]):
            subprocess.run([git, *who, *command], cwd=folder, check=True)
        subprocess.run([git, "add", "-f", ".env", "ignored.py"], cwd=folder, check=True)
    else:
        (folder / ".git").mkdir()
    (folder / "shapes.py").write_text(text, encoding="utf-8")
    return secrets


async def every_feature(server: ServerProcess, folder: Path) -> None:
    """Asks for everything, about everything; what is refused is as good as what is answered."""
    wire, uris = server.wire, {each: (folder / each).as_uri() for each in (*CLOSED, "main.py")}
    for name, uri in uris.items():
        wire.open(uri, (folder / name).read_text(encoding="utf-8"))
        wire.change(uri, 2, {"text": "# edited\n", "range": _range(0, 0)})
    asked: list[int] = []

    def command(name: str, *arguments: Any) -> None:
        asked.append(
            wire.ask("workspace/executeCommand", {"command": name, "arguments": list(arguments)})
        )

    def chat(message: str, *attachments: dict[str, Any]) -> None:
        params = {"message": message, "attachments": list(attachments), "conversation": message}
        asked.append(wire.ask("fimble/chat", params))

    for name, uri in uris.items():
        await wire.answer(wire.ask_completion(uri, 1, 14))
        command("fimble.showPrompt", uri, {"line": 1, "character": 14})
        command("fimble.edit", uri, _range(1, 10), "Make it shorter.")
        command("fimble.explain", {"uri": uri, "range": _range(1, 10)})
        chat(f"What is in @file:{name}?")
        chat("And here?", {"kind": "file", "uri": uri}, {"kind": "selection", "uri": uri})
        asked.append(wire.ask("fimble/chatComplete", {"message": f"@file:{name[:3]}", "uri": uri}))
        params = {"uri": uri, "range": _range(1, 2), "version": 2, "text": SOURCE}
        asked.append(wire.ask("fimble/apply", params))
    chat("What does @symbol:area_of do, see @workspace and @diff?", {"kind": "openFiles"})
    chat("And staged?", {"kind": "diff", "staged": True}, {"kind": "workspace"})
    command("fimble.commitMessage", {"uri": uris["main.py"]})
    command("fimble.review", {"uri": uris["main.py"]})
    for request in asked:
        await wire.answer(request)


def _range(first: int, last: int) -> dict[str, Any]:
    return {"start": {"line": first, "character": 0}, "end": {"line": last, "character": 0}}


@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_planted_gets_anywhere(tmp_path: Path, seed: int) -> None:
    home, folder, record = tmp_path / "home", tmp_path / "project", tmp_path / "asked.txt"
    folder.mkdir()
    secrets = workspace(folder, planted(seed))
    options = {"log": {"level": "debug"}, "completion": {"excludePatterns": ["left_out.py"]}}
    async with served(home, [sys.executable, "-c", RECORDING, str(record)]) as server:
        listed = [{"uri": folder.as_uri(), "name": "project"}]
        await server.wire.initialize(workspaceFolders=listed, initializationOptions=options)
        await every_feature(server, folder)
        said = str(server.wire.messages)
        await server.wire.quit()
        assert await server.ended() == 0
        said += await server.stderr()
    asked = record.read_text(encoding="utf-8")
    # The allowed file was read, in the answer to "@diff" at least.
    assert "area_of" in asked
    assert shutil.which("git") is None or "<github-token>" in asked
    kept = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    assert kept
    for where, secret in secrets.items():
        assert secret not in asked, where
        assert secret not in said, where
        for path, content in kept.items():
            assert secret.encode() not in content, (where, path)
