"""One file of a Hugging Face repository, fetched so that no byte is fetched twice; or its listing.

The bytes we fetch ourselves: huggingface_hub's own download, in the versions of 2026, deletes
what it has when it is interrupted.

A host that cannot be reached is HubUnreachable, so that the caller may turn elsewhere; a
host that refuses is a DownloadError with the reason.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import httpx

from fimble.errors import DownloadError
from fimble.models.catalogue import HubFile
from fimble.models.hub_request import Dropped, Hub, HubUnreachable, open_answer, reason_of
from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = ["Hub", "HubUnreachable", "RemoteFile", "fetch", "read_listing"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_REPORT_EVERY = 1 << 20  # bytes between two progress events
_LARGEST_LISTING = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """What the hub says of a file: SHA-256 in hex and size in bytes, None where it does not."""

    sha256: str | None
    size: int | None


def fetch(
    file: HubFile,
    folder: Path,
    *,
    hub: Hub,
    progress: Progress = ignore_progress,
    check_space: Callable[[int], None] = lambda size: None,
    known_to_answer: bool = False,
) -> tuple[Path, RemoteFile]:
    """Downloads ``file`` into ``folder``, going on where an interrupted call stopped.

    A hub that is ``known_to_answer`` is asked again where the first connection fails.

    Returns the path and what the hub says of the file; whether the content is right is for
    the caller to check. ``check_space`` gets the file's size before its first byte is
    fetched, and may raise. Raises HubUnreachable or DownloadError.
    """
    download = _Download(file, folder, hub, progress, check_space)
    failures = 0
    while True:
        before = download.have
        try:
            download.go_on()
            return download.part, download.remote
        except Dropped as error:
            failures = 0 if download.have > before else failures + 1
            answers = known_to_answer or download.receiving
            if not answers or failures >= hub.attempts:
                raise HubUnreachable(
                    f"The connection to {hub.endpoint} failed: {error}.",
                    next_step="Check the network and HF_ENDPOINT, then run the same command "
                    "again: it goes on where it stopped.",
                ) from error
            time.sleep(hub.pause * failures)


def read_listing(repo: str, hub: Hub) -> bytes:
    """The hub's JSON about a repository. Raises HubUnreachable or DownloadError."""
    if hub.offline:
        raise HubUnreachable(
            "HF_HUB_OFFLINE is set, so Hugging Face is not asked.",
            next_step="Unset HF_HUB_OFFLINE to download from there; what is installed works "
            "without.",
        )
    failures = 0
    while True:
        try:
            with open_answer(hub, hub.listing_url(repo), HubFile(repo, "")) as response:
                return _read_whole(response)
        except Dropped as error:
            failures += 1
            if failures >= hub.attempts:
                raise HubUnreachable(
                    f"The connection to {hub.endpoint} failed: {error}.",
                    next_step="Check the network and HF_ENDPOINT, then run the same command again.",
                ) from error
            time.sleep(hub.pause * failures)


def _read_whole(response: httpx.Response) -> bytes:
    body = bytearray()
    try:
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > _LARGEST_LISTING:
                raise DownloadError(
                    f"What {response.url.host} answered is no listing: it does not end.",
                    next_step="Check HF_ENDPOINT.",
                )
    except httpx.TransportError as error:
        raise Dropped(reason_of(error)) from error
    return bytes(body)


