"""Where a URL leads: the addresses behind its name, and whether a job may have us call them.

Whoever may add jobs may make this machine call any URL. What only this machine reaches (its own services, those of its network, the
metadata of a cloud) must not be within their reach by that. So the name is resolved once, each address is judged, and the
connection is made to one of those, not to whatever the name stands for a moment later.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Final

from queuectl.errors import CallRefused

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Sequence[str]]

CHECK_NAME: Final = "check the name, and whether this host can resolve it"
# Not of the world, whatever the Python at hand calls them: the list in ipaddress differs from version to version.
_OF_A_NETWORK: Final = (
    ipaddress.ip_network("100.64.0.0/10"),  # shared by the customers of a provider
    ipaddress.ip_network("192.0.0.0/24"),  # for protocols; the metadata of a cloud was there, too
    # WireServer of Azure: a public address by its number, answered by the host of the virtual machine, with its secrets.
    ipaddress.ip_network("168.63.129.16/32"),
    ipaddress.ip_network("64:ff9b:1::/48"),  # IPv4 addresses translated within a network
    ipaddress.ip_network("fec0::/10"),  # of a site: given up, and routed by who still has them
    ipaddress.ip_network("3fff::/20"),  # for examples
)
_TRANSLATED: Final = ipaddress.ip_network("64:ff9b::/96")  # an IPv4 address within an IPv6 one


def resolve(host: str, port: int) -> list[str]:
    """Every address behind the name, in the order the system prefers. Raises CallRefused."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as exc:
        raise CallRefused(host, f"its name is not known here: {exc}", hint=CHECK_NAME) from exc
    return list(dict.fromkeys(str(place[4][0]) for place in found))


def reachable(host: str, port: int, *, private: bool, resolving: Resolve = resolve) -> list[str]:
    """The addresses that may be called. `private`: also those that only this machine or its network reaches. If one of them may
    not be, none is: a name that stands for both is a trap."""
    found = resolving(host, port)
    if not private:
        for text in found:
            if not is_public(ipaddress.ip_address(text.partition("%")[0])):
                hint = "queuectl config set webhook-allow-private true lets jobs call private addresses"
                raise CallRefused(host, f"{text} is a private address", hint=hint)
    return list(found)


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        within = address.ipv4_mapped or address.sixtofour or _translated(address)
        if within is not None:
            return is_public(within)
    return (
        address.is_global
        and not address.is_multicast
        and not address.is_reserved
        and not address.is_unspecified
        and not any(address in network for network in _OF_A_NETWORK)
    )


def _translated(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    return ipaddress.IPv4Address(address.packed[12:]) if address in _TRANSLATED else None
