"""What it costs to index a workspace, in time and memory, and what typing feels of it.

    python benchmarks/context_index.py [--files 10000] [--json] [--workspace FOLDER]

Makes a workspace of source files from the standard library and the installed packages (or
takes a folder), indexes it cold and again warm, and meanwhile edits an open document of about
1.3 MB the way an editor does: an edit is ``Document.apply`` and ``WorkspaceIndex.update``.
Before that it is edited with no index at work, for comparison: on a machine that has other
things to do, a keystroke waits for those too. Times are seconds unless named otherwise;
memory is the resident set, sampled.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fimble.bench.packages import make_workspace
from fimble.bench.typist import Memory, Times, Typist, percentiles
from fimble_context.index import WorkspaceIndex

CONTROL_SECONDS = 30.0


@dataclass
class Figures:
    """What is measured; ``*_p99_ms`` and ``*_p50_ms`` are of single calls."""

    files: int = 0
    megabytes: float = 0.0
    indexed_files: int = 0
    idle_edit_p50_ms: float = 0.0
    idle_edit_p99_ms: float = 0.0
    cold_seconds: float = 0.0
    cold_processor_seconds: float = 0.0
    cold_edit_p50_ms: float = 0.0
    cold_edit_p99_ms: float = 0.0
    cold_edit_max_ms: float = 0.0
    edits: int = 0
    process_peak_mb: float = 0.0
    own_growth_peak_mb: float = 0.0
    store_mb: float = 0.0
    warm_first_answer_seconds: float = 0.0
    warm_scan_seconds: float = 0.0
    warm_files_read: int = 0
    definitions_p50_ms: float = 0.0
    definitions_p99_ms: float = 0.0
    similar_p50_ms: float = 0.0
    similar_p99_ms: float = 0.0
    close_seconds: float = 0.0


def timed_questions(index: WorkspaceIndex, files: list[Path], figures: Figures) -> None:
    """Ask for definitions and similar files, by what is in files of the workspace."""
    chosen = random.Random(1).sample(files, min(100, len(files)))
    definitions, similar = [], []
    for path in chosen:
        text = path.read_text(encoding="utf-8", errors="replace")
        words = list(dict.fromkeys(text[:4000].replace("(", " ").replace(".", " ").split()))
        for word in words[:10]:
            start = time.perf_counter()
            index.definitions(word)
            definitions.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        index.files_similar(words, 8)
        similar.append((time.perf_counter() - start) * 1000)
    figures.definitions_p50_ms, figures.definitions_p99_ms = percentiles(definitions)
    figures.similar_p50_ms, figures.similar_p99_ms = percentiles(similar)


def measure(workspace: Path, cache: Path, seconds: float) -> Figures:
    """All figures of one workspace."""
    figures = Figures()
    files = [path for path in workspace.rglob("*") if path.is_file()]
    figures.files = len(files)
    figures.megabytes = round(sum(path.stat().st_size for path in files) / 1e6, 1)
    typist = Typist(workspace / "open_document.py")

    index = WorkspaceIndex([workspace], cache)
    typist.type_while(index, CONTROL_SECONDS)
    figures.idle_edit_p50_ms, figures.idle_edit_p99_ms = percentiles(typist.times.wall)
    typist.times = Times()
    start = time.perf_counter()
    index.start()
    memory = Memory(index)
    typist.type_while(index, seconds)
    figures.cold_seconds = round(time.perf_counter() - start, 1)
    memory.stop()
    figures.indexed_files = index.status.files
    figures.cold_processor_seconds = round(memory.processor_seconds, 1)
    figures.process_peak_mb = round(memory.other / 1e6, 1)
    figures.own_growth_peak_mb = round(memory.own / 1e6, 1)
    figures.edits = len(typist.times.wall)
    figures.cold_edit_p50_ms, figures.cold_edit_p99_ms = percentiles(typist.times.wall)
    figures.cold_edit_max_ms = round(max(typist.times.wall), 2)
    index.close()
    figures.store_mb = round(sum(file.stat().st_size for file in cache.iterdir()) / 1e6, 1)

    index = WorkspaceIndex([workspace], cache)
    start = time.perf_counter()
    index.start()
    index.wait(seconds, lambda: bool(index.definitions("main") or index.definitions("__init__")))
    figures.warm_first_answer_seconds = round(time.perf_counter() - start, 2)
    index.wait(seconds)
    figures.warm_scan_seconds = round(time.perf_counter() - start, 2)
    figures.warm_files_read = index.status.read
    timed_questions(index, files, figures)
    start = time.perf_counter()
    index.close()
    figures.close_seconds = round(time.perf_counter() - start, 3)
    return figures


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--workspace", type=Path, help="index this folder instead")
    parser.add_argument("--seconds", type=float, default=900, help="give up after so long")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = options.workspace or Path(folder) / "workspace"
        if options.workspace is None:
            make_workspace(workspace, options.files)
        figures = asdict(measure(workspace, Path(folder) / "cache", options.seconds))
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):28} {value}")


if __name__ == "__main__":
    main()
