"""How good and how fast is an imported package? Compares it with its GGUF file in float32.

    python benchmarks/import_quality.py model.gguf PACKAGE [--positions 2048] [--json]

Agreement: over positions of real code (Python's standard library), how often the package's
most likely next token is that of a float32 forward pass of the GGUF's dequantised weights,
and the mean Kullback-Leibler divergence between the two, in nats. The package's logits are
taken in one go from its graph for all logits, or with --step one token at a time from the
graph that the engine runs, which takes several times as long. A file's first positions are
the hardest, since little is known yet: a short run agrees less than a long one (0.88 over
the first 128 positions, 0.94 from the 384th on).

Speed: tokens a second of one prefill and of greedy decoding, the median of three.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from fimble.models.runtimes import NO_TELEMETRY

os.environ.update(NO_TELEMETRY)

import onnxruntime_genai as og

ROOT = Path(__file__).resolve().parent.parent  # for tests.support
sys.path.insert(0, str(ROOT))

from tests.support.reference import Reference, log_softmax  # noqa: E402

from fimble.models.gguf_import.architecture import (  # noqa: E402
    EMBEDDING,
    HEAD,
    Architecture,
)
from fimble.models.gguf_import.convert import read_architecture  # noqa: E402
from fimble.models.gguf_import.graph import ALL_LOGITS_FILE  # noqa: E402
from fimble.models.gguf_import.reader import GgufFile, open_gguf  # noqa: E402
from fimble.models.gguf_import.weights import GgufWeights  # noqa: E402

F32 = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int32]

FILES = ("heapq.py", "json/decoder.py", "textwrap.py", "queue.py")
POSITIONS_PER_FILE = 512
SKIPPED_CHARACTERS = 3000  # docstrings and licences at the top
PREFILL_TOKENS = 1024
DECODE_TOKENS = 64
RUNS = 3


def samples(tokenizer: Tokenizer, positions: int) -> Iterator[tuple[str, Ids]]:
    """File names and token ids, together ``positions`` of them or all that there are."""
    library = Path(sysconfig.get_path("stdlib"))
    for name in FILES:
        text = (library / name).read_text(encoding="utf-8")
        text = text[text.index("\n", SKIPPED_CHARACTERS) + 1 :]
        count = min(positions, POSITIONS_PER_FILE)
        positions -= count
        if count:
            yield name, np.array(tokenizer.encode(text).ids[:count], dtype=np.int32)


def reference(file: GgufFile, arch: Architecture) -> Reference:
    """A float32 forward pass; one tensor at a time is held dequantised."""
    weights = GgufWeights(file, {} if HEAD in file.tensors else {HEAD: EMBEDDING})

    def get(name: str) -> F32:
        values = weights.rows(name, 0, sum(file.tensors[name].shape[:1]))
        return values[:, 0] if values.shape[1] == 1 else values

    return Reference(arch, get)


class PackageRunner:
    """A loaded package."""

    def __init__(self, package: Path, *, all_logits: bool = False) -> None:
        config = og.Config(str(package))
        if all_logits:
            overlay = {"model": {"decoder": {"filename": ALL_LOGITS_FILE}}}
            config.overlay(json.dumps(overlay))
        self._all_logits = all_logits
        self._model = og.Model(config)

    def _generator(self, length: int) -> og.Generator:
        params = og.GeneratorParams(self._model)
        params.set_search_options(max_length=length)
        return og.Generator(self._model, params)

    def logits(self, ids: Ids) -> F32:
        """Logits [tokens, vocab]."""
        if self._all_logits:
            generator = self._generator(len(ids) + 1)
            generator.append_tokens(ids)
            every: F32 = np.asarray(generator.get_output("logits"))[0]
            return every
        generator = self._generator(len(ids) + 1)
        rows = []
        for token in ids:
            generator.append_tokens(np.array([token], dtype=np.int32))
            rows.append(np.asarray(generator.get_logits())[0, -1].copy())
        return np.stack(rows)

    def speed(self, ids: Ids) -> tuple[float, float]:
        """Tokens a second of prefill and of decode."""
        generator = self._generator(len(ids) + DECODE_TOKENS + 2)
        start = time.perf_counter()
        generator.append_tokens(ids)
        generator.get_logits()
        prefill = len(ids) / (time.perf_counter() - start)
        generator.generate_next_token()
        start = time.perf_counter()
        count = 0
        while count < DECODE_TOKENS and not generator.is_done():
            generator.generate_next_token()
            count += 1
        return prefill, count / (time.perf_counter() - start)


def agreement(expected: F32, got: F32) -> tuple[int, float]:
    """How many positions agree on the likeliest token, and the summed divergence in nats."""
    same = int((expected.argmax(axis=-1) == got.argmax(axis=-1)).sum())
    p, q = log_softmax(expected), log_softmax(got)
    return same, float((np.exp(p) * (p - q)).sum())


def measure(
    gguf: Path, package: Path, positions: int, *, speed: bool, step: bool = False
) -> dict[str, Any]:
    """The figures, by name."""
    tokenizer = Tokenizer.from_file(str(package / "tokenizer.json"))
    runner = PackageRunner(package, all_logits=not step)
    same, divergence, total = 0, 0.0, 0
    if positions:
        with open_gguf(gguf) as file:
            forward = reference(file, read_architecture(file))
            for _, ids in samples(tokenizer, positions):
                agreed, diverged = agreement(forward.logits(ids), runner.logits(ids))
                same, divergence, total = same + agreed, divergence + diverged, total + len(ids)
    result: dict[str, Any] = {"positions": total}
    if total:
        result |= {"top1_agreement": same / total, "mean_kl_nats": divergence / total}
    if speed:
        runner = PackageRunner(package)
        text = "".join(
            (Path(sysconfig.get_path("stdlib")) / name).read_text(encoding="utf-8")
            for name in FILES
        )
        ids = np.array(tokenizer.encode(text).ids[:PREFILL_TOKENS], dtype=np.int32)
        runs = [runner.speed(ids) for _ in range(RUNS)]
        result["prefill_tokens_per_s"] = statistics.median(run[0] for run in runs)
        result["decode_tokens_per_s"] = statistics.median(run[1] for run in runs)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("gguf", type=Path)
    parser.add_argument("package", type=Path)
    parser.add_argument("--positions", type=int, default=2048, help="0 measures speed only")
    parser.add_argument("--no-speed", action="store_true", help="measure agreement only")
    parser.add_argument("--step", action="store_true", help="logits one token at a time")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    result = measure(options.gguf, options.package, options.positions, speed=not options.no_speed)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result.items():
        print(f"{name:24} {value:.4f}" if isinstance(value, float) else f"{name:24} {value}")


if __name__ == "__main__":
    main()
