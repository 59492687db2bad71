from __future__ import annotations

import hashlib
import hmac

import pytest

from queuectl.webhooks.delivery import is_signed, sign

BODY, SECRET, AT = b'{"event": "dead"}', "a secret of two", 1_800_000_000


def test_a_signature_is_the_hmac_of_time_dot_body() -> None:
    expected = hmac.new(SECRET.encode(), b"1800000000." + BODY, hashlib.sha256).hexdigest()
    assert sign(BODY, SECRET, at=AT) == f"t=1800000000,v1={expected}"


def test_a_fresh_signature_is_valid() -> None:
    assert is_signed(BODY, SECRET, sign(BODY, SECRET, at=AT), now=AT + 5)


@pytest.mark.parametrize(
    "body, secret, late",
    [(BODY + b" ", SECRET, 0), (BODY, SECRET + "!", 0), (BODY, SECRET, 301), (BODY, SECRET, -301)],
    ids=["another body", "another secret", "too old", "from the future"],
)
def test_a_wrong_or_old_signature_is_invalid(body: bytes, secret: str, late: int) -> None:
    assert not is_signed(body, secret, sign(BODY, SECRET, at=AT), now=AT + late)


@pytest.mark.parametrize("header", ["", "t=1", "v1=aa", "t=x,v1=" + "0" * 64, "t=1800000000,v1=", "t=1800000000,v1=ZZ"])
def test_a_malformed_header_is_invalid(header: str) -> None:
    assert not is_signed(BODY, SECRET, header, now=AT)
