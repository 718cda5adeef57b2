"""What a keystroke costs the language server: ``textDocument/didChange`` in a large file.

Opens a file of 16,000 lines (1.3 MB) and types into it at random places; each change is
measured from the bytes of the message to the updated document, as the server handles it::

    python benchmarks/lsp_didchange.py [--json] [--changes 2000] [--wide] [--no-workspace]
                                       [--documents 1000] [--rate 200] [--paste]

The file is in a workspace folder, and the index follows it; without one it is alone.
``--wide`` puts a character outside the basic plane into the file, which makes Python's
string four times as large. ``--documents`` opens that many small ones too, which are typed into by
turns with the large one; ``--rate`` sends so many changes a second, in place of one after the
other; ``--paste`` measures a megabyte pasted at the end. The aim is a 99th percentile under 10 ms;
on a busy machine look at the processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fimble.bench.percentile import percentile
from fimble.engine.client import LocalEngine
from fimble.lsp.lifecycle import spare_collector
from fimble.lsp.server import FimbleServer
from fimble.lsp.transport import StdoutWriter

FOLDER = Path(tempfile.gettempdir()) / "fimble-didchange"
URI = (FOLDER / "large.py").as_uri()
LINES = 16_000
SMALL = "value = 1\n" * 20
LINE = "    value = compute(first_argument, second_argument)  # about eighty characters"


class Nowhere(io.RawIOBase):
    """Takes what the server sends."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return len(data)


def large_text(*, wide: bool) -> str:
    lines = [f"{LINE} {number:05}" for number in range(LINES)]
    if wide:
        lines[LINES // 2] += " 😀"
    return "\n".join(lines) + "\n"


def message(method: str, params: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def change(version: int, line: int, character: int, text: str, uri: str = URI) -> bytes:
    place = {"line": line, "character": character}
    return message(
        "textDocument/didChange",
        {
            "textDocument": {"uri": uri, "version": version},
            "contentChanges": [{"range": {"start": place, "end": place}, "text": text}],
        },
    )


def opened(text: str, *, workspace: bool) -> Callable[[bytes], None]:
    """A server with the file open: what handles a message's bytes."""
    server = FimbleServer(lambda choice, on_event: LocalEngine(on_event=on_event))
    server.protocol.set_writer(StdoutWriter(Nowhere(), lambda: None))
    server.protocol.receive(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "processId": None,
                "rootUri": FOLDER.as_uri() if workspace else None,
                "capabilities": {},
            },
        }
    )
    server.workspace_host.use(())
    item = {"uri": URI, "languageId": "python", "version": 1, "text": text}

    def handle(data: bytes) -> None:
        server.protocol.receive(json.loads(data))

    handle(message("textDocument/didOpen", {"textDocument": item}))
    return handle


def small_uri(number: int) -> str:
    return (FOLDER / f"small_{number:04}.py").as_uri()


async def measure(
    changes: int,
    *,
    wide: bool,
    workspace: bool,
    documents: int = 0,
    rate: int = 0,
    paste: bool = False,
) -> dict[str, Any]:
    """Milliseconds for each of ``changes`` edits, one in twenty of them a new line."""
    text = large_text(wide=wide)
    FOLDER.mkdir(exist_ok=True)
    handle = opened(text, workspace=workspace)
    for number in range(documents):
        item = {"uri": small_uri(number), "languageId": "python", "version": 1, "text": SMALL}
        handle(message("textDocument/didOpen", {"textDocument": item}))
    await asyncio.sleep(2)  # lets the index come up
    chance = random.Random(0)
    messages = [
        change(
            number + 3,
            chance.randrange(LINES),
            chance.randrange(80),
            "\n" if chance.random() < 0.05 else "x",
        )
        for number in range(changes)
    ]
    for number in range(0, changes if documents else 0, 2):
        turn = number // 2
        uri = small_uri(turn % documents)
        messages[number] = change(2 + turn // documents, chance.randrange(10), 0, "x", uri)
    handle(change(2, 0, 0, "x"))  # compiles what is compiled on first use
    spare_collector()
    samples, cpu_samples = [], []
    begun = time.perf_counter()
    for number, data in enumerate(messages):
        if rate:
            await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))
        started, cpu_started = time.perf_counter(), time.process_time()
        handle(data)
        cpu_samples.append((time.process_time() - cpu_started) * 1000)
        samples.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0)
    rate_reached = changes / (time.perf_counter() - begun)
    started = time.perf_counter()
    if paste:
        handle(change(changes + 3, 5, 0, "pasted = 1  # a megabyte of it\n" * 32_768))
    pasted = (time.perf_counter() - started) * 1000
    return {
        "bytes": len(text.encode()),
        "lines": LINES,
        "workspace": workspace,
        "changes": changes,
        "documents": documents + 1,
        "changes_per_s": round(rate_reached, 1),
        "paste_ms": round(pasted, 1) if paste else None,
        "p50_ms": round(percentile(samples, 0.5), 3),
        "p99_ms": round(percentile(samples, 0.99), 3),
        "max_ms": round(max(samples), 3),
        "cpu_p50_ms": round(percentile(cpu_samples, 0.5), 3),
        "cpu_p99_ms": round(percentile(cpu_samples, 0.99), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--changes", type=int, default=2000, help="edits to measure")
    parser.add_argument("--wide", action="store_true", help="a character outside the BMP")
    parser.add_argument("--no-workspace", action="store_true", help="the file is in no folder")
    parser.add_argument("--documents", type=int, default=0, help="small documents, open too")
    parser.add_argument("--rate", type=int, default=0, help="changes a second; 0: no pause")
    parser.add_argument("--paste", action="store_true", help="paste a megabyte at the end")
    options = parser.parse_args()
    result = asyncio.run(
        measure(
            options.changes,
            wide=options.wide,
            workspace=not options.no_workspace,
            documents=options.documents,
            rate=options.rate,
            paste=options.paste,
        )
    )
    if options.json:
        print(json.dumps(result))
        return
    print(f"{result['lines']} lines, {result['bytes']} bytes, {result['changes']} changes")
    print(f"{result['documents']} documents, {result['changes_per_s']} changes a second")
    if result["paste_ms"] is not None:
        print(f"a megabyte pasted: {result['paste_ms']} ms")
    print(f"p50 {result['p50_ms']} ms, p99 {result['p99_ms']} ms, max {result['max_ms']} ms")
    print(f"processor time: p50 {result['cpu_p50_ms']} ms, p99 {result['cpu_p99_ms']} ms")


if __name__ == "__main__":
    main()
