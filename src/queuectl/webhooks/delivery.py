"""Webhook deliveries: build, sign and send the payload, as a job of the queue `queuectl.webhooks` does; enqueue such jobs; and the protection
against server-side request forgery (SSRF).

A delivery is one POST request to an address that was checked. The signature is `Queuectl-Signature: t=UNIX,v1=HEX`, the HMAC-SHA256 of
`t.body` with the shared secret. It covers the time, so that a recorded request cannot be replayed later.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import json
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from queuectl.errors import InvalidInput, JobNotFound, WebhookRefused, WebhookUnanswered
from queuectl.settings import Settings
from queuectl.store.protocol import Reads, Store
from queuectl.webhooks.rules import Origin, WebhookEvent, parse_url

TIMEOUT_SECONDS: Final = 10.0  # to connect, and for each read of the response
SIGNATURE_HEADER: Final = "Queuectl-Signature"
MAX_RESPONSE_BYTES: Final = 64 * 1024  # the rest of a response is not read

# ── addresses ───────────────────────────────────────────────────────────────────────────────────────────────────────
# A user who may enqueue jobs can make this host send requests to any URL. Services that only this host can reach (its own, those of
# its network, cloud metadata) must stay out of reach. The name is resolved once, every address is checked, and the connection is
# made to one of the checked addresses, so a DNS answer that changes later has no effect.

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Sequence[str]]

CHECK_NAME: Final = "check the name, and whether this host can resolve it"
# Not public, whatever `is_global` returns: the list in ipaddress differs between versions of Python.
_PRIVATE_NETWORKS: Final = (
    ipaddress.ip_network("100.64.0.0/10"),  # carrier-grade NAT
    ipaddress.ip_network("192.0.0.0/24"),  # IETF protocol assignments; some clouds serve metadata there
    # WireServer of Azure: a public address that the host of the virtual machine answers, with secrets.
    ipaddress.ip_network("168.63.129.16/32"),
    ipaddress.ip_network("64:ff9b:1::/48"),  # NAT64 for local use
    ipaddress.ip_network("fec0::/10"),  # site-local: deprecated, but some networks still route it
    ipaddress.ip_network("3fff::/20"),  # documentation
)
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address in the last 32 bits


def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of the host, in the order that the system prefers. Raises WebhookRefused."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise WebhookRefused(host, f"cannot resolve its name: {exc}", hint=CHECK_NAME) from exc
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def resolve_allowed(host: str, port: int, *, private: bool, resolver: Resolver = resolve) -> list[str]:
    """Return the addresses that may be called. `private`: allow private addresses, too.

    Raises WebhookRefused if any address is private: a name that has both kinds is a typical attack.
    """
    found = resolver(host, port)
    if not private:
        for text in found:
            if not is_public(ipaddress.ip_address(text.partition("%")[0])):
                hint = "queuectl config set webhook-allow-private true allows private addresses for webhooks of jobs"
                raise WebhookRefused(host, f"{text} is a private address", hint=hint)
    return list(found)


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour or _nat64_address(address)
        if embedded is not None:
            return is_public(embedded)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and not any(address in network for network in _PRIVATE_NETWORKS)
    )


def _nat64_address(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(address.packed[12:]) if address in _NAT64 else None


# ── requests ────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    """Receivers compare it with one of their own, and reject an old time: see docs/guides/webhooks.md."""
    return f"t={at},v1={hmac.new(secret.encode(), b'%d.' % at + body, hashlib.sha256).hexdigest()}"


# ── deliveries ──────────────────────────────────────────────────────────────────────────────────────────────────────


class DeliveryRequest(NamedTuple):
    id: str  # the same for every attempt
    event: WebhookEvent
    job: str
    run: int
    url: str
    origin: Origin


def parse_delivery(event: str, job: str, run: str, *, id_: str, url: str | None, origin: str | None) -> DeliveryRequest:
    """Parse the arguments and the environment of a delivery job. Raises InvalidInput."""
    if event not in list(WebhookEvent) or origin not in list(Origin) or not run.isdecimal():
        raise InvalidInput(
            "deliver", "this command is for jobs that queuectl creates itself", hint="see enqueue --on-dead URL"
        )
    return DeliveryRequest(id_, WebhookEvent(event), job, int(run), parse_url(url, "the URL"), Origin(origin))


def deliver(reads: Reads, delivery: DeliveryRequest, settings: Settings, *, version: str) -> Response:
    """Raises WebhookRefused or WebhookUnanswered."""
    what = payload(reads, delivery)
    return send(reads, what, settings, url=delivery.url, origin=delivery.origin, version=version)


def deliver_alert(reads: Reads, facts: Mapping[str, str], settings: Settings, *, url: str, version: str) -> Response:
    """`facts`: the variables of the notification, see alerts/rules.py. Raises WebhookRefused or WebhookUnanswered."""
    return send(reads, alert_payload(facts), settings, url=url, origin=Origin.CONFIG, version=version)


def send(
    reads: Reads, what: Mapping[str, Any], settings: Settings, *, url: str, origin: Origin, version: str
) -> Response:
    """Raises WebhookRefused or WebhookUnanswered."""
    body = json.dumps(what, ensure_ascii=False).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"queuectl/{version}",
        "Queuectl-Event": what["event"],
        "Queuectl-Delivery": what["id"],
    }
    if settings.webhook_secret is not None:
        headers[SIGNATURE_HEADER] = sign(body, settings.webhook_secret, at=reads.now_ms() // 1000)
    # Only operators may send requests into the private network, not users who can merely enqueue jobs.
    private = origin is not Origin.JOB or settings.webhook_allow_private
    return post(url, body, headers, private=private)


def payload(reads: Reads, delivery: DeliveryRequest) -> dict[str, Any]:
    """The current job, and the run that triggered the delivery; null if it has been removed since."""
    try:
        job: dict[str, Any] | None = reads.get(delivery.job).to_dict()
        runs = [run.to_dict() for run in reads.history(delivery.job) if run.number == delivery.run]
    except JobNotFound:
        job, runs = None, []
    if job is not None:
        del job["env"]
    return {
        "event": delivery.event.value,
        "id": delivery.id,
        "created_at": reads.get(delivery.id).to_dict()["created_at"],
        "job_id": delivery.job,
        "job": job,
        "run": runs[0] if runs else None,
    }


def alert_payload(facts: Mapping[str, str]) -> dict[str, Any]:
    """The payload of an alert notification, the same for every attempt."""

    def fact(name: str) -> str:
        return facts.get(f"QUEUECTL_ALERT_{name}", "")

    if not (fact("ID") and fact("VALUE") and fact("THRESHOLD")):
        raise InvalidInput(
            "deliver", "this command is for jobs that queuectl creates itself", hint="see alert add --webhook URL"
        )
    return {
        "event": "alert",
        "id": fact("ID"),
        "created_at": fact("AT"),
        "alert": {
            "name": facts.get("QUEUECTL_ALERT", ""),
            "state": fact("STATE"),
            "kind": fact("KIND"),
            "queue": fact("QUEUE") or None,
            "value": json.loads(fact("VALUE")),
            "threshold": json.loads(fact("THRESHOLD")),
            "text": fact("TEXT"),
        },
    }


CHECK_INTERVAL: Final = 1.0


class WebhookTask:
    adds_work: Final = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def step(self, now: float) -> float:
        return now if self._store.enqueue_webhooks() else now + CHECK_INTERVAL
