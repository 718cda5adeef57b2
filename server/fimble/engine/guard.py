"""Who may speak to the engine: whoever has the secret, and no web page.

ASGI middleware in front of every endpoint. A page in a browser can send requests to
loopback, so besides the secret the Host must be ours (DNS rebinding) and there must be no
Origin. Bodies are bounded. Knows nothing of what is asked.
"""

from __future__ import annotations

import hmac

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BODY_LIMIT", "Guard"]

#: Bytes. Enough for the text of any window; a tokenizer call on a large file fits too.
BODY_LIMIT = 16_000_000


class Guard:
    """``port`` is the one that clients connect to; set once it is known."""

    def __init__(self, app: ASGIApp, *, secret: str, port: int = 0) -> None:
        self._app = app
        self._secret = secret.encode()
        self.port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refusal = self._refusal(headers)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _limited(receive), send)

    def _refusal(self, headers: dict[bytes, bytes]) -> JSONResponse | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if host not in (f"127.0.0.1:{self.port}", f"localhost:{self.port}"):
            return _error(403, "host_refused", "This host name is not the engine's.")
        if b"origin" in headers:
            return _error(403, "origin_refused", "Web pages may not use the engine.")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        # Both are always compared, in constant time.
        known = hmac.compare_digest(token.strip(), self._secret)
        if scheme.lower() != b"bearer" or not known:
            return _error(
                401,
                "unauthorized",
                "The engine's secret is missing or wrong.",
                "Send it as `Authorization: Bearer SECRET`.",
            )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            return body_too_large()
        return None


class BodyTooLarge(Exception):
    """More bytes than ``BODY_LIMIT`` came, without a length in the header."""


def body_too_large() -> JSONResponse:
    """The answer to a body over the limit."""
    return _error(
        413,
        "body_too_large",
        f"The request has more than {BODY_LIMIT} bytes.",
        "Send less text at once.",
    )


def _limited(receive: Receive) -> Receive:
    """``receive`` that gives up when a body without a length grows too large."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > BODY_LIMIT:
                raise BodyTooLarge
        return message

    return limited


def _error(status: int, code: str, message: str, next_step: str = "") -> JSONResponse:
    error = {
        "message": message,
        "type": "invalid_request_error",
        "code": code,
        "next_step": next_step,
    }
    return JSONResponse({"error": error}, status_code=status)
