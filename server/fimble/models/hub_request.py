"""One request to a Hugging Face hub: where it is, what it answers, what a refusal means.

huggingface_hub says where the hub is, with which token, and whether we are offline
(HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, its time-outs). Knows nothing of files on the disk.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import os
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from fimble import __version__
from fimble.errors import DownloadError
from fimble.models.catalogue import HubFile

__all__ = ["Dropped", "Hub", "HubUnreachable", "open_answer", "reason_of"]


class HubUnreachable(DownloadError):
    """The hub does not answer, or does not answer as a hub."""


class Dropped(Exception):
    """The connection ended before the file did."""


@dataclass(frozen=True, slots=True)
class Hub:
    """Where the hub is and how patient we are with it. Times in seconds.

    ``open_timeout`` is for everything up to the first byte: names, connections, redirects.
    ``attempts`` counts connections in a row that bring nothing new.
    """

    endpoint: str
    token: str | None
    offline: bool = False
    open_timeout: float = 10.0
    read_timeout: float = 10.0
    attempts: int = 5
    pause: float = 1.0

    @classmethod
    def from_environment(cls) -> Hub:
        """As the user has set up huggingface_hub."""
        from huggingface_hub import constants, get_token

        implicit = not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN
        return cls(
            endpoint=constants.ENDPOINT,
            token=get_token() if implicit else None,
            offline=constants.HF_HUB_OFFLINE,
            open_timeout=constants.HF_HUB_ETAG_TIMEOUT,
            read_timeout=constants.HF_HUB_DOWNLOAD_TIMEOUT,
        )

    def url(self, file: HubFile) -> str:
        """Where the file's bytes are; answers with a redirect to a content server."""
        from huggingface_hub import hf_hub_url

        return str(hf_hub_url(file.repo, file.file, revision=file.revision, endpoint=self.endpoint))

    def listing_url(self, repo: str) -> str:
        """Where the hub tells what is in the newest revision of a repository, as JSON."""
        return f"{self.endpoint}/api/models/{quote(repo)}/revision/main?blobs=true"


@contextlib.contextmanager
def open_answer(hub: Hub, url: str, file: HubFile, *, start: int = 0) -> Iterator[httpx.Response]:
    """The hub's answer to a request for ``url`` from byte ``start`` on, not yet read.

    ``file`` is what the request is for; its name is empty for a whole repository.

    Raises Dropped where there is none in time, DownloadError where it is a refusal.
    """
    headers = {"user-agent": f"fimble/{__version__}", "accept-encoding": "identity"}
    if hub.token:
        headers["authorization"] = f"Bearer {hub.token}"
    if start:
        headers["range"] = f"bytes={start}-"
    client = _client(hub)
    with client:
        response = _send_within(hub.open_timeout, client, url, headers)
        try:
            _refuse(response, hub, file)
            yield response
        finally:
            response.close()


def _client(hub: Hub) -> httpx.Client:
    """A client after the user's proxy and certificate settings; HubUnreachable if they fail."""
    try:
        return httpx.Client(
            timeout=httpx.Timeout(hub.read_timeout, connect=hub.open_timeout),
            verify=_certificates(*map(os.environ.get, ("SSL_CERT_FILE", "SSL_CERT_DIR"))),
            follow_redirects=True,  # httpx keeps the token from other hosts
        )
    except (OSError, ImportError, ValueError) as error:
        raise HubUnreachable(
            f"{hub.endpoint} cannot be asked with the proxy or certificate settings of this "
            f"environment: {error}.",
            next_step="Check HTTPS_PROXY, ALL_PROXY, NO_PROXY and SSL_CERT_FILE.",
        ) from error


@functools.cache
def _certificates(*places: str | None) -> ssl.SSLContext:
    """Whom to trust, with ``places`` as httpx finds them; a fifth of a second to read."""
    tls = httpx.create_ssl_context()
    tls.load_default_certs()  # the system's own roots too: company proxies sign with those
    return tls


def _send_within(
    seconds: float, client: httpx.Client, url: str, headers: dict[str, str]
) -> httpx.Response:
    """Sends the request; Dropped where no answer has begun after ``seconds``.

    httpx bounds each step, but not their sum: a host with eight addresses, none of which
    answers, takes eight time-outs, and looking its name up has none.
    """
    answer: concurrent.futures.Future[httpx.Response] = concurrent.futures.Future()

    def send() -> None:
        try:
            response = client.send(client.build_request("GET", url, headers=headers), stream=True)
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            answer.set_exception(error)
        else:
            answer.set_result(response)

    threading.Thread(target=send, name="fimble-hub-request", daemon=True).start()
    try:
        return answer.result(timeout=seconds)
    except concurrent.futures.TimeoutError as error:
        answer.add_done_callback(_discard)
        raise Dropped(f"no answer within {seconds:g} seconds") from error
    except httpx.TransportError as error:
        raise Dropped(reason_of(error)) from error
    except (httpx.InvalidURL, httpx.TooManyRedirects, ValueError) as error:
        raise HubUnreachable(
            f"{url} cannot be asked for: {error}.", next_step="Check HF_ENDPOINT and HF_TOKEN."
        ) from error


def _discard(answer: concurrent.futures.Future[httpx.Response]) -> None:
    if answer.exception() is None:
        answer.result().close()


def _refuse(response: httpx.Response, hub: Hub, file: HubFile) -> None:
    """Raises what a status other than success means."""
    status = response.status_code
    if status in (200, 206, 416):
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Dropped("something in between compresses the file")
        return
    redirected = response.url.host != httpx.URL(hub.endpoint).host
    if status in (408, 429) or status >= 500 or redirected:
        raise Dropped(f"{response.url.host} answered {status} {response.reason_phrase}")
    code = response.headers.get("x-error-code", "")
    if status == 403 and not code and "x-error-message" not in response.headers:
        # The hub gives its reasons in headers; a company's filter answers just so.
        raise Dropped(f"{response.url.host} answered 403, as a filter in between would")
    page = f"{hub.endpoint}/{file.repo}"
    if code == "GatedRepo":
        raise DownloadError(
            f"{file.repo} is gated: its owner gives access on request only.",
            next_step=f"Accept its terms at {page}, then run `hf auth login` or set HF_TOKEN.",
        )
    if status in (401, 403):
        raise DownloadError(
            f"{hub.endpoint} refuses access to {file.repo} ({status}): it does not exist, is "
            "private, or the token is not valid.",
            next_step="Check HF_TOKEN (`hf auth whoami`) and HF_ENDPOINT.",
        )
    if status == 404 and not file.file:
        raise DownloadError(
            f"{hub.endpoint} has no model repository {file.repo}.",
            next_step="Check the name's spelling, upper and lower case included, and HF_ENDPOINT.",
        )
    if status == 404:
        what = f"no revision {file.revision} of" if code == "RevisionNotFound" else "no"
        raise DownloadError(
            f"{hub.endpoint} has {what} file {file.file} in {file.repo}.",
            next_step="Update fimble; or download a GGUF file of the model yourself and run "
            "`fimble model import FILE`."
            if file.revision is None
            else "Run the same command again: the repository may have changed meanwhile.",
        )
    raise DownloadError(
        f"{hub.endpoint} answered {status} {response.reason_phrase} for {file.repo}.",
        next_step=f"Open {page} in a browser to see why.",
    )


def reason_of(error: httpx.TransportError) -> str:
    """The error in a few words, without a final dot; some of httpx's have no text at all."""
    return str(error).strip().rstrip(".") or type(error).__name__
