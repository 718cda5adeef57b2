"""Who may speak to the engine: whoever has the secret, and no web page.

ASGI middleware in front of every endpoint. A page in a browser can send requests to
loopback, so besides the secret the Host must be ours (DNS rebinding) and there must be no
Origin. Bodies are bounded in size and time, and so are requests at once. Knows nothing of what
is asked.
"""

from __future__ import annotations

import asyncio
import hmac

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fimble.engine.strangers import KNOWN

__all__ = ["BODY_LIMIT", "PARALLEL_LIMIT", "BodyRefused", "Guard"]

#: Bytes. Enough for the text of any window; a tokenizer call on a large file fits too.
BODY_LIMIT = 16_000_000
#: Requests at once that send a body; those that only look at the engine are always answered.
PARALLEL_LIMIT = 128
#: Seconds for a whole body.
_BODY_SECONDS = 15.0


class Guard:
    """``port`` is the one that clients connect to; set once it is known."""

    def __init__(self, app: ASGIApp, *, secret: str, port: int = 0) -> None:
        self._app = app
        self._secret = secret.encode()
        self._at_work = 0
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
        scope.setdefault("state", {})[KNOWN] = True
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        if self._at_work >= PARALLEL_LIMIT:
            await _too_many()(scope, receive, send)
            return
        self._at_work += 1
        try:
            await self._app(scope, _limited(receive), send)
        finally:
            self._at_work -= 1

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


class BodyRefused(Exception):
    """A body came too slowly, or with more than ``BODY_LIMIT`` bytes though no length said so."""

    def __init__(self, answer: JSONResponse) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


def body_too_large() -> JSONResponse:
    """The answer to a body over the limit."""
    return _error(
        413,
        "body_too_large",
        f"The request has more than {BODY_LIMIT} bytes.",
        "Send less text at once.",
    )


def _body_too_slow() -> JSONResponse:
    refusal = _error(
        408,
        "body_too_slow",
        f"The request did not come within {_BODY_SECONDS:.0f} seconds.",
        "Send it again.",
    )
    # What is still to come of it is not waited for.
    refusal.headers["connection"] = "close"
    return refusal


def _too_many() -> JSONResponse:
    return _error(
        429,
        "too_many_requests",
        f"{PARALLEL_LIMIT} requests are at work already.",
        "Wait for answers, or close connections that nobody reads.",
    )


def _limited(receive: Receive) -> Receive:
    """``receive`` that gives up when a body grows too large or takes too long."""
    seen = 0
    whole = False
    deadline = 0.0

    async def limited() -> Message:
        nonlocal seen, whole, deadline
        if whole:  # what comes now is the end of the connection, however late
            return await receive()
        now = asyncio.get_running_loop().time()
        deadline = deadline or now + _BODY_SECONDS
        try:
            message = await asyncio.wait_for(receive(), max(0.001, deadline - now))
        except asyncio.TimeoutError as error:
            raise BodyRefused(_body_too_slow()) from error
        whole = not message.get("more_body", False)
        seen += len(message.get("body", b""))
        if seen > BODY_LIMIT:
            raise BodyRefused(body_too_large())
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
