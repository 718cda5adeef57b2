"""What contexts cost: indexing a large workspace, assembling, typing in a large file.

Times are milliseconds and seconds on the clock of a machine that may have other things to do,
or where a name says so of processor time; memory is the resident set, sampled, in megabytes
(10^6 bytes).
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fimble.bench.typist import Memory, Times, Typist, percentiles
from fimble_context.assembly import Workspace
from fimble_context.index import WorkspaceIndex
from fimble_context.syntax import Document, Edit, detect, prepare

__all__ = ["ContextCost", "measure_context"]

_TYPED = "\n    value = compute(first, 2)\n    "
_PLACES = 60
_LARGEST = 200_000  # bytes of the files that contexts are made in


@dataclass(slots=True)
class ContextCost:
    """All figures. An edit is ``Document.apply`` and telling the index, in a 1.3 MB document.

    A new place is the first one in a document, which has been parsed before.
    """

    files: int = 0
    megabytes: float = 0.0
    cold_index_s: float = 0.0
    cold_edit_p50_ms: float = 0.0
    cold_edit_p99_ms: float = 0.0
    cold_edit_processor_p99_ms: float = 0.0
    index_process_peak_mb: float = 0.0
    server_growth_peak_mb: float = 0.0
    warm_first_answer_s: float = 0.0
    warm_scan_s: float = 0.0
    warm_files_read: int = 0
    assemble_p50_ms: float = 0.0
    assemble_p95_ms: float = 0.0
    assemble_new_place_p50_ms: float = 0.0
    assemble_new_place_p95_ms: float = 0.0
    assemble_processor_p95_ms: float = 0.0
    assemble_new_place_processor_p95_ms: float = 0.0
    assemblies: int = 0
    first_parse_p50_ms: float = 0.0
    first_parse_p95_ms: float = 0.0
    large_file_edit_p50_ms: float = 0.0
    large_file_edit_p99_ms: float = 0.0
    large_file_edit_processor_p99_ms: float = 0.0
    close_s: float = 0.0


def measure_context(
    workspace: Path, cache: Path, budget: int, say: Callable[[str], None], seconds: float = 1800.0
) -> ContextCost:
    """All figures for a folder; ``say`` hears what is being measured."""
    cost = ContextCost()
    files = sorted(path for path in workspace.rglob("*") if path.is_file())
    cost.files = len(files)
    cost.megabytes = round(sum(path.stat().st_size for path in files) / 1e6, 1)
    typist = Typist(workspace / "open_document.py")
    # As the server does: what is loaded is out of the collector's way.
    gc.collect()
    gc.freeze()
    say("indexing, cold, while a document is being edited")
    index = WorkspaceIndex([workspace], cache)
    start = time.perf_counter()
    index.start()
    memory = Memory(index)
    typist.type_while(index, seconds)
    cost.cold_index_s = round(time.perf_counter() - start, 1)
    memory.stop()
    cost.index_process_peak_mb = round(memory.other / 1e6, 1)
    cost.server_growth_peak_mb = round(memory.own / 1e6, 1)
    cost.cold_edit_p50_ms, cost.cold_edit_p99_ms = percentiles(typist.times.wall)
    _, cost.cold_edit_processor_p99_ms = percentiles(typist.times.processor)
    index.close()
    say("starting again, warm")
    index = WorkspaceIndex([workspace], cache)
    start = time.perf_counter()
    index.start()
    index.wait(seconds, lambda: bool(index.definitions("__init__") or index.definitions("main")))
    cost.warm_first_answer_s = round(time.perf_counter() - start, 2)
    index.wait(seconds)
    cost.warm_scan_s = round(time.perf_counter() - start, 2)
    cost.warm_files_read = index.status.read
    say("assembling")
    _assemble(index, files, budget, cost)
    say("typing in a large file")
    _type_in_large_file(index, typist, cost)
    start = time.perf_counter()
    index.close()
    cost.close_s = round(time.perf_counter() - start, 3)
    return cost


def _assemble(index: WorkspaceIndex, files: list[Path], budget: int, cost: ContextCost) -> None:
    """Come to places all over the workspace and type a few lines at each."""
    code = [
        file
        for file in files
        if file.stat().st_size < _LARGEST and detect(None, file.name) is not None
    ]
    workspace = Workspace(index)
    chosen = random.Random(2)
    parsing, typing, coming = Times(), Times(), Times()
    for path in chosen.sample(code, min(_PLACES, len(code))):
        text = path.read_text(encoding="utf-8", errors="replace")
        document = Document(text, path=str(path))
        language = detect(None, path.name, text)
        if language is not None:
            prepare(language)  # as the server does when a document is opened
        workspace.opened(path, document)
        with parsing.once():
            _ = document.tree
        offset = document.line_end(document.line_count // 2)
        for character in ("", *_TYPED):
            if character:
                edit = Edit(offset, offset, character)
                document.apply(edit)
                workspace.changed(path, document, [edit])
                offset += 1
            with (typing if character else coming).once():
                workspace.assemble(document, offset, path=path, budget=budget, count_tokens=_count)
        workspace.closed(path)
    wall, processor = typing.wall + coming.wall, typing.processor + coming.processor
    cost.first_parse_p50_ms, cost.first_parse_p95_ms = percentiles(parsing.wall, 0.95)
    cost.assemblies = len(wall)
    cost.assemble_p50_ms, cost.assemble_p95_ms = percentiles(wall, 0.95)
    cost.assemble_new_place_p50_ms, cost.assemble_new_place_p95_ms = percentiles(coming.wall, 0.95)
    _, cost.assemble_processor_p95_ms = percentiles(processor, 0.95)
    _, cost.assemble_new_place_processor_p95_ms = percentiles(coming.processor, 0.95)


def _type_in_large_file(index: WorkspaceIndex, typist: Typist, cost: ContextCost) -> None:
    """An edit and a look at the tree, as a request after each keystroke has it."""
    document = typist.document
    offset = len(document.text) // 2
    times = Times()
    for character in "value = compute(first, 2)\n" * 8:
        with times.once():
            document.apply(Edit(offset, offset, character))
            index.update(typist.path, document.text)
        assert document.tree is not None
        offset += 1
    cost.large_file_edit_p50_ms, cost.large_file_edit_p99_ms = percentiles(times.wall)
    _, cost.large_file_edit_processor_p99_ms = percentiles(times.processor)


def _count(texts: Sequence[str]) -> list[int]:
    """Estimated tokens: bytes divided by three."""
    return [-(-len(text.encode("utf-8", "replace")) // 3) for text in texts]
