"""A stand-in for DirectML and AMD's GPU provider, which no machine here has.

onnxruntime-genai itself, but for one thing: a generator takes no second append, with the
runtime's own words. ``python -m tests.support.one_append JOURNAL …`` is an engine process on
it. What its generators were asked for stands in the journal, a JSON array a line; while a
file ``JOURNAL.hold`` is there, a prompt that was begun is not computed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import onnxruntime_genai as og
import pytest

from fimble import system
from fimble.engine.options import EngineOptions
from fimble.engine.process import main
from tests.engine.process import RunningEngine, running_engine

__all__ = ["CONTINUOUS_DECODING", "OneAppendEngine", "one_append_engine"]

CONTINUOUS_DECODING = (
    "Continuous decoding is not supported on the selected device type (DML). Please recreate "
    "the generator instance to avoid using continuous decoding."
)
_HOLD_SECONDS = 120.0


class OneAppendGenerator:
    """The real generator, which must be empty when something is appended."""

    def __init__(self, real: Any, journal: Path) -> None:
        self._real = real
        self._journal = journal
        self._held = 0  # tokens; older runtimes do not tell
        self._note("generator")

    def append_tokens(self, ids: Any) -> None:
        if self._held > 0:
            self._note("refused")
            raise RuntimeError(CONTINUOUS_DECODING)
        self._note("append", len(ids))
        hold = self._journal.with_suffix(".hold")
        deadline = time.monotonic() + _HOLD_SECONDS
        while hold.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self._held += len(ids)
        self._real.append_tokens(ids)

    def generate_next_token(self) -> None:
        self._note("next")
        self._held += 1
        self._real.generate_next_token()

    def rewind_to(self, length: int) -> None:
        self._note("rewind", length)
        self._held = length
        self._real.rewind_to(length)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _note(self, *what: str | int) -> None:
        with self._journal.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(what) + "\n")


class OneAppendRuntime:
    """In place of the module."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal

    def Generator(self, model: Any, params: Any) -> OneAppendGenerator:
        return OneAppendGenerator(og.Generator(model, params), self._journal)

    def __getattr__(self, name: str) -> Any:
        return getattr(og, name)


class OneAppendEngine:
    """An engine process, and the work that it was asked for since ``forget``."""

    def __init__(self, engine: RunningEngine, journal: Path) -> None:
        self.engine = engine
        self._journal = journal
        self._seen = 0

    def forget(self) -> None:
        self._seen = len(self._lines())

    def count(self, call: str) -> int:
        """How often the runtime was called so."""
        return sum(each[0] == call for each in self._lines()[self._seen :])

    @property
    def prompts(self) -> list[int]:
        """The tokens of each prompt that was begun, in order."""
        return [each[1] for each in self._lines()[self._seen :] if each[0] == "append"]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Prompts that are begun in the block are computed after it."""
        hold = self._journal.with_suffix(".hold")
        hold.touch()
        try:
            yield
        finally:
            hold.unlink()

    def _lines(self) -> list[list[Any]]:
        return [json.loads(line) for line in self._journal.read_text(encoding="utf-8").splitlines()]


@contextmanager
def one_append_engine(
    home: Path, package: Path, options: EngineOptions | None = None
) -> Iterator[OneAppendEngine]:
    """As ``running_engine``, on this runtime."""
    journal = home / "one_append.journal"
    spawn = system.spawn_detached

    def spawn_ours(command: Sequence[str], *, environ: Mapping[str, str], **more: Any) -> Any:
        assert list(command[1:3]) == ["-m", "fimble.engine"]
        ours = [command[0], "-m", __name__, str(journal), *command[3:]]
        places = [str(Path(__file__).parents[2]), environ.get("PYTHONPATH", "")]
        path = os.pathsep.join(filter(None, places))
        return spawn(ours, environ={**environ, "PYTHONPATH": path}, **more)

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(system, "spawn_detached", spawn_ours)
            engine = stack.enter_context(running_engine(home, package, options))
        yield OneAppendEngine(engine, journal)


if __name__ == "__main__":
    sys.modules["onnxruntime_genai"] = OneAppendRuntime(Path(sys.argv[1]))  # type: ignore[assignment]
    sys.exit(main(sys.argv[2:]))
