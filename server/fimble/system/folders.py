"""Where fimble keeps its state, and the folders in it that only their owner may read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

from fimble.errors import FimbleError

__all__ = [
    "config_dir",
    "home",
    "is_own",
    "logs_dir",
    "make_private_dir",
    "models_dir",
    "runtime_dir",
    "templates_dir",
    "user_folder",
]


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


def user_folder() -> Path | None:
    """The folder with all of the user's own files; None where the system names none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


# --- file rights and atomic replacement --------------------------------------------------


def make_private_dir(path: Path) -> Path:
    """Creates ``path`` readable by its owner only, and returns it.

    On Windows a folder below the user's profile already has that right; its ACL is left.
    A folder that another user has put there is refused: who owns it can change what is in it.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        found = path.stat()
        if not is_own(found):
            raise FimbleError(
                f"The folder {path} belongs to another user.",
                next_step="Set FIMBLE_HOME to a folder of your own. If this one is yours, as a "
                "container's volume is, give it to the user that runs fimble: "
                f"`chown -R {_user()} {path}`.",
            )
        if sys.platform != "win32" and stat.S_IMODE(found.st_mode) != 0o700:
            path.chmod(0o700)
    except OSError as error:
        raise FimbleError(
            f"The folder {path} cannot be made: {error.strerror}.",
            next_step="Set FIMBLE_HOME to a folder that you can write to.",
        ) from error
    return path


def is_own(found: os.stat_result) -> bool:
    """Whether a file is this user's; always on Windows, where nothing is shared below a profile."""
    user = _user()
    return user is None or found.st_uid == user


def _user() -> int | None:
    """The user's number, by which files are theirs; None on Windows."""
    ask: Callable[[], int] | None = getattr(os, "geteuid", None)
    return None if ask is None else ask()
