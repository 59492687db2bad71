"""One call: connect to an address that was judged, post, and see what is said."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from queuectl.errors import CallRefused, CallUnanswered
from queuectl.hooks.reach import CHECK_NAME, Resolve, reachable, resolve

SECONDS: Final = 10.0  # to connect, and for each word of the answer
MOST: Final = 64 * 1024  # bytes of an answer that are looked at


class Answer(NamedTuple):
    status: int
    text: str  # its first line


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    private: bool,
    resolving: Resolve = resolve,
    seconds: float = SECONDS,
) -> Answer:
    """Raises CallRefused where it must not go, CallUnanswered where nobody said yes: a status other than 2xx, which a redirect is,
    too. Nobody is followed elsewhere: an address that was judged could send us to one that was not."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection = _connect(
        host, port, reachable(host, port, private=private, resolving=resolving), parts.scheme, seconds
    )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target, body, dict(headers))
        answer = connection.getresponse()
        text = answer.read(MOST).decode("utf-8", "replace").strip().partition("\n")[0]
    except (OSError, http.client.HTTPException) as exc:
        raise CallUnanswered(host, f"no answer: {str(exc) or type(exc).__name__}") from exc
    finally:
        connection.close()
    if 300 <= answer.status < 400:
        raise CallUnanswered(host, f"it answered {answer.status}, elsewhere; nobody is followed there")
    if not 200 <= answer.status < 300:
        raise CallUnanswered(host, f"it answered {answer.status} {answer.reason}".rstrip())
    return Answer(answer.status, text)


def _connect(host: str, port: int, addresses: list[str], scheme: str, seconds: float) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(host, port, timeout=seconds)
    failure: Exception | None = None
    for address in addresses:
        try:
            plain = socket.create_connection((address, port), timeout=seconds)
        except OSError as exc:
            failure = exc
            continue
        try:
            # The certificate has to be that of the name, though the connection is to an address.
            connection.sock = (
                ssl.create_default_context().wrap_socket(plain, server_hostname=host) if scheme == "https" else plain
            )
        except OSError as exc:
            plain.close()
            raise CallUnanswered(host, f"no TLS with it: {exc}") from exc
        return connection
    if failure is None:
        raise CallRefused(host, "its name stands for no address", hint=CHECK_NAME)
    raise CallUnanswered(host, f"cannot connect: {failure}") from failure
