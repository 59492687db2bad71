"""Small periodic tasks on the store: complete batches, remove old records, sample the counters that charts show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from queuectl.errors import StoreBusy, StoreFailed, StoreFull, StoreReadOnly, StoreRefused, UsageError
from queuectl.events import Sink, StoreTrouble
from queuectl.jobs.audit import Actor
from queuectl.jobs.stats import Span
from queuectl.settings import Settings
from queuectl.store import enqueue
from queuectl.store.store import Store

COMPLETE_EVERY: Final = 1.0
FORGET_EVERY: Final = 3600.0
FORGET_BATCH_SIZE: Final = 200  # audit records in one transaction
EMPTY_BATCH_KEPT_MS: Final = 24 * 3600 * 1000  # a batch without jobs may be about to get its first
RETRY_BUSY_AFTER: Final = 1.0
RETRY_FAILED_AFTER: Final = 60.0


class BatchCompletionTask:
    """Enqueues the completion jobs of batches that have ended, and removes empty batches, old idempotency keys and old audit records.

    A batch is not completed in the transaction that ends its last job: on PostgreSQL two workers may end its last two jobs at the same
    time, and neither would see the other's. The next check sees both, and the row of the batch lets one worker complete it.
    """

    adds_work: Final = True

    def __init__(self, store: Store, settings: Callable[[], Settings], *, by: Actor) -> None:
        self._store = store
        self._load_settings = settings
        self._by = by
        self._forget_at = 0.0

    def step(self, now: float) -> float:
        self._store.batches.complete_ended()
        if now >= self._forget_at:
            now_ms = self._store.now_ms()
            # The rest in the next step: others have to write in between.
            has_more = self._store.forget_requests(before_ms=now_ms - enqueue.IDEMPOTENCY_KEPT_MS) >= FORGET_BATCH_SIZE
            has_more |= self._forget_audit(now_ms) >= FORGET_BATCH_SIZE
            if not has_more:
                self._store.batches.forget(before_ms=now_ms - EMPTY_BATCH_KEPT_MS)
                self._forget_at = now + FORGET_EVERY
        return now + COMPLETE_EVERY

    def _forget_audit(self, now_ms: int) -> int:
        try:
            kept_ms = self._load_settings().retain_audit_ms
        except UsageError:  # the worker has reported it; with invalid settings nothing is removed
            return 0
        if kept_ms is None:
            return 0
        return self._store.audit.forget(before_ms=now_ms - kept_ms, rows=FORGET_BATCH_SIZE, by=self._by)


class SampleTask:
    """Samples the counters of the store once a minute. The store keeps one sample a minute, however many workers do this."""

    adds_work: Final = False

    def __init__(self, *, store: Store, emit: Sink) -> None:
        self._store = store
        self._emit = emit
        self._reported: str | None = None

    def step(self, now: float) -> float:
        try:
            self._store.samples.record()
            now_ms = self._store.now_ms()
        except StoreBusy:  # other writes matter more
            return now + RETRY_BUSY_AFTER
        except (StoreFailed, StoreFull, StoreReadOnly, StoreRefused) as exc:
            # Not raised: everything that jobs need may still work.
            if exc.message != self._reported:
                self._reported = exc.message
                self._emit(StoreTrouble(exc.message))
            return now + RETRY_FAILED_AFTER
        self._reported = None
        return now + (Span.MINUTE.begin(now_ms) + Span.MINUTE.ms - now_ms) / 1000
