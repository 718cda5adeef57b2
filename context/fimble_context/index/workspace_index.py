"""The index of a workspace: what is defined where, what imports what, what is alike.

Made in the background by a process of its own and kept on disk; documents that are open in
the editor count as they are there, not as they are on disk, and are kept in memory only.
Questions are answered from what is known so far and never wait for the rest. Nothing here
raises for a damaged cache, a process that died or a full disk: answers get smaller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from fimble_context.index import links
from fimble_context.index.answers import Definition, IndexStatus, definition
from fimble_context.index.facts import Facts
from fimble_context.index.frames import Frame
from fimble_context.index.knowledge import Knowledge
from fimble_context.index.similarity import Similar
from fimble_context.index.store_layout import store_path
from fimble_context.index.supervisor import Supervisor
from fimble_context.index.terms import ChunkTerms, terms_of
from fimble_context.syntax.names import Import
from fimble_context.workspace.files import Limits
from fimble_context.workspace.ignore import IGNORE_FILES, Policy
from fimble_context.workspace.paths import path_key
from fimble_context.workspace.resolve import Project, resolve
from fimble_context.workspace.secrets import has_private_key, secret_name

__all__ = ["WorkspaceIndex"]

_MOST_VERDICTS = 20_000
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
        self._known = Knowledge(self._path)
        self._supervisor = Supervisor(
            self._path.parent, self._setup, self._on_frame, self._on_failure
        )
        self._lock = threading.Lock()
        self._verdicts: dict[str, bool] = {}
        self._paused = False
        self._scans = 0

    # --- life -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to index; what an earlier run has stored can be asked for soon after."""
        if not self._supervisor.start():
            return
        # Another thread: a large cache takes a moment to load.
        threading.Thread(target=self._known.load, daemon=True, name="index-load").start()

    def close(self) -> None:
        """Stop, promptly; no question is answered after that."""
        self._known.close()
        self._supervisor.close()

    def pause(self) -> None:
        """Rest until ``resume``; open documents are still followed."""
        self._paused = True
        self._supervisor.post("control", {"do": "pause"})

    def resume(self) -> None:
        """Go on after ``pause``."""
        self._paused = False
        self._supervisor.post("control", {"do": "resume"})

    def rescan(self) -> None:
        """Look at all files again, reading those that have changed."""
        with self._lock:
            self._verdicts.clear()
            self._scans += 1
            number = self._scans
        status = self.status
        if status.phase == "idle":
            self._known.status = replace(status, phase="scanning")
        self._supervisor.post("scan", {"do": "scan", "number": number})

    @property
    def status(self) -> IndexStatus:
        """What it is doing."""
        return self._known.status

    @property
    def generation(self) -> int:
        """Counted up whenever answers may be others than before.

        An edit that leaves a document's definitions and imports as they are is no reason.
        """
        return self._known.generation

    def is_behind(self, path: Path | None) -> bool:
        """Whether a file or document other than ``path`` has changed and is still to be read.

        ``generation`` counts up once it is.
        """
        key = path_key(path) if path is not None else ""
        return any(other.partition(" ")[2] != key for other in self._supervisor.waiting())

    @property
    def process_id(self) -> int | None:
        """The number of the index's process, while there is one."""
        return self._supervisor.process_id

    def wait(self, seconds: float, until: Callable[[], bool] | None = None) -> bool:
        """Wait until a scan is through (or ``until`` holds); whether that came to be."""
        done = until or (lambda: self.status.phase in ("idle", "unavailable", "closed"))
        return self._known.wait(seconds, done)

    # --- changes --------------------------------------------------------------------------

    def update(self, path: Path, text: str | None = None, *, language: str | None = None) -> None:
        """A document is open with this text; without text: the file changed on disk.

        Cheap enough for every keystroke: the text is read a moment later, elsewhere.
        """
        if path.name in IGNORE_FILES:
            self.rescan()
        if text is None:
            self._refresh(path)
            return
        self._known.follow(path)
        if len(text) <= _LARGEST_OPEN and not has_private_key(text) and self.allowed(path):
            header = {"do": "open", "path": str(path), "language": language}
            self._supervisor.post(f"open {path_key(path)}", header, text)

    def release(self, path: Path) -> None:
        """A document is no longer open: what is on disk counts again."""
        self._known.release(path)
        self._refresh(path)

    def remove(self, path: Path) -> None:
        """A file or folder was deleted or moved away."""
        self.update(path)

    def _refresh(self, path: Path) -> None:
        self._supervisor.post(f"disk {path_key(path)}", {"do": "refresh", "path": str(path)})

    # --- questions ------------------------------------------------------------------------

    def definitions(self, name: str, *, limit: int = 50) -> list[Definition]:
        """Everything of this name, by path; open documents first."""
        opened = self._known.open_definitions(lambda fact: fact.name == name)
        return self._with_allowed(opened, self._known.stored_definitions(name, limit * 2), limit)

    def definitions_beginning(self, prefix: str, *, limit: int = 50) -> list[Definition]:
        """Everything whose name begins so, case and all; open documents first, then by name."""
        opened = self._known.open_definitions(lambda fact: fact.name.startswith(prefix))
        return self._with_allowed(opened, self._known.stored_beginning(prefix, limit * 2), limit)

    def _with_allowed(
        self, opened: list[Definition], stored: list[Definition], limit: int
    ) -> list[Definition]:
        return (opened + [item for item in stored if self.allowed(item.path)])[:limit]

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
        opened = self._known.open_facts(path)
        if opened is not None:
            return opened
        return self._known.stored_facts(path) if self.allowed(path) else None

    def chunks(self, path: Path) -> list[ChunkTerms] | None:
        """The terms of the definitions in a file on disk; None where its document is open."""
        if self._known.open_facts(path) is not None:
            return None
        return self._known.stored_chunks(path) if self.allowed(path) else []

    def files_similar(self, identifiers: Iterable[str], k: int = 10) -> list[Similar]:
        """The files that share most identifiers, rare ones above all, best first."""
        found = self._known.similar(terms_of(identifiers), k * 2)
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
        return self._known.importing(keys)

    def allowed(self, path: Path) -> bool:
        """Whether the policy lets a file be used; remembered, since that looks at the disk."""
        key = str(path)
        if self._known.is_settled(path):
            # The scan has asked the policy about it a moment ago.
            return secret_name(key) is None
        with self._lock:
            verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self.policy.refusal(path) is None
            with self._lock:
                if len(self._verdicts) >= _MOST_VERDICTS:
                    self._verdicts.clear()
                self._verdicts[key] = verdict
        return verdict

    # --- the process ----------------------------------------------------------------------

    def _setup(self) -> dict[str, Any]:
        return {
            "store": str(self._path),
            "folders": [str(folder) for folder in self.policy.folders],
            "globs": self._globs,
            "limits": asdict(self._limits),
            "number": self._scans,
            "paused": self._paused,
        }

    def _on_failure(self, reason: str) -> None:
        self._known.status = IndexStatus("unavailable", reason=reason)

    def _on_frame(self, frame: Frame) -> None:
        header = frame.header
        if "facts" in header:
            # In this order: what is not waited for any more is known.
            self._known.take_facts(header["facts"], Facts.from_json(header["data"]))
            self._supervisor.answered(f"open {path_key(header['facts'])}")
        elif "changed" in header:
            self._take_change(header["changed"])
        elif header["phase"] == "ready":
            self._known.load(header["anew"])
        elif header["phase"] in ("scanning", "idle"):
            self._take_scan(header)
        else:
            self._known.status = IndexStatus(header["phase"], reason=header.get("reason", ""))

    def _take_change(self, path: str) -> None:
        with self._lock:
            self._verdicts.pop(path, None)
        self._known.take_change(path)
        self._supervisor.answered(f"disk {path_key(path)}")

    def _take_scan(self, scan: dict[str, Any]) -> None:
        is_through = scan["phase"] == "idle"
        self._known.take_scan(read=scan["read"], removed=scan["removed"], is_through=is_through)
        phase = scan["phase"] if scan["number"] == self._scans else "scanning"
        fields = ("files", "read", "bytes", "complete", "refused")
        self._known.status = IndexStatus(phase, **{name: scan[name] for name in fields})
