"""Which proxy the user's environment, or the system's settings, put in front of a server."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from fimble.engine.remote.endpoint import Endpoint
from fimble.errors import EngineUnavailable

__all__ = ["proxy_for"]


def proxy_for(endpoint: Endpoint) -> httpx.Proxy | None:
    """The proxy to ask; none in front of this machine itself. May take a while on Windows, which
    looks names up. Raises EngineUnavailable for one of a kind that is not spoken here.
    """
    if not endpoint.leaves_machine or proxy_bypass(endpoint.host):
        return None
    proxies = getproxies()
    address = proxies.get(urlsplit(endpoint.url).scheme) or proxies.get("all")
    if not address:
        return None
    address = address if "://" in address else f"http://{address}"
    try:
        proxy = httpx.Proxy(address)
        httpx.AsyncHTTPTransport(verify=False, proxy=proxy)
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        # Its address may hold a password: that is not shown.
        kind = address.partition("://")[0]
        raise EngineUnavailable(
            f"The proxy in front of {endpoint.host} cannot be used ({kind}).",
            next_step="Set HTTPS_PROXY to one that begins with http:// or https://, or name "
            "the server in NO_PROXY.",
        ) from error
    return proxy
