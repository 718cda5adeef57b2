"""Addresses of servers: what is one, what is shown of it, whether text leaves the machine."""

from __future__ import annotations

import pytest

from fimble.engine.remote.endpoint import Endpoint, endpoint_from_json
from fimble.errors import SettingsError


@pytest.mark.parametrize(
    ("given", "url", "host"),
    [
        ("https://box.example", "https://box.example/v1", "box.example"),
        ("https://box.example:8000/v1/", "https://box.example:8000/v1", "box.example:8000"),
        (" http://127.0.0.1:11434 ", "http://127.0.0.1:11434/v1", "127.0.0.1:11434"),
        ("http://[::1]:8080/api/v0", "http://[::1]:8080/api/v0", "[::1]:8080"),
    ],
)
def test_an_address(given: str, url: str, host: str) -> None:
    endpoint = Endpoint.at(given)
    assert (endpoint.url, endpoint.host) == (url, host)
    assert endpoint_from_json(endpoint.to_json()) == endpoint


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("box.example", "http"),
        ("ftp://box.example", "http"),
        ("https://", "host"),
        ("https://me:secret@box.example/v1", "password"),
        ("https://box.example/v1?key=1", "path"),
        ("https://box.example:port/v1", "port"),
        ("file:///etc/passwd", "http"),
    ],
)
def test_what_is_none(given: str, why: str) -> None:
    with pytest.raises(SettingsError, match=why) as caught:
        Endpoint.at(given)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "leaves"),
    [
        ("http://localhost:1", False),
        ("http://127.9.9.9", False),
        ("http://[::1]", False),
        ("http://192.168.0.2", True),
        ("http://127.0.0.1.evil.example", True),
        ("https://localhost.evil.example", True),
    ],
)
def test_whether_text_leaves_the_machine(url: str, leaves: bool) -> None:
    assert Endpoint.at(url).leaves_machine is leaves


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"url": 1}, {"url": "x"}, {"url": "http://a", "window": "1"},
     {"url": "http://a", "window": True}, {"url": "http://a", "window": -1},
     {"url": "http://a", "command": "rm"}],
)  # fmt: skip
def test_a_file_that_says_something_else(data: object) -> None:
    with pytest.raises(SettingsError):
        endpoint_from_json(data)
