"""What an edit and a look at the tree cost in a large file.

    python benchmarks/context_document.py [--edits 300] [--json]

Makes a Python file of about 1.3 MB and 16,000 lines from the standard library's own sources,
types into it at the top, in the middle and at the end, as an editor would, and prints the
median and the 99th percentile of each step in milliseconds, on the clock and of processor time.
"""

from __future__ import annotations

import argparse
import json
import sysconfig
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from fimble.bench.percentile import percentile
from fimble_context.assembly import assemble
from fimble_context.syntax import (
    Document,
    Edit,
    enclosing_scopes,
    outline,
    references,
    symbols_at,
    text_kind,
)

LINES = 16_000
BYTES = 1_300_000


def large_source() -> str:
    """About 16,000 lines of real code, padded with comments to about 1.3 MB."""
    lines: list[str] = []
    for file in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "from __future__" not in text:
            lines += text.splitlines(keepends=True)
        if len(lines) >= LINES:
            break
    source = "".join(lines[:LINES])
    missing = (BYTES - len(source)) // LINES
    padding = "  # " + "x" * max(missing - 5, 1)
    # Only where a comment cannot change what the line means.
    padded = [
        line.rstrip("\n") + padding * (line.rstrip().endswith((":", ")")) * 3) + "\n"
        if '"""' not in line and not line.rstrip("\n").endswith("\\")
        else line
        for line in lines[:LINES]
    ]
    return "".join(padded)


def count_tokens(texts: Sequence[str]) -> list[int]:
    """A stand-in for a tokenizer: four characters a token."""
    return [len(text) // 4 + 1 for text in texts]


def timed(action: Callable[[], object]) -> tuple[float, float]:
    """How long one call takes: milliseconds on the clock, and of this thread's processor time."""
    start, cpu_start = time.perf_counter(), time.thread_time()
    action()
    return (time.perf_counter() - start) * 1000, (time.thread_time() - cpu_start) * 1000


def percentiles(samples: Iterable[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    ordered = tuple(samples)
    return percentile(ordered, 0.5), percentile(ordered, 0.99)


def measure(source: str, edits: int) -> dict[str, dict[str, float]]:
    """Open the source and type into it; percentiles by step."""
    samples: dict[str, list[tuple[float, float]]] = {}

    def sample(step: str, action: Callable[[], object]) -> None:
        samples.setdefault(step, []).append(timed(action))

    document = Document(source, path="large.py")
    sample("open", partial(Document, source, path="large.py"))
    sample("first parse", lambda: document.tree)
    for share in (0.0, 0.5, 0.999):
        place = document.line_start(document.line_of(int(len(source) * share)))
        for offset, text in enumerate("y = f(x)\n" * (edits // 9 + 1), place):
            sample("apply an edit", partial(document.apply, Edit(offset, offset, text)))
            sample("re-parse after it", lambda: document.tree)
            at = offset + 1
            sample("scopes", partial(enclosing_scopes, document, at))
            sample("symbols around", partial(symbols_at, document, at))
            sample("comment or string", partial(text_kind, document, at))
            near = max(0, at - 1000), at + 1000
            sample("names in 2,000 characters", partial(references, document, *near))
            fill = partial(assemble, document, at, budget=4096, count_tokens=count_tokens)
            sample("assemble 4,096 tokens", fill)
            sample("the same with a skeleton", partial(fill, skeleton=True))
    sample("outline of the whole file", partial(outline, document))
    results = {}
    for step, values in samples.items():
        wall, cpu = (percentiles(column) for column in zip(*values, strict=True))
        names = ("p50", "p99", "cpu_p50", "cpu_p99")
        results[step] = dict(zip(names, (round(value, 3) for value in (*wall, *cpu)), strict=True))
    return results


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--edits", type=int, default=300, help="edits at each of three places")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    source = large_source()
    for name, text in (
        ("ASCII", source),
        ("with non-ASCII text", source.replace("x", "é", 20_000)),
    ):
        results = measure(text, arguments.edits)
        facts = {"characters": len(text), "bytes": len(text.encode()), "lines": text.count("\n")}
        if arguments.json:
            print(json.dumps({"file": name, **facts, "milliseconds": results}))
            continue
        print(f"{name}: {facts['bytes']:,} bytes, {facts['lines']:,} lines")
        for step, values in results.items():
            numbers = "  ".join(f"{key} {value:8.3f}" for key, value in values.items())
            print(f"  {step:32} {numbers}")


if __name__ == "__main__":
    main()
