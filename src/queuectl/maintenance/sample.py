"""Looking, once a minute, at how much has happened: what charts are drawn of. Any worker does it, or whoever shows the charts where
there is none; the store sees to it that each minute is written down once."""

from __future__ import annotations

from typing import Final

from queuectl.errors import StoreBusy, StoreFailed, StoreFull, StoreReadOnly, StoreRefused
from queuectl.events import Sink, StoreTrouble
from queuectl.jobs.stats import Span
from queuectl.store.protocol import Store

BUSY_PAUSE: Final = 1.0
UNABLE_PAUSE: Final = 60.0


class SampleDuty:
    adds_work: Final = False

    def __init__(self, *, store: Store, emit: Sink) -> None:
        self._store = store
        self._emit = emit
        self._said: str | None = None

    def step(self, now: float) -> float:
        try:
            self._store.sample()
            now_ms = self._store.now_ms()
        except StoreBusy:  # somebody has something to write that matters more
            return now + BUSY_PAUSE
        except (StoreFailed, StoreFull, StoreReadOnly, StoreRefused) as exc:
            # Not our caller's trouble: the store may serve all that jobs need.
            if exc.message != self._said:
                self._said = exc.message
                self._emit(StoreTrouble(exc.message))
            return now + UNABLE_PAUSE
        self._said = None
        return now + (Span.MINUTE.begin(now_ms) + Span.MINUTE.ms - now_ms) / 1000
