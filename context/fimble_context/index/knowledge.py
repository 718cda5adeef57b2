"""What is known of a workspace by now: the store's content, open documents, similarity.

Open documents count as they are in the editor and are kept in memory only. Knows nothing of
the process that finds things out, and of no policy: who asks leaves out what may not be used.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from fimble_context.index.answers import Definition, IndexStatus, definition, shape
from fimble_context.index.facts import Fact, Facts
from fimble_context.index.similarity import Similar, Similarity
from fimble_context.index.store import Store, StoreError
from fimble_context.index.store_layout import import_keys
from fimble_context.workspace.paths import path_key

__all__ = ["Knowledge"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_FIRST_BUILD = 200
_MOST_PENDING = 500
_MOST_CANDIDATES = 200


class Knowledge:
    """All methods may be called from any thread. ``store``: the store's file.

    Answers get smaller where the store is not made yet, damaged or closed; nothing raises.
    """

    def __init__(self, store: Path) -> None:
        self._path = store
        self._told = threading.Condition(threading.RLock())
        self._status = IndexStatus("starting")
        self._generation = 0
        self._store: Store | None = None
        self._open: dict[str, tuple[str, Facts]] = {}
        self._followed: set[str] = set()
        self._similarity = Similarity(())
        self._built_at = -1

    @property
    def status(self) -> IndexStatus:
        """How far indexing is."""
        with self._told:
            return self._status

    @status.setter
    def status(self, status: IndexStatus) -> None:
        with self._told:
            if self._status.phase != "closed":
                self._generation += status != self._status
                self._status = status
            self._told.notify_all()

    @property
    def generation(self) -> int:
        """Counted up whenever answers may be others than before."""
        with self._told:
            return self._generation

    def wait(self, seconds: float, until: Callable[[], bool]) -> bool:
        """Wait until something holds, looked at whenever news came; whether that came to be."""
        with self._told:
            return self._told.wait_for(until, seconds)

    def close(self) -> None:
        """Nothing is known after that."""
        self.status = IndexStatus("closed")
        with self._told:
            store, self._store = self._store, None
        if store is not None:
            store.close()

    # --- news -----------------------------------------------------------------------------

    def load(self, is_anew: bool = False) -> None:
        """Open the store for reading, if there is one; again if it has been made anew."""
        with self._told:
            if self._status.phase == "closed" or (self._store is not None and not is_anew):
                return
            store, self._store = self._store, None
        if store is not None:
            store.close()
        try:
            opened = Store(self._path, writable=False)
        except StoreError:
            return  # not made yet
        with self._told:
            closed = self._status.phase == "closed" or self._store is not None
            if not closed:
                self._store = opened
        if closed:
            opened.close()
        else:
            self._build_similarity(0)

    def follow(self, path: Path) -> None:
        """A document is open: its facts count from when they are known."""
        with self._told:
            self._followed.add(path_key(path))

    def release(self, path: Path) -> None:
        """A document is no longer open: what is on disk counts again."""
        with self._told:
            self._followed.discard(path_key(path))
            self._open.pop(path_key(path), None)

    def take_facts(self, path: str, facts: Facts) -> None:
        """What is known of an open document now."""
        key = path_key(path)
        with self._told:
            if key in self._followed:
                _, before = self._open.get(key, ("", None))
                self._generation += before is None or shape(before) != shape(facts)
                self._open[key] = (path, facts)
                self._similarity.put(path, facts.terms)
            self._told.notify_all()

    def take_change(self, path: str) -> None:
        """What the store knows of a file has changed."""
        facts = self._ask(lambda store: store.facts(Path(path)))
        with self._told:
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

    def take_scan(self, *, read: int, removed: int, is_through: bool) -> None:
        """A scan has read and removed so many files: after many, similarity is counted anew."""
        if is_through:
            is_outdated = read + removed > 0 or self._built_at < 0
        else:
            is_outdated = read >= max(_FIRST_BUILD, 2 * self._built_at)
        if is_outdated:
            self._build_similarity(read)

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

    # --- questions ------------------------------------------------------------------------

    def is_settled(self, path: Path) -> bool:
        """Whether the last scan is through and has found a file of this name."""
        with self._told:
            return self._status.phase == "idle" and str(path) in self._similarity

    def open_facts(self, path: Path) -> Facts | None:
        """What is known of an open document."""
        with self._told:
            opened = self._open.get(path_key(path))
        return opened[1] if opened is not None else None

    def stored_facts(self, path: Path) -> Facts | None:
        """What is known of a file on disk."""
        return self._ask(lambda store: store.facts(path))

    def open_definitions(self, fits: Callable[[Fact], bool]) -> list[Definition]:
        """The definitions in open documents that fit."""
        return [
            definition(path, fact)
            for path, facts in self._open_documents()
            for fact in facts.definitions
            if fits(fact)
        ]

    def stored_definitions(self, name: str, limit: int) -> list[Definition]:
        """Everything of this name, by path, in files that are not open."""
        return self._not_open(self._ask(lambda store: store.definitions(name, limit)))

    def stored_beginning(self, prefix: str, limit: int) -> list[Definition]:
        """Everything whose name begins so, case and all, by name, in files that are not open."""
        return self._not_open(self._ask(lambda store: store.beginning(prefix, limit)))

    def _not_open(self, stored: list[tuple[str, Fact]] | None) -> list[Definition]:
        return [definition(path, fact) for path, fact in stored or () if not self._is_open(path)]

    def similar(self, terms: Sequence[int], k: int) -> list[Similar]:
        """The files that share most terms, best first."""
        with self._told:
            return self._similarity.query(terms, k)

    def importing(self, keys: set[str]) -> list[Path]:
        """Files with an import that has one of these keys (see ``store_layout.import_keys``)."""
        stored = self._ask(lambda store: store.importing(sorted(keys), _MOST_CANDIDATES)) or []
        found = [Path(path) for path, _ in stored if not self._is_open(path)]
        return found + [
            Path(path)
            for path, facts in self._open_documents()
            if any(keys & import_keys(item) for item in facts.imports)
        ]

    def _ask(self, question: Callable[[Store], _T]) -> _T | None:
        """The store's answer; None where there is no store, or no more."""
        with self._told:
            store = self._store
        if store is None:
            return None
        try:
            return question(store)
        except StoreError as error:
            log.warning("The index cannot be read: %s", error)
            with self._told:
                if self._store is store:
                    self._store = None
            store.close()
            return None

    def _is_open(self, path: str) -> bool:
        with self._told:
            return path_key(path) in self._open

    def _open_documents(self) -> list[tuple[str, Facts]]:
        with self._told:
            return list(self._open.values())
