"""Windows of two releases of fimble at once: one engine, and no taking turns.

The other release is a copy of this one that says another version, and another protocol.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import fimble
from fimble.engine.launcher import log_path
from fimble.engine.protocol import PROTOCOL_VERSION
from tests.lsp.faults.window import window
from tests.lsp.process import engine_pid

#: ``fimble serve --model`` of the copy that the first argument names, for its engine too.
SERVE = """
import os, sys

copy, model = sys.argv[1:]
sys.path.insert(0, copy)
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
from fimble.lsp import serve

sys.exit(serve(model))
"""


def other_release(
    folder: Path, version: str, protocol: int, *, patience: float | None = None
) -> Path:
    """A copy of fimble below ``folder`` that says these of itself. ``patience`` is for how many
    seconds it lets an older engine go on with what it was asked.
    """
    copy = folder / version
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(fimble.__file__).parent, copy / "fimble", ignore=unwanted)
    changes_to = [
        ("__init__.py", r'(?m)^__version__ = ".*"$', f'__version__ = "{version}"'),
        ("engine/protocol.py", r"(?m)^PROTOCOL_VERSION = .*$", f"PROTOCOL_VERSION = {protocol}"),
    ]
    if patience is not None:
        said = f"_FINISH_SECONDS = {patience}"
        changes_to.append(("engine/launcher.py", r"(?m)^_FINISH_SECONDS = .*$", said))
    for name, found, said in changes_to:
        file = copy / "fimble" / name
        text, changes = re.subn(found, said, file.read_text(encoding="utf-8"))
        assert changes == 1, name
        file.write_text(text, encoding="utf-8", newline="\n")
    return copy


def serve(release: Path, model: Path) -> list[str]:
    return [sys.executable, "-c", SERVE, str(release), str(model)]


def engines_started() -> list[str]:
    """Their releases, by what each engine says first in the log."""
    log = log_path().read_text(encoding="utf-8")
    return re.findall(r": fimble (\S+) with onnxruntime", log)


async def test_the_newer_protocol_has_its_way_and_the_older_window_is_told_once(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    newer = other_release(tmp_path, "99.0.0", PROTOCOL_VERSION + 1)
    async with window(home, tmp_path / "old", ["--model", str(tiny)]) as old:
        assert await old.completes()
        first = engine_pid(home)
        async with window(home, tmp_path / "new", command=serve(newer, tiny)) as new:
            assert await new.completes()
            second = engine_pid(home)
            assert second != first
            for _ in range(3):
                old.type()
                await old.answer(old.ask())
                await old.types_on()
                assert await new.completes()
            assert engine_pid(home) == second
            assert engines_started() == [fimble.__version__, "99.0.0"]
            assert not new.told
        assert len(old.told) == 1
        assert "newer fimble (99.0.0)" in old.told[0]


async def test_a_chat_that_outlasts_its_engine_ends_and_the_older_window_is_told_once(
    home: Path, slow: Path, tmp_path: Path
) -> None:
    newer = other_release(tmp_path, "99.0.0", PROTOCOL_VERSION + 1, patience=0.0)
    async with window(home, tmp_path / "old", ["--model", str(slow)]) as old:
        chat = old.ask_chat("Tell me a long story.")
        await old.chat_streams()
        async with window(home, tmp_path / "new", command=serve(newer, slow)) as new:
            assert await new.completes()
            ended = await old.answer(chat)
            assert "ended while it answered" in ended["error"]["message"]
            for _ in range(3):
                old.type()
                await old.answer(old.ask())
            refused = await old.answer(old.ask_chat("Go on."))
            assert "newer fimble (99.0.0)" in refused["error"]["message"]
            await old.types_on()
            assert await new.completes()
            assert not new.told
        assert len(old.told) == 1
        assert "newer fimble (99.0.0)" in old.told[0]


async def test_releases_of_one_protocol_share_the_engine_that_runs(
    home: Path, tiny: Path, tmp_path: Path
) -> None:
    newer = other_release(tmp_path, "99.0.0", PROTOCOL_VERSION)
    async with window(home, tmp_path / "old", ["--model", str(tiny)]) as old:
        assert await old.completes()
        async with window(home, tmp_path / "new", command=serve(newer, tiny)) as new:
            for _ in range(2):
                assert await new.completes()
                assert await old.completes()
            assert not new.told
        assert not old.told
    assert engines_started() == [fimble.__version__]
