"""The index of a workspace: what is defined where, what imports what, what is alike.

Made in the background by a process of its own and kept on disk; documents that are open in
the editor count as they are there, not as they are on disk, and are kept in memory only.
Questions are answered from what is known so far and never wait for the rest. Nothing here
raises for a damaged cache, a process that died or a full disk: answers get smaller.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from fimble_context import links
from fimble_context.facts import Fact, Facts, terms_of
from fimble_context.files import Limits
from fimble_context.frames import Frame
from fimble_context.ignore import IGNORE_FILES, Policy
from fimble_context.index_process import IndexProcess, Posted
from fimble_context.index_types import Definition, IndexStatus, definition, shape
from fimble_context.names import Import
from fimble_context.resolve import Project, resolve
from fimble_context.secrets import has_private_key, secret_name
from fimble_context.similarity import Similar, Similarity
from fimble_context.store import Store, StoreError
from fimble_context.store_layout import import_keys, path_key, store_path

__all__ = ["Definition", "IndexStatus", "WorkspaceIndex"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")
#: Resident memory by which the process may grow in a scan before another takes its place.
GROWTH_BYTES = 80_000_000
_FIRST_BUILD = 200
_MOST_PENDING = 500
_MOST_VERDICTS = 20_000
_MOST_CANDIDATES = 200
_MOST_RESTARTS = 5
_LARGEST_OPEN = 5_000_000  # characters; of a larger document nothing is known


class WorkspaceIndex:
    """All methods may be called from any thread and return at once."""

    def __init__(
        self,
        folders: Sequence[Path],
        cache_folder: Path,
        *,
        exclude_globs: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self.policy = Policy(folders, exclude_globs)
        self.project = Project(self.policy.folders)
        self._globs = list(exclude_globs)
        self._limits = limits or Limits()
        self._path = store_path(Path(cache_folder), self.policy.folders, self._globs)
        self._lock = threading.RLock()
        self._told = threading.Condition(self._lock)
        self._status = IndexStatus("starting")
        self._store: Store | None = None
        self._process: IndexProcess | None = None
        self._open: dict[str, tuple[str, Facts]] = {}
        self._opened: set[str] = set()
        self._similarity = Similarity(())
        self._built_at = -1
        self._verdicts: dict[str, bool] = {}
        self._at = ""
        self._skipped: list[str] = []
        self._restarts = 0
        self._renewing = False
        self._paused = False
        self._scans = 0
        self._generation = 0

    # --- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to index; what an earlier run has stored can be asked for soon after."""
        if not self._start_process():
            return
        # Another thread: a large cache takes a moment to load.
        threading.Thread(target=self._load, args=(False,), daemon=True, name="index-load").start()

    def close(self) -> None:
        """Stop, promptly; no question is answered after that."""
        self._set_status(IndexStatus("closed"))
        with self._lock:
            process, self._process = self._process, None
            store, self._store = self._store, None
        if process is not None:
            process.close()
        if store is not None:
            store.close()

    def pause(self) -> None:
        """Rest until ``resume``; open documents are still followed."""
        self._paused = True
        self._post("control", {"do": "pause"})

    def resume(self) -> None:
        """Go on after ``pause``."""
        self._paused = False
        self._post("control", {"do": "resume"})

    def rescan(self) -> None:
        """Look at all files again, reading those that have changed."""
        with self._lock:
            self._verdicts.clear()
            self._scans += 1
            number = self._scans
            phase = self._status.phase
        if phase == "idle":
            self._set_status(replace(self.status, phase="scanning"))
        self._post("scan", {"do": "scan", "number": number})

    @property
    def status(self) -> IndexStatus:
        """What it is doing."""
        with self._lock:
            return self._status

    @property
    def generation(self) -> int:
        """Counted up whenever answers may be others than before.

        An edit that leaves a document's definitions and imports as they are is no reason.
        """
        with self._lock:
            return self._generation

    @property
    def process_id(self) -> int | None:
        """The number of the index's process, while there is one."""
        with self._lock:
            return self._process.pid if self._process is not None else None

    def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Wait until a scan is through (or ``until`` holds); whether that came to be."""
        done = until or (lambda: self._status.phase in ("idle", "unavailable", "closed"))
        with self._told:
            return self._told.wait_for(done, seconds)

    # --- changes --------------------------------------------------------------------------

    def update(self, path: Path, text: str | None = None, *, language: str | None = None) -> None:
        """A document is open with this text; without text: the file changed on disk.

        Cheap enough for every keystroke: the text is read a moment later, elsewhere.
        """
        if path.name in IGNORE_FILES:
            self.rescan()
        key = path_key(path)
        if text is None:
            self._post(f"disk {key}", {"do": "refresh", "path": str(path)})
            return
        with self._lock:
            self._opened.add(key)
        if len(text) <= _LARGEST_OPEN and not has_private_key(text) and self.allowed(path):
            header = {"do": "open", "path": str(path), "language": language}
            self._post(f"open {key}", header, text)

    def release(self, path: Path) -> None:
        """A document is no longer open: what is on disk counts again."""
        key = path_key(path)
        with self._lock:
            self._opened.discard(key)
            self._open.pop(key, None)
        self._post(f"disk {key}", {"do": "refresh", "path": str(path)})

    def remove(self, path: Path) -> None:
        """A file or folder was deleted or moved away."""
        self.update(path)

    # --- questions ------------------------------------------------------------------------

    def definitions(self, name: str, *, limit: int = 50) -> list[Definition]:
        """Everything of this name, by path; open documents first."""
        stored = self._ask(lambda store: store.definitions(name, limit * 2)) or []
        return self._with_open(stored, lambda fact: fact.name == name, limit)

    def definitions_beginning(self, prefix: str, *, limit: int = 50) -> list[Definition]:
        """Everything whose name begins so, case and all; open documents first, then by name."""
        stored = self._ask(lambda store: store.beginning(prefix, limit * 2)) or []
        return self._with_open(stored, lambda fact: fact.name.startswith(prefix), limit)

    def _with_open(
        self, stored: list[tuple[str, Fact]], fits: Callable[[Fact], bool], limit: int
    ) -> list[Definition]:
        """What open documents define, then what is stored of files that are not open."""
        found = [
            definition(path, fact)
            for path, facts in self._open_documents()
            for fact in facts.definitions
            if fits(fact)
        ]
        found += [
            definition(path, fact)
            for path, fact in stored
            if not self._is_open(path) and self.allowed(Path(path))
        ]
        return found[:limit]

    def definitions_in(self, path: Path) -> list[Definition]:
        """What a file defines, in the order of its text, containers before their members."""
        facts = self.facts(path)
        return [definition(str(path), fact) for fact in facts.definitions] if facts else []

    def imports_in(self, path: Path) -> tuple[Import, ...]:
        """What a file imports."""
        facts = self.facts(path)
        return facts.imports if facts is not None else ()

    def facts(self, path: Path) -> Facts | None:
        """All that is known of a file; None where it is unknown or refused."""
        with self._lock:
            opened = self._open.get(path_key(path))
        if opened is not None:
            return opened[1]
        if not self.allowed(path):
            return None
        return self._ask(lambda store: store.facts(path))

    def files_similar(self, identifiers: Iterable[str], k: int = 10) -> list[Similar]:
        """The files that share most identifiers, rare ones above all, best first."""
        terms = terms_of(identifiers)
        with self._lock:
            found = self._similarity.query(terms, k * 2)
        return [item for item in found if self.allowed(Path(item.path))][:k]

    def resolve(self, import_: Import, language: str, from_path: Path) -> list[Path]:
        """The files an import leads to that may be used; see ``resolve.resolve``."""
        found = resolve(import_, language, from_path, self.project)
        return [path for path in found if self.allowed(path)]

    def defining(
        self, name: str, import_: Import, language: str, from_path: Path
    ) -> list[Definition]:
        """Where a name that an import brings is defined, through files that pass it on."""
        return links.defining(self, name, import_, language, from_path)

    def importers(self, path: Path, *, limit: int = 20) -> list[Path]:
        """Files that import this one."""
        return links.importers(self, path, limit)

    def files_importing(self, keys: set[str]) -> list[Path]:
        """Files with an import that has one of these keys (see ``store_layout.import_keys``)."""
        stored = self._ask(lambda store: store.importing(sorted(keys), _MOST_CANDIDATES)) or []
        found = [Path(path) for path, _ in stored if not self._is_open(path)]
        return found + [
            Path(path)
            for path, facts in self._open_documents()
            if any(keys & import_keys(item) for item in facts.imports)
        ]

    # --- inside ---------------------------------------------------------------------------

    def _start_process(self, unanswered: Mapping[str, Posted] | None = None) -> bool:
        setup = {
            "store": str(self._path),
            "folders": [str(folder) for folder in self.policy.folders],
            "globs": self._globs,
            "limits": asdict(self._limits),
            "skip": self._skipped,
            "number": self._scans,
            "paused": self._paused,
            "growth": GROWTH_BYTES,
        }
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            process = IndexProcess(setup, self._path.parent, self._on_frame, unanswered)
        except OSError as error:
            self._set_status(IndexStatus("unavailable", reason=str(error.strerror)))
            return False
        with self._lock:
            closed = self._status.phase == "closed"
            self._process = None if closed else process
        if closed:
            process.close()
        return not closed

    def _restart(self) -> None:
        """The process ended: to be renewed, or because a grammar crashed on the file it was at."""
        with self._lock:
            process, self._process = self._process, None
            crashed, self._renewing = not self._renewing, False
            if crashed and self._at:
                self._skipped.append(self._at)
            self._at = ""
            self._restarts += crashed
            hopeless = self._restarts > _MOST_RESTARTS
        unanswered = process.unanswered() if process is not None else {}
        if process is not None:
            process.close()
        if hopeless:
            log.warning("Indexing stopped: its process keeps ending")
            self._set_status(IndexStatus("unavailable", reason="the index's process keeps ending"))
        elif self._start_process(unanswered) and crashed:
            log.info("The index's process ended and was started again")

    def _post(self, key: str, header: dict[str, Any], text: str = "") -> None:
        with self._lock:
            process = self._process
        if process is not None:
            process.post(key, header, text)

    def _ask(self, question: Callable[[Store], _T]) -> _T | None:
        """The store's answer; None where there is no store, or no more."""
        with self._lock:
            store = self._store
        if store is None:
            return None
        try:
            return question(store)
        except StoreError as error:
            log.warning("The index cannot be read: %s", error)
            with self._lock:
                if self._store is store:
                    self._store = None
            store.close()
            return None

    def allowed(self, path: Path) -> bool:
        """Whether the policy lets a file be used; remembered, since that looks at the disk."""
        key = str(path)
        with self._lock:
            if self._status.phase == "idle" and key in self._similarity:
                # The scan has asked the policy about it a moment ago.
                return secret_name(key) is None
            verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self.policy.refusal(path) is None
            with self._lock:
                if len(self._verdicts) >= _MOST_VERDICTS:
                    self._verdicts.clear()
                self._verdicts[key] = verdict
        return verdict

    def _is_open(self, path: str) -> bool:
        with self._lock:
            return path_key(path) in self._open

    def _open_documents(self) -> Iterator[tuple[str, Facts]]:
        with self._lock:
            return iter(list(self._open.values()))

    # --- what the process says ------------------------------------------------------------

    def _on_frame(self, frame: Frame | None) -> None:
        if frame is None:
            self._restart()
            return
        header = frame.header
        if "at" in header:
            self._at = header["at"]
        elif "renew" in header:
            self._renewing = True
        elif "died" in header:
            log.warning("The index's process has an error: %s", header["died"])
        elif "facts" in header:
            self._take_facts(header["facts"], Facts.from_json(header["data"]))
        elif "changed" in header:
            self._take_change(header["changed"])
        elif header["phase"] == "ready":
            self._load(header["anew"])
        elif header["phase"] in ("scanning", "idle"):
            if self._is_outdated(header):
                self._build_similarity(header["read"])
            current = header["number"] == self._scans
            phase = header["phase"] if current else "scanning"
            fields = ("files", "read", "bytes", "complete", "refused")
            values = {name: header[name] for name in fields}
            self._set_status(IndexStatus(phase, **values))
        else:
            self._set_status(IndexStatus(header["phase"], reason=header.get("reason", "")))

    def _is_outdated(self, scan: dict[str, Any]) -> bool:
        """Whether so much has been indexed that similarity should be asked of it all."""
        if scan["phase"] == "idle":
            return scan["read"] + scan["removed"] > 0 or self._built_at < 0
        return int(scan["read"]) >= max(_FIRST_BUILD, 2 * self._built_at)

    def _take_facts(self, path: str, facts: Facts) -> None:
        key = path_key(path)
        with self._told:
            if self._process is not None:
                self._process.answered(f"open {key}")
            if key in self._opened:
                _, before = self._open.get(key, ("", None))
                self._generation += before is None or shape(before) != shape(facts)
                self._open[key] = (path, facts)
                self._similarity.put(path, facts.terms)
            self._told.notify_all()

    def _take_change(self, path: str) -> None:
        facts = self._ask(lambda store: store.facts(path))
        with self._told:
            if self._process is not None:
                self._process.answered(f"disk {path_key(path)}")
            self._verdicts.pop(path, None)
            self._generation += 1
            if path_key(path) not in self._open:
                if facts is not None:
                    self._similarity.put(path, facts.terms)
                else:
                    self._similarity.remove(path)
            crowded = self._similarity.pending > _MOST_PENDING
            self._told.notify_all()
        if crowded:
            self._build_similarity(self._built_at)

    def _load(self, is_anew: bool) -> None:
        """Open the store for reading, if there is one; again if the process has made it anew."""
        with self._lock:
            if self._status.phase == "closed" or (self._store is not None and not is_anew):
                return
            store, self._store = self._store, None
        if store is not None:
            store.close()
        try:
            opened = Store(self._path, writable=False)
        except StoreError:
            return  # not made yet
        with self._lock:
            closed = self._status.phase == "closed" or self._store is not None
            if not closed:
                self._store = opened
        if closed:
            opened.close()
        else:
            self._build_similarity(0)

    def _build_similarity(self, read: int) -> None:
        started = time.monotonic()
        similarity = self._ask(lambda store: Similarity(store.terms()))
        if similarity is None:
            return
        with self._told:
            for path, facts in self._open.values():
                similarity.put(path, facts.terms)
            self._similarity = similarity
            self._built_at = read
            self._generation += 1
            self._told.notify_all()
        log.debug("%d files by identifiers in %.3f s", len(similarity), time.monotonic() - started)

    def _set_status(self, status: IndexStatus) -> None:
        with self._told:
            if self._status.phase != "closed":
                self._generation += status != self._status
                self._status = status
            self._told.notify_all()
