from __future__ import annotations

import ipaddress

import pytest

from queuectl.errors import WebhookRefused
from queuectl.webhooks.ssrf import is_public, resolve, resolve_allowed

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "3fff::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "2002:7f00:1::",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "2001:0:7f00:1::",
]
# Where clouds answer their virtual machines, with credentials.
METADATA = {
    "AWS, Azure, Google, OpenStack and others": ["169.254.169.254", "::ffff:169.254.169.254", "fe80::a9fe:a9fe"],
    "AWS over IPv6": ["fd00:ec2::254"],
    "AWS containers": ["169.254.170.2", "fd00:ec2::23"],
    "Google over IPv6": ["fd20:ce::254"],
    "Azure WireServer": ["168.63.129.16", "::ffff:168.63.129.16", "64:ff9b::168.63.129.16", "2002:a83f:8110::"],
    "Alibaba": ["100.100.100.200"],
    "Oracle": ["192.0.0.192"],
    "Tencent": ["169.254.0.23"],
}
PUBLIC = ["93.184.216.34", "168.63.129.15", "168.63.129.17", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", [address for addresses in METADATA.values() for address in addresses])
def test_a_cloud_metadata_address_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_a_global_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_a_name_with_a_private_address_is_refused_for_a_job() -> None:
    with pytest.raises(WebhookRefused, match="private") as caught:
        resolve_allowed("localhost", 80, private=False)
    assert "webhook-allow-private" in caught.value.hint
    assert resolve_allowed("localhost", 80, private=True)


def test_a_name_with_public_and_private_addresses_is_refused() -> None:
    with pytest.raises(WebhookRefused, match=r"10\.0\.0\.1"):
        resolve_allowed("mixed.example", 80, private=False, resolver=lambda host, port: ["1.1.1.1", "10.0.0.1"])


def test_a_name_is_resolved_once() -> None:
    asked = []

    def resolving(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["1.1.1.1"]

    assert resolve_allowed("example.org", 443, private=False, resolver=resolving) == ["1.1.1.1"]
    assert asked == ["example.org"]


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".invalid"])
def test_an_unknown_host_name_is_refused(host: str) -> None:
    with pytest.raises(WebhookRefused, match="cannot resolve") as caught:
        resolve(host, 80)
    assert caught.value.hint == "check the name, and whether this host can resolve it"
