"""SHA-256 of large files, with progress. Knows nothing of where they come from."""

from __future__ import annotations

import hashlib
from pathlib import Path

from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = ["sha256_of"]

_CHUNK = 4 << 20


def sha256_of(path: Path, progress: Progress = ignore_progress, *, stage: str = "verify") -> str:
    """The file's SHA-256 in lower-case hex, read in pieces. OSError where it cannot be read."""
    total = path.stat().st_size
    digest = hashlib.sha256()
    done = 0
    progress(ProgressEvent(stage, 0, total, "bytes"))
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            progress(ProgressEvent(stage, done, total, "bytes"))
    return digest.hexdigest()
