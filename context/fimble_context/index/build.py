"""Makes and keeps up to date what the store knows: finds files, reads them, stores facts.

Works in small steps, so that whoever runs it can stop, rest or do something more urgent in
between. Runs in the index's own process; it knows nothing of processes itself.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from fimble_context.index.facts import Facts, extract
from fimble_context.index.store import Known, Store
from fimble_context.workspace.files import Limits, SourceFile, read
from fimble_context.workspace.ignore import Policy, Reason, Refusal
from fimble_context.workspace.paths import path_key
from fimble_context.workspace.walk import Found, Walk, is_vendored

__all__ = ["Builder", "Scan"]

_BATCH_FILES = 100
_BATCH_BYTES = 2_000_000
# A file this young may change again within the resolution of its time stamp.
_YOUNG_NS = 2_000_000_000
_CONTENT_REASONS = ("generated", "binary", "secret")


@dataclass(slots=True)
class Scan:
    """How far a scan is. ``bytes`` and ``read`` count what was read, not what was unchanged."""

    files: int = 0
    read: int = 0
    bytes: int = 0
    removed: int = 0
    complete: bool = True
    refused: Counter[Reason] = field(default_factory=Counter)


class Builder:
    """Writes to a store. Every method raises StoreError for trouble with it, nothing else."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        limits: Limits | None = None,
        *,
        skip: Collection[str] = (),
        on_file: Callable[[str], None] = lambda path: None,
    ) -> None:
        """``on_file`` hears of each file before it is parsed; those in ``skip`` never are."""
        self._skip = {path_key(path) for path in skip}
        self._on_file = on_file
        self._store = store
        self._policy = policy
        self._limits = limits or Limits()
        self._batch: list[tuple[Known, Facts | str]] = []
        self._batch_bytes = 0
        # Looked at on their own since the scan began: newer than what it knows of them.
        self._refreshed: set[str] = set()

    def scan(self) -> Iterator[Scan]:
        """Bring the store up to date with the disk; yields after each step.

        What is left half-way is taken up by the next scan: files stored are not read again.
        """
        scan = Scan()
        self._refreshed.clear()
        known = self._store.known()
        walk = Walk(self._policy, self._limits)
        scan.refused = walk.refused
        for found in walk:
            if found is not None:
                scan.files += 1
                before = known.pop(path_key(found.path), None)
                if before is None or (before.size, before.mtime_ns) != (found.size, found.mtime_ns):
                    self._take(found, before, scan)
            yield scan
        self.flush()
        scan.complete = walk.complete
        gone = [
            item.path
            for key, item in known.items()
            if key not in self._refreshed and (walk.complete or self._is_gone(item.path))
        ]
        for start in range(0, len(gone), _BATCH_FILES):
            with self._store:
                self._store.remove(gone[start : start + _BATCH_FILES])
            scan.removed = min(start + _BATCH_FILES, len(gone))
            yield scan

    def refresh(self, path: Path) -> bool:
        """One file may have changed, come or gone. Whether the store knows it now."""
        # What a scan has read of it before is older, and must not be stored after this.
        self.flush()
        self._refreshed.add(path_key(path))
        if not self._is_wanted(path) or not path.is_file():
            with self._store:
                self._store.remove_below(path)
            return False
        before = self._store.known_file(path)
        source = read(path, self._limits)
        if isinstance(source, Refusal):
            self._store.remove([path])
            return False
        if before is not None and before.digest == source.digest:
            self._store.touch(_known(source))
            return True
        facts = self._extract(source)
        with self._store:
            self._store.put(_known(source), facts)
        return True

    def _extract(self, source: SourceFile) -> Facts:
        path = str(source.path)
        if path_key(path) in self._skip:
            return Facts("", (), (), ())
        self._on_file(path)
        return extract(path, source.text)

    def _take(self, found: Found, before: Known | None, scan: Scan) -> None:
        outcome = read(Path(found.path), self._limits)
        if isinstance(outcome, Refusal):
            scan.refused[outcome.reason] += 1
            if outcome.reason in _CONTENT_REASONS:
                known = Known(found.path, found.size, _settled(found.mtime_ns), b"")
                self._batch.append((known, outcome.reason))
            elif before is not None:
                self._store.remove([found.path])
            return
        scan.read += 1
        scan.bytes += outcome.size
        if before is not None and before.digest == outcome.digest:
            self._store.touch(_known(outcome))
            return
        self._batch.append((_known(outcome), self._extract(outcome)))
        self._batch_bytes += outcome.size
        if len(self._batch) >= _BATCH_FILES or self._batch_bytes >= _BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Store what was read. Reading is done by now, so others wait for a moment only."""
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        with self._store:
            for known, facts in batch:
                if isinstance(facts, Facts):
                    self._store.put(known, facts)
                else:
                    self._store.put_refused(known, facts)

    def _is_gone(self, path: str) -> bool:
        """Of a file that a walk which was cut short has not met."""
        return not Path(path).is_file() or not self._is_wanted(Path(path))

    def _is_wanted(self, path: Path) -> bool:
        root = self._policy.folder_of(path)
        if root is None or self._policy.refusal(path) is not None:
            return False
        return not any(
            is_vendored(str(folder)) for folder in path.parents if folder.is_relative_to(root)
            and folder != root
        )  # fmt: skip


def _known(source: SourceFile) -> Known:
    known = Known(str(source.path), source.size, source.mtime_ns, source.digest)
    return replace(known, mtime_ns=_settled(source.mtime_ns))


def _settled(mtime_ns: int) -> int:
    """A time of change that can be relied on, or one that no file has."""
    return mtime_ns if time.time_ns() - mtime_ns > _YOUNG_NS else -1
