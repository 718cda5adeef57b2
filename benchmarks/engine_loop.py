"""What the engine's loop costs beside the bare runtime, and what reuse and slices bring.

    python benchmarks/engine_loop.py [PACKAGE] [--json]

All figures come from one run on one machine, the variants by turns: the best of each, since
what disturbs a measurement only ever slows it, and their ratios.
PACKAGE is a name or folder; without one it is the default model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import queue
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fimble.engine.client import LocalEngine
from fimble.engine.control import stop
from fimble.engine.host import ModelHost
from fimble.engine.loaded import LoadedModel
from fimble.engine.metrics import Metrics
from fimble.engine.options import EngineOptions
from fimble.engine.protocol import CompletionChunk, CompletionRequest, Timings, Usage
from fimble.engine.scheduler import Done, Job, Scheduler
from fimble.errors import FimbleError
from fimble.models.runtimes import NO_TELEMETRY
from fimble.models.store import Store

CODE = Path(__file__).read_text(encoding="utf-8")


class Bench:
    """The engine's own scheduler and host in this process, and a bare model beside them."""

    def __init__(self, package: str, window: int) -> None:
        os.environ.update(NO_TELEMETRY)
        import onnxruntime_genai

        self.og: Any = onnxruntime_genai
        self.window = window
        options = EngineOptions(model=package, context_tokens=window, slots=1)
        metrics = Metrics()
        self.host = ModelHost(options, metrics)
        self.scheduler = Scheduler(self.host, metrics)
        self.ask([1], 1)
        assert self.host.loaded is not None
        self.loaded: LoadedModel = self.host.loaded
        self.bare_model = self.og.Model(str(self.loaded.config.folder))

    def ask(self, ids: Sequence[int], tokens: int) -> tuple[Usage, Timings]:
        """One answer by the engine's loop."""
        events: queue.Queue[Any] = queue.Queue()
        request = CompletionRequest(tuple(ids), tokens)
        self.scheduler.submit(Job("", request, events.put))
        last: CompletionChunk | None = None
        while not isinstance(event := events.get(), Done):
            if isinstance(event, FimbleError):
                raise event
            last = event
        assert last is not None and last.usage is not None and last.timings is not None
        return last.usage, last.timings

    def forget(self) -> None:
        """Leaves nothing in the slot that a prompt could share."""
        self.ask([2, 3], 0)

    def generator(self) -> Any:
        params = self.og.GeneratorParams(self.bare_model)
        params.set_search_options(max_length=self.window, do_sample=False)
        return self.og.Generator(self.bare_model, params)

    def bare(self, ids: Sequence[int], tokens: int) -> tuple[float, float]:
        """(prefill seconds, decoded tokens per second) of the runtime's own greedy loop."""
        generator = self.generator()
        begun = time.perf_counter()
        generator.append_tokens(np.asarray(ids, dtype=np.int32))
        generator.get_logits()
        filled = time.perf_counter()
        count = 0
        while count < tokens and not generator.is_done():
            generator.generate_next_token()
            generator.get_next_tokens()
            count += 1
        # As in ours, the first token needs no forward pass of its own.
        return filled - begun, (count - 1) / (time.perf_counter() - filled)


class OverHttp:
    """An engine process, and what a client of it sees."""

    def __init__(self, package: str, window: int) -> None:
        self._loop = asyncio.new_event_loop()
        options = EngineOptions(slots=1, context_tokens=window)
        self._engine = LocalEngine(model=package, options=options)

    def rate(self, ids: Sequence[int], tokens: int) -> float:
        """Tokens per second between the first piece of text and the end of the stream."""
        return self._loop.run_until_complete(self._rate(ids, tokens))

    async def _rate(self, ids: Sequence[int], tokens: int) -> float:
        first = 0.0
        count = 0
        async for chunk in self._engine.complete(CompletionRequest(tuple(ids), tokens)):
            first = first or time.perf_counter()
            if chunk.usage is not None:
                count = chunk.usage.completion_tokens
        return (count - 1) / (time.perf_counter() - first)

    def close(self) -> None:
        self._loop.run_until_complete(self._engine.aclose())
        self._loop.close()
        stop()


