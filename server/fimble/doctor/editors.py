"""fimble's editor clients, where editors usually keep such things.

A client that is elsewhere is not found, and any editor that speaks LSP needs none: nothing
here is ever a failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fimble import system
from fimble.doctor.checks import Check

__all__ = ["FoundClient", "editor_check", "find_clients"]

_NAME = "fimble"
_MOST_BYTES = 1 << 20
_MOST_FILES = 300
#: Editors of VS Code's family: name → their folder in the user's home.
_VSCODE = {
    "VS Code": ".vscode",
    "VS Code Insiders": ".vscode-insiders",
    "VS Code (remote)": ".vscode-server",
    "VSCodium": ".vscode-oss",
    "Cursor": ".cursor",
    "Windsurf": ".windsurf",
}
#: Where Neovim's plugin managers put plugins, below its data folder.
_NVIM = ("lazy/*", "plugged/*", "site/pack/*/start/*", "site/pack/*/opt/*", "mini.deps/*")


@dataclass(frozen=True, slots=True)
class FoundClient:
    """An editor in which fimble is installed, or that is configured to start it."""

    editor: str
    place: str


def find_clients(
    home: Path, here: system.OperatingSystem, environ: Mapping[str, str] = os.environ
) -> list[FoundClient]:
    """Looks below ``home``; what cannot be read is not there."""
    found = []
    for editor, folder in _VSCODE.items():
        for place in _glob(home / folder / "extensions", "*"):
            if _NAME in place.name.lower():
                found.append(FoundClient(editor, str(place)))
    config, data = _folders(home, here, environ)
    nvim = data / ("nvim-data" if here == "windows" else "nvim")
    for pattern in _NVIM:
        for place in _glob(nvim, pattern):
            if _NAME in place.name.lower():
                found.append(FoundClient("Neovim", str(place)))
    if not any(each.editor == "Neovim" for each in found):
        found += _mentions("Neovim", config / "nvim", ("init.lua", "init.vim", "**/*.lua"))
    helix = _roaming(config, here, environ) / "helix"
    found += _mentions("Helix", helix, ("languages.toml",))
    found += _mentions("Emacs", home, (".emacs.d/init.el", ".emacs", ".config/emacs/init.el"))
    return found


def _folders(
    home: Path, here: system.OperatingSystem, environ: Mapping[str, str]
) -> tuple[Path, Path]:
    """(settings, data) of the user's programs."""
    if here == "windows":
        local = _absolute(environ.get("LOCALAPPDATA", ""), home / "AppData" / "Local")
        return local, local
    config = _absolute(environ.get("XDG_CONFIG_HOME", ""), home / ".config")
    data = _absolute(environ.get("XDG_DATA_HOME", ""), home / ".local" / "share")
    return config, data


def _roaming(config: Path, here: system.OperatingSystem, environ: Mapping[str, str]) -> Path:
    return _absolute(environ.get("APPDATA", ""), config) if here == "windows" else config


def _absolute(text: str, otherwise: Path) -> Path:
    path = Path(text) if text and "\0" not in text else otherwise
    return path if path.is_absolute() else otherwise


def _mentions(editor: str, folder: Path, patterns: tuple[str, ...]) -> list[FoundClient]:
    """The first settings file that names fimble."""
    for pattern in patterns:
        for place in _glob(folder, pattern):
            if _NAME in _beginning(place).lower():
                return [FoundClient(editor, str(place))]
    return []


def _glob(folder: Path, pattern: str) -> Iterator[Path]:
    """At most so many; a home folder may hold anything."""
    try:
        for number, place in enumerate(folder.glob(pattern)):
            if number >= _MOST_FILES:
                return
            yield place
    except (OSError, ValueError):
        return


def _beginning(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as stream:
            return stream.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def editor_check(clients: list[FoundClient]) -> Check:
    """One line for all of them."""
    if not clients:
        return Check(
            "editors",
            "ok",
            "no client was found in the usual places; any editor that speaks LSP can start "
            "`fimble serve`",
        )
    return Check("editors", "ok", ", ".join(f"{each.editor} ({each.place})" for each in clients))
