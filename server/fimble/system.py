"""What differs between Windows, Linux and macOS, in one place.

Folders, file rights, atomic replacement, locks, detached processes, signals, memory,
PowerShell, consoles and file URIs. Everything else in the package calls this module and has
no branch on the platform. Every branch here takes the platform as a value, so that tests
reach each one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import IO, Any, Literal
from urllib.parse import quote, unquote, urlsplit

import filelock
import platformdirs
import psutil

from fimble.errors import FimbleError

__all__ = [
    "NO_WINDOW",
    "OperatingSystem",
    "available_memory",
    "config_dir",
    "exclusive_lock",
    "find_program",
    "free_disk_bytes",
    "home",
    "is_alive",
    "logs_dir",
    "make_private_dir",
    "memory_lock_limit",
    "models_dir",
    "open_handles",
    "operating_system",
    "path_from_uri",
    "powershell_json",
    "process_started_at",
    "replace_path",
    "rewrite_file",
    "runtime_dir",
    "spawn_detached",
    "start_of",
    "stop_process",
    "templates_dir",
    "uri_from_path",
    "use_utf8_console",
    "write_private",
]

# --- folders ---------------------------------------------------------------------------


def home(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with all of fimble's state: ``FIMBLE_HOME``, or the user's data folder."""
    chosen = environ.get("FIMBLE_HOME", "").strip()
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(platformdirs.user_data_dir("fimble", appauthor=False))


def models_dir() -> Path:
    """Installed packages, one folder each."""
    return home() / "models"


def logs_dir() -> Path:
    """Log files of the engine and the language server."""
    return home() / "logs"


def config_dir() -> Path:
    """The user's own settings."""
    return home() / "config"


def templates_dir() -> Path:
    """The user's own prompt templates, in place of ours."""
    return home() / "templates"


def runtime_dir() -> Path:
    """The engine's address, secret, lock and private working folder."""
    return home() / "run"


# --- file rights and atomic replacement --------------------------------------------------


