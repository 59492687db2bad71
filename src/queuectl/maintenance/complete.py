"""Queueing what is to run when a batch has ended, and forgetting batches of which nothing is left, old requests,
and who changed what long ago.

Not in the transaction that ends its last job: on PostgreSQL two workers may each end one of the last two at the same time,
and neither would see the other's. Whoever looks next sees both, and the row of the batch lets one of those do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from queuectl.errors import UsageError
from queuectl.jobs.audit import Actor
from queuectl.settings import Settings
from queuectl.store import enqueue
from queuectl.store.protocol import Store

EVERY: Final = 1.0
FORGET_EVERY: Final = 3600.0
FORGET_AT_ONCE: Final = 200  # records of who changed what
KEPT_MS: Final = 24 * 3600 * 1000  # a batch without jobs may be one that is only beginning


class CompleteDuty:
    adds_work: Final = True

    def __init__(self, store: Store, settings: Callable[[], Settings], *, by: Actor) -> None:
        self._store = store
        self._load_settings = settings
        self._by = by
        self._forget_at = 0.0

    def step(self, now: float) -> float:
        self._store.complete_batches()
        if now >= self._forget_at:
            now_ms = self._store.now_ms()
            # The rest of them with the next step: others have to write meanwhile.
            has_more = self._store.forget_requests(before_ms=now_ms - enqueue.IDEMPOTENCY_KEPT_MS) >= FORGET_AT_ONCE
            has_more |= self._forget_audit(now_ms) >= FORGET_AT_ONCE
            if not has_more:
                self._store.forget_batches(before_ms=now_ms - KEPT_MS)
                self._forget_at = now + FORGET_EVERY
        return now + EVERY

    def _forget_audit(self, now_ms: int) -> int:
        try:
            kept_ms = self._load_settings().retain_audit_ms
        except UsageError:  # the worker has said so; without settings that hold, nothing is forgotten
            return 0
        if kept_ms is None:
            return 0
        return self._store.forget_audit(before_ms=now_ms - kept_ms, rows=FORGET_AT_ONCE, by=self._by)
