"""What a server's failures mean, in the user's terms, with the next step."""

from __future__ import annotations

import json

import httpx

from fimble.controls import without_controls
from fimble.engine.remote.endpoint import Endpoint
from fimble.errors import EngineError, EngineUnavailable, ModelNotFound, RequestRejected

__all__ = ["in_short", "problem_of_answer", "problem_of_connection"]


def problem_of_connection(error: httpx.TransportError, endpoint: Endpoint) -> EngineError:
    """Why nothing was heard of the server."""
    host = endpoint.host
    if isinstance(error, httpx.ProxyError):
        return EngineUnavailable(
            f"The proxy in front of {host} refuses: {in_short(str(error))}.",
            next_step="Check HTTPS_PROXY and NO_PROXY.",
        )
    if isinstance(error, httpx.ConnectTimeout):
        return EngineUnavailable(
            f"{host} cannot be reached: no answer within some seconds.",
            next_step="Check the address, the network and the server's firewall.",
        )
    if isinstance(error, httpx.TimeoutException):
        return EngineUnavailable(
            f"{host} took too long to answer.", next_step="See how busy the server is."
        )
    if isinstance(error, httpx.ConnectError) and "CERTIFICATE" in str(error).upper():
        return EngineUnavailable(
            f"The certificate of {host} is not trusted: {in_short(str(error))}.",
            next_step=_next_step_of_certificate(str(error)),
        )
    if isinstance(error, httpx.ConnectError):
        return EngineUnavailable(
            f"{host} cannot be reached: {in_short(str(error))}.",
            next_step="Check the address, and that the server runs.",
        )
    return EngineUnavailable(f"The connection to {host} broke.", next_step="Try again.")


def _next_step_of_certificate(why: str) -> str:
    """After OpenSSL's own reason."""
    if "expired" in why:
        return "Have the server's certificate renewed, or put this machine's clock right."
    if "mismatch" in why:
        return "Choose the address that the certificate is for: somebody else may answer there."
    return "Set SSL_CERT_FILE to the authority that signed it, if that is one you trust."


def problem_of_answer(response: httpx.Response, body: bytes, endpoint: Endpoint) -> Exception:
    """What a status other than 200 means. The server's own words in ``body`` are kept, short."""
    host, status = endpoint.host, response.status_code
    words = _words(body)
    if status in (401, 403):
        return EngineUnavailable(
            f"{host} does not let fimble in (HTTP {status}{words}).",
            next_step=f"Set {endpoint.key_variable} to an API key of that server, or keep one "
            "with `fimble engine key`.",
        )
    if 300 <= status < 400:
        return EngineUnavailable(
            f"{endpoint.url} points to another address, which is not followed.",
            next_step="Choose the address that the server really has.",
        )
    if status == 404:
        return ModelNotFound(
            f"{endpoint.url} has no such path or model (HTTP 404{words}).",
            next_step="Check the address, which usually ends with /v1, and the model's name.",
        )
    if status == 429:
        return EngineUnavailable(
            f"{host} has too many requests (HTTP 429{words}).", next_step="Wait a little."
        )
    if 400 <= status < 500:
        return RequestRejected(
            f"{host} refuses the request (HTTP {status}{words}).",
            next_step="If it is too long, give the window: `fimble engine use URL --window N`.",
        )
    return EngineUnavailable(
        f"{host} failed (HTTP {status}{words}).", next_step="See the server's log."
    )


def _words(body: bytes) -> str:
    """`: what the server said`, without control characters; empty for a page of HTML."""
    try:
        data = json.loads(body)
        said = data.get("error", data.get("detail", data.get("message", "")))
        text = said.get("message", "") if isinstance(said, dict) else said
    except (ValueError, AttributeError, RecursionError):
        return ""
    short = in_short(str(text))
    return f": {short}" if short else ""


def in_short(text: str) -> str:
    """A server's words as a message may hold them: one line, 200 characters, nothing that steers
    a terminal or turns the direction of writing.
    """
    return without_controls(text[:10_000], " ").strip()[:200]
