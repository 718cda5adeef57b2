"""What is known of a workspace by now: the store's content, open documents, similarity.

Open documents count as they are in the editor and are kept in memory only. Knows nothing of
the process that finds things out, and of no policy: who asks leaves out what may not be used.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from fimble_context.index.answers import (
    Definition,
    IndexStatus,
    definition,
    shape,
    shared_path,
)
from fimble_context.index.facts import Fact, Facts
from fimble_context.index.similarity import Similar, Similarity
from fimble_context.index.store import Store, StoreError
from fimble_context.index.store_layout import import_keys
from fimble_context.index.terms import ChunkTerms
from fimble_context.workspace.paths import path_key

__all__ = ["Knowledge"]

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_FIRST_BUILD = 200
_MOST_PENDING = 500
_MOST_CANDIDATES = 200
# Of the store's answers, so many definitions are remembered: about 10 MB in all.
_MOST_REMEMBERED = 10_000


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
        self._read = 0
        # What the store answered, until it changes; open documents are no matter to it.
        self._names: _Memory[list[Definition]] = _Memory(_MOST_REMEMBERED)
        self._facts: _Memory[Facts] = _Memory(_MOST_REMEMBERED)
        self._chunks: _Memory[list[ChunkTerms]] = _Memory(_MOST_REMEMBERED)

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
        self._forget()
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
        self._forget(path_key(path))
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
        if read + removed != self._read or is_through:
            self._read = 0 if is_through else read + removed
            self._forget()
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
        return self._remembered(
            self._facts,
            path_key(path),
            lambda store: store.facts(path),
            lambda facts: len(facts.definitions) + len(facts.imports),
        )

    def stored_chunks(self, path: Path) -> list[ChunkTerms]:
        """The terms of the definitions in a file on disk."""
        key = path_key(path)
        return self._remembered(self._chunks, key, lambda store: store.chunks(path), len) or []

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
        return self._not_open(
            self._remembered(
                self._names,
                (name, limit),
                lambda store: [definition(*found) for found in store.definitions(name, limit)],
                len,
            )
        )

    def stored_beginning(self, prefix: str, limit: int) -> list[Definition]:
        """Everything whose name begins so, case and all, by name, in files that are not open."""
        return self._not_open(
            self._ask(
                lambda store: [definition(*found) for found in store.beginning(prefix, limit)]
            )
        )

    def _not_open(self, stored: list[Definition] | None) -> list[Definition]:
        with self._told:
            opened = {shared_path(path) for path, _ in self._open.values()}
        return [item for item in stored or () if item.path not in opened]

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

    def _remembered(
        self,
        memory: _Memory[_T],
        key: Hashable,
        question: Callable[[Store], _T | None],
        size: Callable[[_T], int],
    ) -> _T | None:
        """The store's answer, as it was given before if nothing has changed since."""
        with self._told:
            known, changes = memory.get(key), memory.changes
        if known is None:
            known = self._ask(question)
            if known is not None:
                with self._told:
                    memory.put(key, known, size(known), changes)
        return known

    def _forget(self, key: str | None = None) -> None:
        """The store has changed: what it knows of a file, or all of it."""
        with self._told:
            self._names.forget()
            self._facts.forget(key)
            self._chunks.forget(key)

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


class _Memory(Generic[_T]):
    """The latest answers by key, of so much size in all; each counts one more than its own.

    ``changes`` counts how often something was forgotten.
    """

    def __init__(self, most: int) -> None:
        self._room = most
        self._answers: OrderedDict[Hashable, tuple[_T, int]] = OrderedDict()
        self.changes = 0

    def get(self, key: Hashable) -> _T | None:
        """What was answered; None where that is not known."""
        found = self._answers.get(key)
        if found is None:
            return None
        self._answers.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, answer: _T, size: int, changes: int) -> None:
        """Keep an answer to a question that was asked after so many changes."""
        if changes != self.changes:
            return
        self._drop(key)
        self._answers[key] = answer, size + 1
        self._room -= size + 1
        while self._room < 0:
            self._drop(next(iter(self._answers)))

    def forget(self, key: Hashable | None = None) -> None:
        """Forget one answer, or all."""
        self.changes += 1
        for each in (key,) if key is not None else tuple(self._answers):
            self._drop(each)

    def _drop(self, key: Hashable) -> None:
        _, size = self._answers.pop(key, (None, 0))
        self._room += size