def make_private_dir(path: Path) -> Path:
    """Creates ``path`` readable by its owner only, and returns it.

    On Windows a folder below the user's profile already has that right; its ACL is left.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if sys.platform != "win32" and stat.S_IMODE(path.stat().st_mode) != 0o700:
            path.chmod(0o700)
    except OSError as error:
        raise FimbleError(
            f"The folder {path} cannot be made: {error.strerror}.",
            next_step="Set FIMBLE_HOME to a folder that you can write to.",
        ) from error
    return path


def write_private(path: Path, data: bytes) -> None:
    """Writes ``data`` to ``path`` in one step, readable by its owner only.

    The content is never visible under that name in part, nor with wider rights.
    """
    make_private_dir(path.parent)
    _put_in_place(path, data)


def _put_in_place(
    path: Path, data: bytes, ready: Callable[[Path], object] = lambda temporary: None
) -> None:
    """Writes beside ``path``, lets ``ready`` see to the whole file, and renames it over."""
    # mkstemp makes the file with mode 0600, before there is anything in it.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        ready(temporary)
        replace_path(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_path(source: Path, target: Path, *, attempts: int = 20) -> None:
    """Renames ``source`` over ``target`` (a file, or a folder that does not exist yet).

    Virus scanners and indexers on Windows hold new files open for a moment, which makes
    a rename fail with a sharing violation; it is tried again for about two seconds.
    """
    for attempt in range(attempts):
        try:
            source.replace(target)
            return
        except PermissionError:
            if attempt == attempts - 1:
                raise
            time.sleep(0.1)


def rewrite_file(path: Path, data: bytes) -> None:
    """Replaces the content of an existing file in one step; its mode stays.

    A link stays a link: what it leads to is rewritten. Raises OSError; the file is then as it
    was.
    """
    path = path.resolve(strict=True)
    if not os.access(path, os.W_OK):
        # Renaming over it would not ask for that right.
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    _put_in_place(path, data, lambda temporary: shutil.copymode(path, temporary))


def free_disk_bytes(path: Path) -> int:
    """Free bytes on the file system that holds ``path`` or its nearest existing parent."""
    existing = path.absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    return shutil.disk_usage(existing).free


@contextlib.contextmanager
def exclusive_lock(path: Path, *, timeout: float) -> Iterator[None]:
    """Holds a lock file between processes; it is free again when its holder dies.

    Raises TimeoutError after ``timeout`` seconds.
    """
    make_private_dir(path.parent)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except filelock.Timeout as error:
        raise TimeoutError(f"{path} is held by another process") from error
    try:
        yield
    finally:
        lock.release()


# --- processes ---------------------------------------------------------------------------


def spawn_detached(
    command: Sequence[str],
    *,
    cwd: Path,
    log: IO[bytes],
    environ: Mapping[str, str],
    platform: str = sys.platform,
) -> subprocess.Popen[bytes]:
    """Starts a process that outlives this one, its window and its terminal.

    Its output goes to ``log``; it inherits no other handle. Raises OSError if it can't start.
    """
    *ways, last = detached_options(platform)
    for way in ways:
        with contextlib.suppress(PermissionError):
            return _spawn(command, cwd, log, environ, way)
    return _spawn(command, cwd, log, environ, last)


def _spawn(
    command: Sequence[str],
    cwd: Path,
    log: IO[bytes],
    environ: Mapping[str, str],
    options: Mapping[str, Any],
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        close_fds=True,
        **options,
    )


def detached_options(platform: str) -> list[dict[str, Any]]:
    """The Popen options that cut a child loose from its parent, in the order to try them."""
    if platform == "win32":
        # subprocess.CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW by value: the names exist
        # on Windows only. Editors put their children in a job object that kills them with
        # the window; CREATE_BREAKAWAY_FROM_JOB leaves it, where the job allows that.
        flags = 0x00000200 | 0x08000000
        return [{"creationflags": flags | 0x01000000}, {"creationflags": flags}]
    return [{"start_new_session": True}]


#: For ``creationflags`` of a child: no console window for it on Windows.
NO_WINDOW: int = getattr(subprocess, "CREATE_NO_WINDOW", 0)


def find_program(
    name: str,
    environ: Mapping[str, str] = os.environ,
    *,
    places: Sequence[Path] = (),
    outside: Sequence[Path] = (),
    scripts: bool = False,
    platform: str = sys.platform,
) -> Path | None:
    """The program of that name: in one of ``places``, else by ``PATH``; None if there is none.

    Only absolute folders count, and nothing that lies in one of ``outside`` or leads there: a
    workspace may bring programs along, and its environment may be in the path. ``scripts``
    takes Windows' command files too, which run in a shell.
    """
    suffixes = [""]
    if platform == "win32":
        suffixes = [".exe", *((".cmd", ".bat") if scripts else ())]
    forbidden = [_real(folder) for folder in outside]

    def may_be_used(path: Path) -> bool:
        return not any(_real(path).is_relative_to(folder) for folder in forbidden)

    on_path = [Path(entry.strip('"')) for entry in environ.get("PATH", "").split(os.pathsep)]
    for folder in (*places, *on_path):
        if not folder.is_absolute() or (folder not in places and not may_be_used(folder)):
            continue
        for suffix in suffixes:
            found = folder / f"{name}{suffix}"
            if _is_program(found, platform) and (folder in places or may_be_used(found)):
                return found
    return None


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path.absolute()


def _is_program(path: Path, platform: str) -> bool:
    try:
        return path.is_file() and (platform == "win32" or os.access(path, os.X_OK))
    except (OSError, ValueError):
        return False


def is_alive(pid: int, started_at: float | None = None) -> bool:
    """Whether process ``pid`` runs, and is the one that started at ``started_at``.

    Ids are used again: without the start (as ``process_started_at`` tells it) a stranger
    passes for a process of ours.
    """
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return started_at is None or abs(start_of(process) - started_at) < 2.0
    except psutil.Error:
        return False


def process_started_at(pid: int) -> float:
    """When ``pid`` started, in seconds, from a beginning that is the system's own affair; 0.0
    if there is no such process.
    """
    try:
        return start_of(psutil.Process(pid))
    except psutil.Error:
        return 0.0


def start_of(process: psutil.Process, platform: str = sys.platform) -> float:
    """Tells a process from later ones with its id: seconds, the same at every call.

    Linux keeps the time since it started. Added to the hour of that, as psutil does, it moves
    with every correction of the clock, and a living engine would pass for a dead one.
    """
    since_epoch = float(process.create_time())
    return since_epoch - psutil.boot_time() if platform == "linux" else since_epoch


def open_handles(process: psutil.Process, platform: str = sys.platform) -> int:
    """How many files, sockets and the like a process has open."""
    # By its name: psutil's class has one of the two, by the system.
    count = getattr(process, "num_handles" if platform == "win32" else "num_fds")
    return int(count())


def stop_process(pid: int, *, patience: float = 5.0) -> None:
    """Asks ``pid`` to end, and ends it after ``patience`` seconds if it has not."""
    try:
        process = psutil.Process(pid)
        process.terminate()
        process.wait(timeout=patience)
    except psutil.TimeoutExpired:
        with contextlib.suppress(psutil.Error):
            process.kill()
            process.wait(timeout=patience)
    except psutil.Error:
        return


# --- what there is in this machine ---------------------------------------------------------

OperatingSystem = Literal["windows", "linux", "macos", "other"]


def operating_system(platform: str = sys.platform) -> OperatingSystem:
    """Which system this is, by the name that people know it by."""
    names: dict[str, OperatingSystem] = {"win32": "windows", "linux": "linux", "darwin": "macos"}
    return names.get(platform, "other")


def available_memory() -> tuple[int, int]:
    """(bytes that can be had without swapping, bytes in all) of the system's memory."""
    memory = psutil.virtual_memory()
    return int(memory.available), int(memory.total)


