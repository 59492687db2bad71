"""That a call is from us: `Queuectl-Signature: t=UNIX,v1=HEX`, the HMAC-SHA256 of `t.body` under the shared secret.

The time is signed along, so that who has overheard a call cannot repeat it tomorrow.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

HEADER: Final = "Queuectl-Signature"
TOLERANCE: Final = 300  # seconds that the clocks of the two may differ, and the network may take


def sign(body: bytes, secret: str, *, at: int) -> str:
    return f"t={at},v1={_digest(body, secret, at)}"


def is_signed(body: bytes, secret: str, header: str, *, now: int, tolerance: int = TOLERANCE) -> bool:
    """Whether `header` is right for `body` and not older than `tolerance` seconds: what a receiver does."""
    found = re.fullmatch(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})", header)
    if found is None:
        return False
    at = int(found[1])
    return abs(now - at) <= tolerance and hmac.compare_digest(found[2], _digest(body, secret, at))


def _digest(body: bytes, secret: str, at: int) -> str:
    return hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256).hexdigest()
