"""Where a server is. Plain data, checked; nothing is connected here."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from fimble.errors import SettingsError

__all__ = ["KEY_VARIABLE", "Endpoint", "endpoint_from_json"]

#: The environment variable that holds the API key, where the user names no other.
KEY_VARIABLE = "FIMBLE_API_KEY"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``url`` is the base of OpenAI's paths, as in ``https://box:8000/v1``.

    ``model`` is the name to ask for; "" takes the first that the server lists. ``window`` is
    the longest prompt plus answer in tokens; 0 asks the server. ``key_variable`` names the
    environment variable with the API key. Made by ``at``, which checks.
    """

    url: str
    model: str = ""
    window: int = 0
    key_variable: str = KEY_VARIABLE

    @classmethod
    def at(
        cls, url: str, *, model: str = "", window: int = 0, key_variable: str = KEY_VARIABLE
    ) -> Endpoint:
        """The endpoint at ``url``, whose path is ``/v1`` where it has none.

        Raises SettingsError for what is no address of a server, or would send a password along.
        """
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as error:
            raise _wrong(url, str(error)) from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _wrong(url, "it has to begin with http:// or https:// and a host")
        if parts.username is not None or parts.password is not None:
            # The address is shown in messages and kept in a file.
            raise _wrong("…", "an address never holds a user's name or password")
        if parts.query or parts.fragment:
            raise _wrong(url, "it ends with its path")
        if window < 0:
            raise SettingsError("A window is a number of tokens, 0 or more.")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        place = host if port is None else f"{host}:{port}"
        path = parts.path.rstrip("/") or "/v1"
        return cls(f"{parts.scheme}://{place}{path}", model, window, key_variable)

    @property
    def host(self) -> str:
        """The server as messages show it: host, and port if one is given."""
        return urlsplit(self.url).netloc

    @property
    def leaves_machine(self) -> bool:
        """Whether what is sent there goes to another machine."""
        return not _is_loopback(urlsplit(self.url).hostname or "")

    @property
    def encrypted(self) -> bool:
        """Whether nobody between here and there can read along."""
        return self.url.startswith("https:")

    def to_json(self) -> dict[str, Any]:
        """What ``endpoint_from_json`` makes this of again."""
        return {
            "url": self.url,
            "model": self.model,
            "window": self.window,
            "key_variable": self.key_variable,
        }


def endpoint_from_json(data: Any) -> Endpoint:
    """The inverse of ``Endpoint.to_json``. Raises SettingsError."""
    known = {"url": str, "model": str, "window": int, "key_variable": str}
    if not isinstance(data, dict) or not isinstance(data.get("url"), str):
        raise SettingsError('An engine elsewhere is an object with an "url".')
    for name, value in data.items():
        if name not in known or not isinstance(value, known[name]) or isinstance(value, bool):
            raise SettingsError(f"{name!r} of an engine elsewhere is unknown or of a wrong type.")
    return Endpoint.at(
        data["url"],
        model=data.get("model", ""),
        window=data.get("window", 0),
        key_variable=data.get("key_variable", KEY_VARIABLE),
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _wrong(url: str, why: str) -> SettingsError:
    return SettingsError(
        f"{url} is not the address of an engine: {why}.",
        next_step="An address looks like https://box.example:8000/v1.",
    )
