"""The API key of a server: from the environment, or from the system's keyring.

Never from a settings file, and never shown or logged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from fimble.engine.remote.endpoint import Endpoint
from fimble.errors import SettingsError

__all__ = ["api_key", "forget_key", "keep_key"]

_SERVICE = "fimble"


def api_key(endpoint: Endpoint, environ: Mapping[str, str] = os.environ) -> str:
    """The key for ``endpoint``; "" where the user has none.

    May wait for the user, whose keyring may be locked: not for an event loop's thread.
    """
    given = environ.get(endpoint.key_variable, "").strip()
    if given:
        return given
    keyring = _keyring()
    if keyring is None:
        return ""
    try:
        return str(keyring.get_password(_SERVICE, endpoint.host) or "")
    except Exception:  # noqa: BLE001
        # Each system's keyring has errors of its own; without a key the server says what is wrong.
        return ""


def keep_key(endpoint: Endpoint, key: str) -> None:
    """Keeps the key in the system's keyring. Raises SettingsError where there is none."""
    keyring = _keyring()
    if keyring is None:
        raise _no_keyring(endpoint, "the package keyring is not installed")
    try:
        keyring.set_password(_SERVICE, endpoint.host, key)
    except Exception as error:
        raise _no_keyring(endpoint, str(error)) from error


def forget_key(endpoint: Endpoint) -> bool:
    """Takes the key out of the keyring again; whether there was one."""
    keyring = _keyring()
    try:
        if keyring is None or keyring.get_password(_SERVICE, endpoint.host) is None:
            return False
        keyring.delete_password(_SERVICE, endpoint.host)
    except Exception:  # noqa: BLE001
        return False
    return True


def _keyring() -> Any:
    """The optional library (extra ``keyring``), or None."""
    try:
        import keyring  # type: ignore[import-not-found]
    except ImportError:
        return None
    return keyring


def _no_keyring(endpoint: Endpoint, why: str) -> SettingsError:
    return SettingsError(
        f"The key cannot be kept in this system's keyring: {why}.",
        next_step=f"Install fimble's extra `keyring`, or set {endpoint.key_variable} instead.",
    )
