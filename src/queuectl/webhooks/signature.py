"""Signatures of webhooks: `Queuectl-Signature: t=UNIX,v1=HEX`, the HMAC-SHA256 of `t.body` with the shared secret.

The signature covers the time, so that a recorded request cannot be replayed later.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

HEADER: Final = "Queuectl-Signature"
TOLERANCE_SECONDS: Final = 300  # for clock skew and network latency


def sign(body: bytes, secret: str, *, at: int) -> str:
    return f"t={at},v1={_digest(body, secret, at)}"


def is_signed(body: bytes, secret: str, header: str, *, now: int, tolerance: int = TOLERANCE_SECONDS) -> bool:
    """Whether `header` is a valid signature of `body`, at most `tolerance` seconds old. Receivers check this."""
    found = re.fullmatch(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})", header)
    if found is None:
        return False
    at = int(found[1])
    return abs(now - at) <= tolerance and hmac.compare_digest(found[2], _digest(body, secret, at))


def _digest(body: bytes, secret: str, at: int) -> str:
    return hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
