"""Which engine the user has chosen for completions, and which for chat and edits.

Kept in ``FIMBLE_HOME/engine.json``, which only the user's own commands write. No setting of an
editor can choose one: a workspace brings settings along, and would send the user's code to
whomever it likes. Settings can only forbid.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fimble import system
from fimble.engine.remote.endpoint import Endpoint, endpoint_from_json
from fimble.errors import SettingsError

__all__ = [
    "FORBID_VARIABLE",
    "EngineChoice",
    "Purpose",
    "choice_file",
    "is_forbidden",
    "read_choice",
    "write_choice",
]

#: Where this environment variable is set to anything but 0, no engine elsewhere is used.
FORBID_VARIABLE = "FIMBLE_FORBID_REMOTE"

Purpose = Literal["completion", "chat"]


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """None stands for the engine of this machine.

    ``fall_back`` lets that one answer while the other does not.
    """

    completion: Endpoint | None = None
    chat: Endpoint | None = None
    fall_back: bool = False

    def for_purpose(self, purpose: Purpose) -> Endpoint | None:
        """The server for that purpose, if it is not this machine's engine."""
        return self.completion if purpose == "completion" else self.chat

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "completion": self.completion.to_json() if self.completion else None,
            "chat": self.chat.to_json() if self.chat else None,
            "fall_back": self.fall_back,
        }


def choice_file() -> Path:
    """Where the choice is kept."""
    return system.home() / "engine.json"


def read_choice(environ: Mapping[str, str] = os.environ) -> EngineChoice:
    """What was chosen; this machine's engine where nothing was, or where others are forbidden.

    Raises SettingsError for a file that cannot be meant: to go on with another engine than the
    chosen one could be what the user wants least.
    """
    if is_forbidden(environ):
        return EngineChoice()
    path = choice_file()
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return EngineChoice()
    except (OSError, ValueError) as error:
        raise _unusable(path, str(error)) from error
    if not isinstance(data, dict) or not isinstance(data.get("fall_back", False), bool):
        raise _unusable(path, "it is not what fimble writes")
    try:
        ends = [
            None if data.get(purpose) is None else endpoint_from_json(data[purpose])
            for purpose in ("completion", "chat")
        ]
    except SettingsError as error:
        raise _unusable(path, error.message) from error
    return EngineChoice(ends[0], ends[1], data.get("fall_back", False))


def write_choice(choice: EngineChoice) -> None:
    """Keeps the choice, for this user's eyes only."""
    path = choice_file()
    system.make_private_dir(path.parent)
    system.write_private(path, json.dumps(choice.to_json(), indent=2).encode("utf-8"))


def is_forbidden(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment forbids engines elsewhere, as an administrator may want."""
    return environ.get(FORBID_VARIABLE, "").strip() not in ("", "0")


def _unusable(path: Path, why: str) -> SettingsError:
    return SettingsError(
        f"{path} cannot be used: {why}.",
        next_step="Run `fimble engine use local`, or `fimble engine use URL` again.",
    )