def decode(
    bench: Bench, http: OverHttp, ids: Sequence[int], tokens: int, turns: int
) -> dict[str, float]:
    """Tokens per second while generating."""
    bare, ours, client = [], [], []
    http.rate(ids, 2)
    for _ in range(turns):
        bare.append(bench.bare(ids, tokens)[1])
        usage, timings = bench.ask(ids, tokens)
        ours.append((usage.completion_tokens - 1) * 1000 / timings.decode_ms)
        client.append(http.rate(ids, tokens))
    return {
        **_ratio("bare_tokens_per_s", max(bare), "engine_tokens_per_s", max(ours)),
        "http_tokens_per_s": max(client),
        "http_ratio": max(client) / max(bare),
    }


def prefill(bench: Bench, ids: Sequence[int], turns: int) -> dict[str, float]:
    """Seconds for a prompt in one call and in slices."""
    whole, sliced = [], []
    for _ in range(turns):
        whole.append(bench.bare(ids, 0)[0])
        bench.forget()
        sliced.append(bench.ask(ids, 1)[1].prefill_ms / 1000)
    return _ratio("unsliced_s", min(whole), "sliced_s", min(sliced))


def reuse(bench: Bench, ids: Sequence[int], turns: int) -> dict[str, float]:
    """Seconds until the first token of a prompt that shares its beginning with the last."""
    edits: dict[str, Callable[[], list[int]]] = {
        "append_1_s": lambda: [*ids, 100],
        "append_20_s": lambda: [*ids, *range(100, 120)],
        "change_last_20_s": lambda: [*ids[:-20], *range(200, 220)],
        "change_last_100_s": lambda: [*ids[:-100], *range(200, 300)],
    }
    times: dict[str, list[float]] = {"fresh_s": [], **{name: [] for name in edits}}
    for _ in range(turns):
        bench.forget()
        times["fresh_s"].append(bench.ask(ids, 1)[1].prefill_ms / 1000)
        for name, edited in edits.items():
            bench.ask(ids, 1)
            usage, timings = bench.ask(edited(), 1)
            assert usage.reused_tokens >= len(ids) - 100
            times[name].append(timings.prefill_ms / 1000)
    best = {name: min(values) for name, values in times.items()}
    shares = {
        f"{name.removesuffix('_s')}_share": value / best["fresh_s"]
        for name, value in best.items()
        if name != "fresh_s"
    }
    return {**best, **shares}


def _ratio(first: str, one: float, second: str, other: float) -> dict[str, float]:
    return {first: one, second: other, "ratio": other / one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", nargs="?", default="")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--prompt-tokens", type=int, default=384)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    store = Store()
    package = store.find(options.package) if options.package else store.default()
    folder = str(package.path.absolute())
    with tempfile.TemporaryDirectory() as home:
        # An engine of its own, and the private current directory that a model needs.
        os.environ["FIMBLE_HOME"] = home
        os.chdir(home)
        window = options.prompt_tokens * 2 + options.tokens + 64
        bench = Bench(folder, window)
        http = OverHttp(folder, window)
        text = CODE * (1 + options.prompt_tokens // 1000)
        ids = bench.loaded.tokenizer.encode_text(text)[: options.prompt_tokens]
        figures: dict[str, Any] = {
            "package": package.name,
            "provider": bench.loaded.info.provider,
            "continuation": bench.loaded.info.continuation,
            "prompt_tokens": len(ids),
            "decode": decode(bench, http, ids, options.tokens, options.turns),
            "prefill": prefill(bench, ids, options.turns),
            "reuse": reuse(bench, ids, options.turns),
        }
        bench.scheduler.close()
        http.close()
        os.chdir(Path(folder).anchor)
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{name}:")
            for key, number in value.items():
                print(f"    {key:24} {number:8.3f}")
        else:
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
