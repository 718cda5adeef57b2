"""Writes a package's weights: one file, each tensor at a place known beforehand.

The work is cut into pieces (a slot's rows from-to) that are encoded in threads and written
in order. After each piece a line goes to a journal beside the file, with the hash of what
was written; a later run reads the pieces back, compares, and goes on with those missing or
wrong. What the weights are and how they are encoded is the caller's business.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fimble.models.gguf_import.formats import PackedRows, Slot
from fimble.progress import Progress, ProgressEvent

__all__ = ["Layout", "Piece", "fsync_path", "lay_out", "write_data_file"]

_PIECE_WEIGHTS = 1 << 21
"""Weights encoded at a time, a thread: 8 MB as float32, and a few times that in buffers."""
_THREADS = 2


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each tensor lies (byte offsets by tensor name) and the file's size in bytes."""

    slots: tuple[Slot, ...]
    offsets: dict[str, int]
    size: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows ``start`` to ``stop`` of a slot."""

    slot: Slot
    start: int
    stop: int

    def regions(self, layout: Layout) -> list[tuple[int, int]]:
        """(offset, length) in bytes of the piece in each of the slot's tensors."""
        return [
            (
                layout.offsets[spec.name] + self.start * spec.row_bytes,
                (self.stop - self.start) * spec.row_bytes,
            )
            for spec in self.slot.tensors
        ]


Encode = Callable[[Piece], PackedRows]


def lay_out(slots: Sequence[Slot]) -> Layout:
    """Places the tensors one after another, aligned. Depends on nothing but the slots."""
    offsets: dict[str, int] = {}
    end = 0
    for slot in slots:
        for spec in slot.tensors:
            offset = -(-end // spec.alignment) * spec.alignment
            offsets[spec.name] = offset
            end = offset + spec.nbytes
    return Layout(tuple(slots), offsets, end)


def _pieces(slots: Sequence[Slot]) -> Iterator[Piece]:
    for slot in slots:
        step = max(1, _PIECE_WEIGHTS // slot.columns)
        for start in range(0, slot.rows, step):
            yield Piece(slot, start, min(start + step, slot.rows))


def write_data_file(
    path: Path, journal: Path, layout: Layout, encode: Encode, *, key: str, progress: Progress
) -> None:
    """Write all slots to ``path``, going on where an earlier run with the same ``key`` stopped.

    ``key`` identifies everything that the bytes depend on. ``encode`` is called from several
    threads at once. Leaves the journal behind, for the caller to remove when the package is
    complete. Raises OSError, and whatever ``encode`` raises.
    """
    pieces = list(_pieces(layout.slots))
    header = {"key": key, "size": layout.size, "pieces": len(pieces)}
    finished = _read_journal(journal, header) if path.exists() else {}
    if not finished:
        # Whatever lies there is not ours to build on.
        journal.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    with path.open("r+b" if finished else "w+b") as data:
        data.truncate(layout.size)
        kept = _verify(data, layout, pieces, finished, progress)
        _start_journal(journal, header, kept)
        with journal.open("ab") as log:
            done = 0
            for index, piece in enumerate(pieces):
                if index in kept:
                    done += _length(piece, layout)
            progress(ProgressEvent("convert", done, layout.size, "bytes"))
            todo = [index for index in range(len(pieces)) if index not in kept]
            for index, packed in _encoded(encode, pieces, todo):
                digest = _write(data, pieces[index], layout, packed)
                data.flush()
                log.write(_line({"piece": index, "hash": digest}))
                log.flush()
                done += _length(pieces[index], layout)
                progress(ProgressEvent("convert", done, layout.size, "bytes"))
            # Alignment leaves gaps, so the lengths do not add up to the file's size.
            progress(ProgressEvent("convert", layout.size, layout.size, "bytes"))
        data.flush()
        os.fsync(data.fileno())


def _encoded(
    encode: Encode, pieces: Sequence[Piece], todo: Sequence[int]
) -> Iterator[tuple[int, PackedRows]]:
    """Encode ahead in threads, a few pieces only, so that memory stays bounded."""
    waiting: deque[tuple[int, Future[PackedRows]]] = deque()
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="import") as pool:
        try:
            for index in todo:
                waiting.append((index, pool.submit(encode, pieces[index])))
                if len(waiting) > _THREADS:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def _write(data: BinaryIO, piece: Piece, layout: Layout, packed: PackedRows) -> str:
    digest = hashlib.blake2b(digest_size=16)
    regions = piece.regions(layout)
    for (offset, length), array in zip(regions, packed.arrays, strict=True):
        raw = np.ascontiguousarray(array).tobytes()
        if len(raw) != length:
            raise AssertionError(f"{piece.slot.name}: {len(raw)} bytes encoded, {length} planned")
        data.seek(offset)
        data.write(raw)
        digest.update(raw)
    return digest.hexdigest()


def _verify(
    data: BinaryIO,
    layout: Layout,
    pieces: Sequence[Piece],
    finished: dict[int, str],
    progress: Progress,
) -> dict[int, str]:
    """The pieces that are in the file as the journal says."""
    kept: dict[int, str] = {}
    for count, (index, expected) in enumerate(finished.items(), start=1):
        digest = hashlib.blake2b(digest_size=16)
        for offset, length in pieces[index].regions(layout):
            data.seek(offset)
            digest.update(data.read(length))
        if digest.hexdigest() == expected:
            kept[index] = expected
        progress(ProgressEvent("check earlier work", count, len(finished), "steps"))
    return kept


def _length(piece: Piece, layout: Layout) -> int:
    return sum(length for _, length in piece.regions(layout))


def _line(record: dict[str, object]) -> bytes:
    return json.dumps(record, sort_keys=True).encode("ascii") + b"\n"


def _start_journal(path: Path, header: dict[str, object], kept: dict[int, str]) -> None:
    """A fresh journal of what was verified; replaces one that may end in half a line."""
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as log:
        log.write(_line(header))
        for index, digest in kept.items():
            log.write(_line({"piece": index, "hash": digest}))
    fresh.replace(path)


def _read_journal(path: Path, header: dict[str, object]) -> dict[int, str]:
    """Piece indices and hashes of an earlier run, as far as the journal is readable."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    records: list[object] = []
    for line in lines[:-1]:  # the last is empty, or was cut off
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    if not records or records[0] != header:
        return {}
    finished: dict[int, str] = {}
    count = header["pieces"]
    for record in records[1:]:
        match record:
            case {"piece": int(index), "hash": str(digest)} if (
                isinstance(count, int) and 0 <= index < count
            ):
                finished[index] = digest
            case _:
                break
    return finished


def fsync_path(path: Path) -> None:
    """Ask the system to put a written file on the disk, where it can."""
    with contextlib.suppress(OSError), path.open("r+b") as file:
        os.fsync(file.fileno())
