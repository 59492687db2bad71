"""The seam for requests that may be repeated: whoever does not know whether its jobs came in asks again with the same key."""

from __future__ import annotations

import json
from typing import Final, Protocol

from queuectl.errors import KeyReused
from queuectl.store.entry import Enqueued

KEPT_MS: Final = 24 * 3600 * 1000
FORGET_AT_ONCE: Final = 1000  # in one transaction: SQLite has one writer at a time

# A key that somebody chose for a request, and a digest of the request: the same key means the same one.
Request = tuple[str, str]


class Requests(Protocol):
    def forget_requests(self, *, before_ms: int, limit: int = FORGET_AT_ONCE) -> int:
        """Remove what was answered then or before, the oldest first. Returns how many: fewer than `limit`, and no more are left."""
        ...


def pack(answer: Enqueued) -> str:
    return json.dumps([answer, sorted(answer.duplicates)], separators=(",", ":"))


def answer_to(request: Request, digest: str, packed: str) -> Enqueued:
    """What was answered to a request of this key, which had that digest. Raises KeyReused if it was another one."""
    key, asked = request
    if digest != asked:
        raise KeyReused(key)
    ids, duplicates = json.loads(packed)
    answer = Enqueued(ids)
    answer.duplicates = frozenset(duplicates)
    return answer
