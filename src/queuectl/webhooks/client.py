"""The HTTP client for webhooks: one signed POST request to an address that ssrf.py has checked.

The signature is `Queuectl-Signature: t=UNIX,v1=HEX`, the HMAC-SHA256 of `t.body` with the shared secret. It covers the time, so that a
recorded request cannot be replayed later.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import socket
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from queuectl.errors import WebhookRefused, WebhookUnanswered
from queuectl.webhooks.ssrf import CHECK_NAME, Resolver, resolve, resolve_allowed

TIMEOUT_SECONDS: Final = 10.0  # to connect, and for each read of the response
SIGNATURE_HEADER: Final = "Queuectl-Signature"
MAX_RESPONSE_BYTES: Final = 64 * 1024  # the rest of a response is not read


class Response(NamedTuple):
    status: int
    text: str  # first line of the body


def post(
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    *,
    private: bool,
    resolver: Resolver = resolve,
    seconds: float = TIMEOUT_SECONDS,
) -> Response:
    """Send a POST request. `private`: allow private addresses.

    Raises WebhookRefused if the address is not allowed, WebhookUnanswered without a response of status 2xx. Redirects are not followed:
    they could lead to an address that was not checked.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    connection = _connect(
        host, port, resolve_allowed(host, port, private=private, resolver=resolver), parts.scheme, seconds
    )
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target, body, dict(headers))
        response = connection.getresponse()
        text = response.read(MAX_RESPONSE_BYTES).decode("utf-8", "replace").strip().partition("\n")[0]
    except (OSError, http.client.HTTPException) as exc:
        raise WebhookUnanswered(host, f"no answer: {str(exc) or type(exc).__name__}") from exc
    finally:
        connection.close()
    if 300 <= response.status < 400:
        raise WebhookUnanswered(host, f"it answered {response.status}, a redirect; redirects are not followed")
    if not 200 <= response.status < 300:
        raise WebhookUnanswered(host, f"it answered {response.status} {response.reason}".rstrip())
    return Response(response.status, text)


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
            # The certificate is verified against the host name, although the connection is to an address.
            connection.sock = (
                ssl.create_default_context().wrap_socket(plain, server_hostname=host) if scheme == "https" else plain
            )
        except OSError as exc:
            plain.close()
            raise WebhookUnanswered(host, f"TLS handshake failed: {exc}") from exc
        return connection
    if failure is None:
        raise WebhookRefused(host, "its name has no address", hint=CHECK_NAME)
    raise WebhookUnanswered(host, f"cannot connect: {failure}") from failure


# ── signature ───────────────────────────────────────────────────────────────────────────────────────────────────────


def sign(body: bytes, secret: str, *, at: int) -> str:
    digest = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"
