"""Protection against server-side request forgery (SSRF): resolve the host of a webhook and refuse private addresses.

A user who may enqueue jobs can make this host send requests to any URL. Services that only this host can reach (its own, those of
its network, cloud metadata) must stay out of reach. The name is resolved once, every address is checked, and the connection is
made to one of the checked addresses, so a DNS answer that changes later has no effect.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final

from queuectl.errors import WebhookRefused

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