def memory_lock_limit() -> int | None:
    """The bytes of memory that this user's processes may lock; None without a limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return None if soft == resource.RLIM_INFINITY else soft


def powershell_json(
    script: str,
    *,
    timeout: float = 20.0,
    run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run,
    platform: str = sys.platform,
    environ: Mapping[str, str] = os.environ,
) -> Any:
    """What the PowerShell expression ``script`` gives, by way of JSON; None where it fails.

    Always None on other systems. Marks around the JSON keep out what a profile or a policy
    prints, and it is Windows' own PowerShell, not the first of that name in the path.
    """
    root = environ.get("SYSTEMROOT", "")
    if platform != "win32" or not root:
        return None
    program = PureWindowsPath(root, "System32", "WindowsPowerShell", "v1.0", "powershell.exe")
    begin, end = "<<fimble", "fimble>>"
    whole = (
        "[Console]::OutputEncoding = [Text.Encoding]::UTF8; "
        f"$fimble = ({script}) | ConvertTo-Json -Depth 4 -Compress; "
        f"'{begin}' + $fimble + '{end}'"
    )
    try:
        done = run(
            [str(program), "-NoProfile", "-NonInteractive", "-Command", whole],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            creationflags=NO_WINDOW,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    _, found, rest = done.stdout.rpartition(begin)
    text, closed, _ = rest.partition(end)
    if not found or not closed:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


# --- console -----------------------------------------------------------------------------


def use_utf8_console() -> None:
    """Makes the standard streams take any character, whatever the console's code page.

    A Windows console or a pipe with a legacy code page would fail on the first ``✓``.
    """
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="replace")
    if sys.platform == "win32":
        ctypes.windll.kernel32.SetConsoleOutputCP(65001)


# --- file URIs ---------------------------------------------------------------------------

_DRIVE = re.compile(r"^/([A-Za-z])(?::|%3A|%3a)(?=/|$)")
_NO_NAME = re.compile("[\0\ud800-\udfff]")


def path_from_uri(uri: str, platform: str = sys.platform) -> PurePath | None:
    """The file that a ``file:`` URI names; None for any other scheme (``untitled:``, …), and where
    there is none: no file's name has a zero byte or half a character in it.

    Percent escapes are decoded once; drive letters come out in upper case, since editors
    differ in how they write them and the same file must have one name.
    """
    try:
        parts = urlsplit(uri)
    except ValueError:  # what stands for the host is none
        return None
    if parts.scheme != "file":
        return None
    path = unquote(parts.path)
    if _NO_NAME.search(path):
        return None
    if platform != "win32":
        return PurePosixPath(path)
    if parts.netloc and parts.netloc != "localhost":
        return PureWindowsPath(f"//{parts.netloc}{path}")
    drive = _DRIVE.match(path)
    if drive:
        return PureWindowsPath(f"{drive[1].upper()}:{path[drive.end() :] or '/'}")
    return PureWindowsPath(path)


def uri_from_path(path: PurePath) -> str:
    """The ``file:`` URI of an absolute path, spelled as VS Code spells it."""
    if isinstance(path, PureWindowsPath):
        text = path.as_posix()
        if text.startswith("//"):
            host, _, rest = text[2:].partition("/")
            return f"file://{host}/{quote(rest)}"
        drive, _, rest = text.partition(":")
        return f"file:///{drive.lower()}%3A{quote(rest)}"
    return f"file://{quote(str(path))}"