class _Download:
    """A file on its way: what is there of it, and which file that is a part of."""

    def __init__(
        self,
        file: HubFile,
        folder: Path,
        hub: Hub,
        progress: Progress,
        check_space: Callable[[int], None],
    ) -> None:
        self.file, self.hub = file, hub
        self.progress, self.check_space = progress, check_space
        self.part = folder / "hub.part"
        self.state = folder / "hub.json"
        self.remote = RemoteFile(None, None)
        self.receiving = False  # whether this call has received anything yet
        folder.mkdir(parents=True, exist_ok=True)
        self._load_state()

    @property
    def have(self) -> int:
        """Bytes that are there already."""
        return self.part.stat().st_size if self.part.exists() else 0

    def go_on(self) -> None:
        """Fetches what is missing over one connection; raises Dropped if some still is."""
        if self.remote.size is not None and self.have == self.remote.size:
            return
        if self.hub.offline:
            raise HubUnreachable(
                "HF_HUB_OFFLINE is set, so Hugging Face is not asked.",
                next_step="Unset HF_HUB_OFFLINE to download from there.",
            )
        for _ in range(2):
            url = self.hub.url(self.file)
            with open_answer(self.hub, url, self.file, start=self.have) as response:
                remote = _describe(response, self.hub)
                self._check_pins(remote)
                same = self.have == 0 or (remote == self.remote and remote.sha256 is not None)
                if not same or response.status_code == 200:
                    # Another file than the one begun, or a server that begins at 0 always.
                    self._start_over(remote)
                if _continues(response, self.have):
                    self._receive(response)
                    break
                self._start_over(remote)
        else:
            raise HubUnreachable(
                f"{self.hub.endpoint} does not send {self.file.file} from its beginning.",
                next_step="Check HF_ENDPOINT, and what proxy is in between.",
            )
        if self.remote.size is not None and self.have < self.remote.size:
            raise Dropped("it ended early")

    def _receive(self, response: httpx.Response) -> None:
        done = reported = self.have
        total = self.remote.size
        if total is not None:
            self.check_space(total)
        self.progress(ProgressEvent("download", done, total, "bytes"))
        self.receiving = True
        try:
            # Unbuffered: what has been received survives whatever ends this process.
            with self.part.open("ab", buffering=0) as stream:
                for chunk in response.iter_raw():
                    stream.write(chunk)
                    done += len(chunk)
                    if done - reported >= _REPORT_EVERY or done == total:
                        reported = done
                        self.progress(ProgressEvent("download", done, total, "bytes"))
        except httpx.TransportError as error:
            raise Dropped(reason_of(error)) from error
        if total is not None and done > total:
            self._start_over(self.remote)
            raise DownloadError(
                f"{self.file.file} came with {done:,} bytes instead of {total:,}.",
                next_step="Run the same command again; if it happens again, the hub is at fault.",
            )

    def _check_pins(self, remote: RemoteFile) -> None:
        """Refuses a file that is not the pinned one before a byte of it is fetched."""
        pinned = self.file
        wrong_sum = pinned.sha256 and remote.sha256 and pinned.sha256 != remote.sha256
        wrong_size = pinned.size and remote.size and pinned.size != remote.size
        if wrong_sum and pinned.revision is not None:
            raise DownloadError(
                f"{pinned.file} of {pinned.repo} is not the file that the hub's own listing "
                "names: it is changing just now, or something in between changes it.",
                next_step="Run the same command again; if it happens again, check HF_ENDPOINT.",
            )
        if wrong_sum or wrong_size:
            raise DownloadError(
                f"{pinned.file} of {pinned.repo} is not the file that this version of fimble "
                "knows: it has changed on the hub, or something in between changed it.",
                next_step="Update fimble; or, if you trust the file, download it yourself and "
                "run `fimble model import FILE`.",
            )

    def _start_over(self, remote: RemoteFile) -> None:
        self.part.unlink(missing_ok=True)
        self.remote = remote
        fresh = self.state.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(remote) | {"url": self._url}), encoding="utf-8")
        fresh.replace(self.state)

    def _load_state(self) -> None:
        """Takes up the part of an earlier call, if it says of which file it is a part."""
        # Not the revision: the file's SHA-256 tells whether it is still the same file.
        self._url = self.hub.url(replace(self.file, revision=None))
        try:
            state = json.loads(self.state.read_text(encoding="utf-8"))
            if state["url"] == self._url:
                self.remote = RemoteFile(state["sha256"], state["size"])
                return
        except (OSError, ValueError, KeyError, TypeError):
            pass  # none, or cut off in the middle: begin anew
        self.part.unlink(missing_ok=True)


def _describe(response: httpx.Response, hub: Hub) -> RemoteFile:
    """SHA-256 and size from the hub's headers: its redirect has them, not the content server."""
    sha256: str | None = None
    size: int | None = None
    for answer in [*response.history, response]:
        if answer.url.host != httpx.URL(hub.endpoint).host:
            continue  # a content server's etag may be a hash of another kind
        for header in ("x-linked-etag", "etag"):
            etag = answer.headers.get(header, "").removeprefix("W/").strip('"').lower()
            if sha256 is None and _SHA256.fullmatch(etag):
                sha256 = etag
        if size is None:
            size = _number(answer.headers.get("x-linked-size", ""))
    if size is None and response.status_code == 206:
        size = _number(response.headers.get("content-range", "").rpartition("/")[2])
    if size is None and response.status_code == 200:
        size = _number(response.headers.get("content-length", ""))
    return RemoteFile(sha256, size)


def _continues(response: httpx.Response, have: int) -> bool:
    """Whether the body begins at byte ``have``."""
    if response.status_code == 206:
        return str(response.headers.get("content-range", "")).startswith(f"bytes {have}-")
    return response.status_code == 200 and have == 0


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None
