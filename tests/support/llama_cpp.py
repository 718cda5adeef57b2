"""llama.cpp's own HTTP server in a process, from the wheel of ``xllamacpp`` (extra ``e2e``)."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["KEY", "RunningLlama", "running_llama"]

KEY = "sesame"

_SERVE = """
import sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 4096
params.n_parallel = 2
params.port = 0
params.api_keys = [sys.argv[2]]
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class RunningLlama:
    """``url`` is the base of OpenAI's paths."""

    url: str
    process: subprocess.Popen[str]


@contextlib.contextmanager
def running_llama(gguf: Path) -> Iterator[RunningLlama]:
    """Serves the GGUF file; ends when the block does, or when this process dies."""
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVE, str(gguf), KEY],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http"), f"it ended with {process.wait()}"
        yield RunningLlama(f"{address}/v1", process)
    finally:
        process.kill()
        process.communicate()
