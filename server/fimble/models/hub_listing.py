"""What is in a repository of the hub: its files, their sizes and checksums, its licence.

What the hub says is a stranger's data: a name that could not be a file of ours on any system
is refused. Downloads nothing but the listing itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fimble.errors import DownloadError, PackageError
from fimble.models.checksums import sha256_of
from fimble.models.genai_config import CONFIG_FILE
from fimble.models.hub import Hub, read_listing
from fimble.models.package_files import check_file_name
from fimble.models.package_json import as_int, as_table
from fimble.progress import Progress, ignore_progress

__all__ = ["ListedFile", "Listing", "list_repository"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SHA1 = re.compile(r"[0-9a-f]{40}")
_MOST_FILES = 10_000
#: What Windows allows in no file's name, and names that are devices there.
_FORBIDDEN = re.compile(r'[\x00-\x1f<>:"|?*\\]')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file by its path in the repository, its size in bytes, and one of two checksums.

    ``sha256`` is that of the content, for files that Git LFS keeps. ``blob`` is Git's own
    SHA-1 for all others. Both in hex; both empty where the hub does not say.
    """

    path: str
    size: int
    sha256: str = ""
    blob: str = ""

    @property
    def checksum(self) -> str:
        """Whichever there is; empty if there is none."""
        return self.sha256 or self.blob

    def matches(self, path: Path, progress: Progress = ignore_progress) -> bool:
        """Whether the content at ``path`` is this file's. True for one without a checksum."""
        if path.stat().st_size != self.size:
            return False
        if self.sha256:
            return sha256_of(path, progress) == self.sha256
        return not self.blob or _git_sha1(path, self.size) == self.blob


@dataclass(frozen=True, slots=True)
class Listing:
    """``revision`` is the commit. ``licence`` is empty where the repository states none.

    ``files`` has no hidden ones. ``config`` is the path of its one genai_config.json.
    """

    repo: str
    revision: str
    licence: str
    gated: bool
    files: tuple[ListedFile, ...]
    config: str

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def list_repository(repo: str, hub: Hub) -> Listing:
    """The newest revision of ``repo`` (owner/name), which must hold one package.

    Raises HubUnreachable, DownloadError, or PackageError where it holds none or several.
    """
    strange = DownloadError(
        f"{hub.endpoint} answers for {repo} with something that is no listing.",
        next_step="Check HF_ENDPOINT, and what proxy is in between.",
    )
    try:
        answer = as_table(json.loads(read_listing(repo, hub)))
    except (ValueError, RecursionError) as error:
        raise strange from error
    revision, siblings = answer.get("sha"), answer.get("siblings")
    if not isinstance(revision, str) or not _SHA1.fullmatch(revision):
        raise strange
    if not isinstance(siblings, list) or len(siblings) > _MOST_FILES:
        raise strange
    files = [_file(as_table(each), repo) for each in siblings]
    shown = [file for file in files if not _is_hidden(file.path)]
    _check_collisions(shown, repo)
    return Listing(
        repo=repo,
        revision=revision,
        licence=_licence(answer),
        gated=bool(answer.get("gated")),
        files=tuple(sorted(shown, key=lambda file: (file.size, file.path))),
        config=_config(shown, repo),
    )


def _file(entry: dict[str, object], repo: str) -> ListedFile:
    path = entry.get("rfilename")
    lfs = as_table(entry.get("lfs"))
    size = as_int(lfs.get("size")) if lfs else as_int(entry.get("size"))
    if not isinstance(path, str) or size is None or size < 0:
        raise DownloadError(
            f"The hub's listing of {repo} has a file without a name or a size.",
            next_step="Check HF_ENDPOINT; a mirror may not tell all that is needed.",
        )
    try:
        check_file_name(path, f"The repository {repo}")
    except PackageError as error:
        raise DownloadError(error.message, next_step=error.next_step) from error
    for part in path.split("/"):
        if (
            _FORBIDDEN.search(part)
            or _DEVICE.fullmatch(part)
            or part != part.rstrip(". ")
            or not part
        ):
            raise DownloadError(
                f"The repository {repo} has a file that cannot be kept on every system: "
                f"{path[:200]!r}.",
                next_step="Download what you need of it yourself, and give the folder's path.",
            )
    sha256, blob = str(lfs.get("sha256", "")).lower(), str(entry.get("blobId", "")).lower()
    return ListedFile(
        path,
        size,
        sha256 if _SHA256.fullmatch(sha256) else "",
        # Of an LFS file Git has the pointer only.
        blob if _SHA1.fullmatch(blob) and not lfs else "",
    )


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(path).parts)


def _check_collisions(files: list[ListedFile], repo: str) -> None:
    seen: dict[str, str] = {}
    for file in files:
        other = seen.setdefault(file.path.lower(), file.path)
        if other != file.path:
            raise DownloadError(
                f"The repository {repo} has {other!r} and {file.path!r}, which are one file on "
                "some systems.",
                next_step="Download what you need of it yourself, and give the folder's path.",
            )


def _config(files: list[ListedFile], repo: str) -> str:
    configs = [f.path for f in files if PurePosixPath(f.path).name == CONFIG_FILE]
    if len(configs) == 1:
        return configs[0]
    if configs:
        raise PackageError(
            f"{repo} holds more than one package: {' and '.join(configs)}.",
            next_step=f"Download the one that is meant (`hf download {repo} --include FOLDER/*`), "
            "and give its folder's path.",
        )
    gguf = any(file.path.lower().endswith(".gguf") for file in files)
    raise PackageError(
        f"{repo} is no package for onnxruntime-genai: it has no {CONFIG_FILE}.",
        next_step="Download its .gguf file and run `fimble model import FILE`."
        if gguf
        else "Look for a repository that was made for onnxruntime-genai.",
    )


def _licence(answer: dict[str, object]) -> str:
    card = as_table(answer.get("cardData"))
    stated = card.get("license_name") or card.get("license")
    if isinstance(stated, list):
        stated = ", ".join(str(each) for each in stated)
    if isinstance(stated, str) and stated.strip():
        return stated.strip()[:100]
    tags = answer.get("tags")
    for tag in tags if isinstance(tags, list) else []:
        if isinstance(tag, str) and tag.startswith("license:"):
            return tag.removeprefix("license:")[:100]
    return ""


def _git_sha1(path: Path, size: int) -> str:
    """Git's name for a file's content; not for security, but it is all the hub has."""
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
