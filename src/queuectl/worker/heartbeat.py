"""The registration of a worker in the store: register under its name, send heartbeats, deregister."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Final

from queuectl.errors import StoreRefused
from queuectl.events import WakeUpSilent
from queuectl.settings import Settings
from queuectl.store.claims import Wakeup
from queuectl.store.types import NewWorker, Span
from queuectl.worker.config import WorkerConfig, WorkerContext
from queuectl.worker.signals import SignalPipe
from queuectl.worker.store_retry import RETRY_EVERY, StoreRetry

DEREGISTER_TIMEOUT: Final = 5.0


class Heartbeat:
    """`wakeup` is readable, from `register` on, when another process has written to the store."""

    wakeup: Wakeup

    def __init__(self, config: WorkerConfig, context: WorkerContext, *, signals: SignalPipe, retry: StoreRetry) -> None:
        self._config = config
        self._context = context
        self._store = context.store
        self._signals = signals
        self._retry = retry
        self._logged: set[str] = set()
        self._sent_at = 0.0  # the last heartbeat, or shortly before

    def register(self, slots: int, *, patience: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Work under our name from now on. Raises what prevents it, at once if waiting cannot help."""
        config = self._config
        worker = NewWorker(
            config.id, config.host, config.pid, config.home, slots, config.queues, config.machine, config.lock
        )
        self._sent_at = self._context.clock.monotonic()
        deadline = self._sent_at + patience
        while (wakeup := self._retry.write(lambda: self._store.claims.register(worker))) is None:
            is_late = self._context.clock.monotonic() >= deadline or self._signals.stops > 0
            # A worker that starts has to be granted what is refused. One that was declared lost has jobs of its own to watch.
            is_refused = math.isfinite(patience) and isinstance(self._retry.last, StoreRefused)
            if self._retry.last and (self._retry.is_fatal or is_refused or is_late):
                raise self._retry.last
            self._pause()
            meanwhile()
            self._sent_at = self._context.clock.monotonic()
        self.wakeup = wakeup
        self._log_silence()

    def send(self, *, slots: int, stopping: bool) -> bool | None:
        """Whether the store still knows us, None if it cannot be asked."""
        now = self._context.clock.monotonic()
        known = self._retry.write(lambda: self._store.claims.heartbeat(self._config.id, slots=slots, stopping=stopping))
        if known:
            self._sent_at = now
            self._log_silence()
        return known

    def fresh_until(self, settings: Settings) -> float | None:
        """Until when what we have claimed is certainly ours: no other worker takes it within a lease of our last heartbeat. None if that time
        is over."""
        until = self._sent_at + settings.lease_ms / 1000
        return until if self._context.clock.monotonic() < until else None

    def ensure_fresh(self, send: Callable[[], bool | None], settings: Settings) -> float | None:
        """The same. After the time, for example because this process was stopped, the store is asked. None also if it cannot be asked."""
        while (until := self.fresh_until(settings)) is None:
            if not send():
                return None
        return until

    def give_back(self, spans: Mapping[str, Span], *, max_crashes: int) -> bool:
        """Give back the jobs, by token, of runs whose end is unknown or that were taken from us, now that no process of them is left. The
        worker that took them may be dead, too. False if the store cannot be asked."""
        own, only = self._config.id, frozenset(spans)
        lost = self._retry.write(
            lambda: self._store.claims.rescue(own, max_crashes=max_crashes, spans=spans, only=only)
        )
        return lost is not None

    def deregister(self) -> None:
        """Without success, or if it is to stop at once, another worker does that: it sees that we are dead."""
        deadline = self._context.clock.monotonic() + DEREGISTER_TIMEOUT
        while self._retry.write(self._retire) is None and not self._retry.is_fatal and self._signals.stops < 2:
            if self._context.clock.monotonic() >= deadline:
                return
            self._pause()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # closed already, if the store disappeared while we registered again
            self.wakeup.close()

    def _log_silence(self) -> None:
        """Once for each reason: it may last as long as this worker."""
        why = self.wakeup.polling_because
        if why is not None and why not in self._logged:
            self._logged.add(why)
            self._context.emit(WakeUpSilent(why))

    def _retire(self) -> bool:
        self._store.claims.retire(self._config.id)
        return True

    def _pause(self) -> None:
        """Between two attempts of something without which nothing else can be done."""
        self._context.before_sleep()
        self._context.wait((self._signals,), RETRY_EVERY)
        self._signals.drain()
