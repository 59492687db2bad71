from __future__ import annotations

import hashlib
import hmac

import pytest

from queuectl.webhooks.client import sign

BODY, SECRET, AT = b'{"event": "dead"}', "a secret of two", 1_800_000_000


def test_a_signature_is_the_hmac_of_time_dot_body() -> None:
    expected = hmac.new(SECRET.encode(), b"1800000000." + BODY, hashlib.sha256).hexdigest()
    assert sign(BODY, SECRET, at=AT) == f"t=1800000000,v1={expected}"


@pytest.mark.parametrize(
    "body, secret, at",
    [(BODY + b" ", SECRET, AT), (BODY, SECRET + "!", AT), (BODY, SECRET, AT + 1)],
    ids=["another body", "another secret", "another time"],
)
def test_a_signature_covers_body_secret_and_time(body: bytes, secret: str, at: int) -> None:
    assert sign(body, secret, at=at).partition(",")[2] != sign(BODY, SECRET, at=AT).partition(",")[2]
